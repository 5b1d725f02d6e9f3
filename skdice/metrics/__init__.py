"""Scores for sequence tagging: whole entities and single tags."""

from ._entities import EntitySpan, get_entities
from ._entity import (
    entity_classification_report,
    entity_f1_score,
    entity_precision_recall_fscore_support,
)
from ._scorers import entity_f1_scorer, tag_f1_scorer
from ._tags import tag_f1_score

__all__ = [
    "EntitySpan",
    "entity_classification_report",
    "entity_f1_score",
    "entity_f1_scorer",
    "entity_precision_recall_fscore_support",
    "get_entities",
    "tag_f1_score",
    "tag_f1_scorer",
]
