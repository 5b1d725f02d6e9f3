"""Texts with spans for the tests of annotation tools."""

from hypothesis import strategies as st

TEXTS = [
    "Anna smiles.",
    "",
    "😀 Anna 👩🏽‍🌾 met 𝔅o.\r\nIn Oslo.",
    "שרה גרה בחיפה\n",
    "Cafe\u0301 \u00a0\u2028 x\ty  z",
]
SPANS = [
    [(0, 4, "PER")],
    [],
    [(0, 1, "EMO"), (2, 6, "PER"), (7, 11, "EMO"), (16, 18, "PER"), (18, 28, "ODD")],
    [(0, 3, "PER"), (8, 13, "LOC")],
    [(0, 5, "LOC"), (5, 8, "ODD"), (9, 10, "X")],
]
NESTED = [[(0, 4, "PER"), (0, 12, "S"), (2, 6, "ODD")], [], [], [], []]


@st.composite
def annotated_texts(draw, overlap=True):
    """Draw texts of any characters that UTF-8 has, and spans of them."""
    text = st.text(st.characters(codec="utf-8"), max_size=20)
    odd = st.sampled_from(
        ["\r\n", "\n", "\\n", "😀", "𝔅", "e\u0301", "א", " ", "\t", "\ufeff", "a"]
    )
    X = draw(st.lists(text | st.lists(odd).map("".join), min_size=1, max_size=4))
    y = []
    for row in X:
        edges = st.lists(st.integers(0, len(row)), min_size=2, max_size=2, unique=True).map(sorted)
        pairs = draw(st.lists(edges, max_size=4)) if row else []
        spans = sorted((a, b, draw(st.sampled_from(["PER", "é😀"]))) for a, b in pairs)
        if not overlap:
            spans = [
                span for i, span in enumerate(spans) if all(b <= span[0] for _, b, _ in spans[:i])
            ]
        y.append(spans)
    return X, y
