"""More balanced training sets: negatives dropped, rows added with other entity mentions."""

from ._augment import augment
from ._gazetteer import collect_mentions
from ._mentions import find_mentions
from ._swap import swap_mentions
from ._training_sets import TrainingSets, make_training_sets
from ._undersample import undersample_negatives

__all__ = [
    "TrainingSets",
    "augment",
    "collect_mentions",
    "find_mentions",
    "make_training_sets",
    "swap_mentions",
    "undersample_negatives",
]
