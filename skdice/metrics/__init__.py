"""Scores for sequence tagging (whole entities, single tags) and for question answering."""

from ._entities import (
    SPELLINGS,
    EntitySpan,
    are_chunk_tags,
    check_tag_kinds,
    check_tag_row,
    check_tag_sequences,
    find_entities,
    get_entities,
    infer_scheme,
    parse_tag,
)
from ._row_counts import RowCounts, count_by_label, count_rows, divide
from ._scores import (
    entity_classification_report,
    entity_f1_score,
    entity_f1_scorer,
    entity_precision_recall_fscore_support,
    tag_f1_score,
    tag_f1_scorer,
)
from ._squad import (
    read_answers,
    score_rows,
    squad_exact_match,
    squad_exact_match_scorer,
    squad_f1_score,
    squad_f1_scorer,
    squad_report,
)

__all__ = [
    "EntitySpan",
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
