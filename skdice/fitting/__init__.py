"""Fits as functions, and the rules of "auto"; private to the library."""

from ._draw import Sampled, sample
from ._fit import fit, in_columns, open_rates, out_of_fold_scores
from ._fitted import FitResult, Fitted
from ._loss import warn_of_collapse
from ._network import MODULES, Pace, logits_of, make_net
from ._settings import Settings, check_settings, settings_of
from .auto import CONSTANTS, RULES, Choice, Constant, Facts
