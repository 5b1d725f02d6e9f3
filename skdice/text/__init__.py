"""Between words and pieces: tokenising, windows, tags."""

from ._answers import Answer, Candidates, SpanDecoder, pick_answers
from ._decoding import (
    Entity,
    TagDecoder,
    Threshold,
    allowed_transitions,
    best_disjoint,
    by_label,
    check_threshold,
    find_spans,
    keep_above,
    spelled_roles,
    write_tags,
)
from ._encoding import (
    N_SHAPES,
    Draw,
    EncodedDataset,
    are_characters,
    capped,
    encode_rows,
    encode_words,
)
from ._queries import EncodedQueries, encode_queries
from ._questions import EncodedQuestions, Span, encode_questions
from ._similarity import Similarities
from ._splitting import SPLITTERS, Splitter, check_spaced, checked_split, find_splitter, find_word
from ._tokenizer import Frame, Ragged, TextReader, WordTokenizer, offsets_from_lengths, ranges
