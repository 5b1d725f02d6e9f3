"""Fits as functions, and the rules of "auto"; private to the library."""

from ._fit import fit, out_of_fold_scores
from ._fitted import Fitted
from ._network import make_net, network_of
from ._plan import choose, open_rates
from ._prepare import Given, prepare
from ._settings import Settings, settings_of
from .auto import CONSTANTS, EpochFacts, RowFacts
