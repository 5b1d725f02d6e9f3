"""The estimators, one a file."""

from ._base import TextEstimator as TextEstimator
from ._goal import Goal as Goal
from ._lesson import choose_pace as choose_pace
from ._load import load_pretrained
from ._out_of_fold import check_partition as check_partition
from ._out_of_fold import in_columns as in_columns
from ._out_of_fold import out_of_fold_scores as out_of_fold_scores
from ._pair import DicePairClassifier
from ._persistence import fitted_state as fitted_state
from ._query import DiceQueryTagger
from ._reuse import active_reuse as active_reuse
from ._reuse import reuse_work as reuse_work
from ._rows import Rows as Rows
from ._rows import object_array as object_array
from ._rows import split_rows as split_rows
from ._span import DiceSpanExtractor
from ._tagger import DiceTokenTagger
from ._targets import check_known_columns as check_known_columns
from ._targets import check_labels as check_labels
from ._targets import is_indicator as is_indicator
from ._text import DiceTextClassifier
from ._text_encoder import DiceTextEncoder

__all__ = [
    "DicePairClassifier",
    "DiceQueryTagger",
    "DiceSpanExtractor",
    "DiceTextClassifier",
    "DiceTextEncoder",
    "DiceTokenTagger",
    "load_pretrained",
]
