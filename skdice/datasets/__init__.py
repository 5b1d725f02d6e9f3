"""Readers and writers of corpora and annotation tools, and generators of imbalanced text."""

from ._conll import read_conll, write_conll
from ._conllu import read_conllu
from ._doccano import read_doccano, write_doccano
from ._json import read_objects as read_objects
from ._label_studio import read_label_studio, write_label_studio
from ._labeled_text import read_labeled_text
from ._make_pairs import make_pairs
from ._make_questions import make_questions
from ._make_tagging import make_tagging
from ._pairs import read_pairs
from ._squad import read_squad
from ._text_files import read_lines as read_lines
from ._text_files import suffix_of as suffix_of
from ._text_files import write_text as write_text
from ._words_from_spans import words_from_spans

__all__ = [
    "make_pairs",
    "make_questions",
    "make_tagging",
    "read_conll",
    "read_conllu",
    "read_doccano",
    "read_label_studio",
    "read_labeled_text",
    "read_pairs",
    "read_squad",
    "words_from_spans",
    "write_conll",
    "write_doccano",
    "write_label_studio",
]
