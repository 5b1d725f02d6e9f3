"""What is run, part by part, as PLAN.md declares it."""

from collections.abc import Callable

from .corpora import FIRST_DRAW
from .runs import Run

ENCODERS = ("MiniLM", "E5", "MPNet")
CORPORA = ("CoNLL03", "WikiGold", "NCBI-disease", "BC5CDR")
# Draws below 600 choose rules and are scored on dev rows; the fourth edition ended with draw 703.
TUNING_DRAW, NEW_DRAW, N_DRAWS = 520, FIRST_DRAW + 10, 2
# Dice with 13 epochs; dice and cross-entropy with 13 and 30 of 250 sentences, and fewer of more.
EPOCHS = {"500": (13, 9, 21), "700": (13, 8, 18), "1000": (13, 7, 15)}
_SHAPES = ("auto", "auto, without shapes")
# Learning rate and epochs of cross-entropy that the fourth edition tuned.
TUNED = {"MiniLM": (1e-4, 60), "E5": (1e-4, 30), "MPNet": (5e-5, 30)}


def length() -> list[Run]:
    """Both losses and several lengths, with 250 sentences."""
    cells = [("E5", "WikiGold"), ("MPNet", "CoNLL03"), ("E5", "CoNLL03")]
    cells += [("E5", "BC5CDR"), ("E5", "NCBI-disease"), ("MiniLM", "BC5CDR")]
    runs = [_tuning(cell, "250", "dice", epochs) for cell in cells for epochs in (13, 30)]
    return runs + [_tuning(cell, "250", "ce", 30) for cell in cells]


def sizes() -> list[Run]:
    """Both losses with more sentences; those that fell with dice come last."""
    cells = [("MiniLM", "CoNLL03"), ("E5", "CoNLL03"), ("MiniLM", "BC5CDR")]
    kept, fell = [], []
    for regime, (whole, few, many) in EPOCHS.items():
        for cell in cells:
            kept += [_tuning(cell, regime, "dice", whole), _tuning(cell, regime, "ce", many)]
            fell.append(_tuning(cell, regime, "dice", few))
    return kept + fell


def teacher() -> list[Run]:
    """MiniLM alone and with MPNet as its teacher, with 250 sentences."""
    cells = {"CoNLL03": [2000], "NCBI-disease": [2000, 500], "BC5CDR": [2000]}
    return [
        _tuning(("MiniLM", corpus), "250", name, 0)
        for corpus, sizes in cells.items()
        for name in (*(f"auto, MPNet and {n}" for n in sizes), "auto")
    ]


def continued() -> list[Run]:
    """A tagger of 3,000 sentences of CoNLL03 in place of the encoder."""
    return [
        _tuning((encoder, corpus), regime, name, 0)
        for encoder in ("MiniLM", "E5")
        for corpus in ("WikiGold", "BC5CDR", "NCBI-disease")
        for regime in ("100", "250")
        for name in ("auto, from CoNLL03", "auto")
    ]


def shapes() -> list[Run]:
    """Word shapes with an encoder that has no table of token types."""
    cells = [("MPNet", corpus) for corpus in ("CoNLL03", "WikiGold")]
    return [_tuning(cell, "250", name, 13) for cell in cells for name in _SHAPES]


def _tuning(cell: tuple[str, str], regime: str, contender: str, epochs: int) -> Run:
    return Run(*cell, regime, contender, 0.0, epochs, TUNING_DRAW)


def primary() -> list[Run]:
    """The defaults and cross-entropy with 30 epochs, on new draws."""
    cells = [(encoder, corpus) for encoder in ENCODERS for corpus in CORPORA]
    return [
        Run(*cell, "250", contender, 0.0, epochs, draw)
        for draw in range(NEW_DRAW, NEW_DRAW + N_DRAWS)
        for cell in [*cells, ("E5", "MSRA")]
        for contender, epochs in (("auto", 0), ("ce", 30))
    ]


def tuned() -> list[Run]:
    """Tuned cross-entropy where it is another fit than that with 30 epochs."""
    return [
        run._replace(lr=TUNED["MiniLM"][0], epochs=TUNED["MiniLM"][1])
        for run in primary()
        if run.contender == "ce" and run.encoder == "MiniLM"
    ]


PARTS: dict[str, Callable[[], list[Run]]] = {
    "length": length,
    "sizes": sizes,
    "teacher": teacher,
    "continued": continued,
    "shapes": shapes,
    "primary": primary,
    "tuned": tuned,
}
