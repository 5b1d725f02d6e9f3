"""Scores for sequence tagging (whole entities, single tags) and for question answering."""

from ._entities import EntitySpan, get_entities
from ._entities import check_tag_sequences as check_tag_sequences
from ._entities import check_tags as check_tags
from ._row_counts import RowCounts as RowCounts
from ._row_counts import bootstrap_interval
from ._row_counts import count_rows as count_rows
from ._schemes import ANY_ROLES as ANY_ROLES
from ._schemes import SPELLINGS as SPELLINGS
from ._scores import count_by_label as count_by_label
from ._scores import divide as divide
from ._scores import (
    entity_classification_report,
    entity_f1_score,
    entity_f1_scorer,
    entity_precision_recall_fscore_support,
    tag_f1_score,
    tag_f1_scorer,
)
from ._scores import resampled_sums as resampled_sums
from ._squad import read_answers as read_answers
from ._squad import score_rows as score_rows
from ._squad import (
    squad_exact_match,
    squad_exact_match_scorer,
    squad_f1_score,
    squad_f1_scorer,
    squad_report,
)

__all__ = [
    "EntitySpan",
    "bootstrap_interval",
    "entity_classification_report",
    "entity_f1_score",
    "entity_f1_scorer",
    "entity_precision_recall_fscore_support",
    "get_entities",
    "squad_exact_match",
    "squad_exact_match_scorer",
    "squad_f1_score",
    "squad_f1_scorer",
    "squad_report",
    "tag_f1_score",
    "tag_f1_scorer",
]
