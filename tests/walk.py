"""The files and functions of the package that a call passes; as a script it prints them.

A function is a ``def`` of a file of the package, and counts once. What is imported, what a
dataclass makes and what other libraries do does not count.
"""

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import skdice

ROOT = str(Path(skdice.__file__).parent)
NO_DEFS = ("<module>", "<lambda>", "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>")

Walk = set[tuple[str, str, int]]


def walk_of(call: Callable[[], Any]) -> Walk:
    """Return file, name and line of each function that a call passes."""
    passed: Walk = set()

    def note(frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        is_ours = event == "call" and code.co_filename.startswith(ROOT)
        # The body of a class runs when its file is imported, and is no function.
        if is_ours and code.co_name not in NO_DEFS and code.co_flags & 1:
            passed.add((code.co_filename, code.co_name, code.co_firstlineno))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return passed


def count(walk: Walk) -> tuple[int, int]:
    return len({file for file, _, _ in walk}), len(walk)


def walks_of_a_tagger(model: str) -> dict[str, Walk]:
    """Return the walks of a default fit of a tagger, of a prediction, and of a fit with all parts.

    The last one scores tags together, reads the shapes of words, samples sentences, validates and
    tunes a bias.
    """
    sentences = [["john", "lives", "in", "oslo"], ["the", "city", "was", "old"]] * 4
    tags = [["B-PER", "O", "O", "B-LOC"], ["O"] * 4] * 4
    tagger = skdice.DiceTokenTagger(model, random_state=0)
    rare = [["John", "lives", "at", "Acme"], *[["The", "city", "was", "old"]] * 5] * 4
    tags_of_rare = [["B-PER", "O", "O", "B-ORG"], *[["O"] * 4] * 5] * 4
    full = skdice.DiceTokenTagger(
        model, crf=True, word_shapes=True, negative_ratio=1.0, validation_fraction=0.25,
        background_bias="auto", max_epochs=2, verbose=0, random_state=0,
    )  # fmt: skip
    return {
        "fit": walk_of(lambda: tagger.fit(sentences, tags)),
        "predict": walk_of(lambda: tagger.predict(sentences)),
        "full fit": walk_of(lambda: full.fit(rare, tags_of_rare)),
    }


if __name__ == "__main__":
    from .tiny_models import build_bert

    with TemporaryDirectory() as folder:
        walks = walks_of_a_tagger(build_bert(Path(folder)))
    for name, walk in walks.items():
        n_files, n_functions = count(walk)
        print(f"{name}: {n_files} files, {n_functions} functions")
        for file, n in sorted(Counter(file for file, _, _ in walk).items()):
            names = sorted((line, function) for path, function, line in walk if path == file)
            listed = ", ".join(function for _, function in names)
            print(f"  {n:3} {file.removeprefix(ROOT)[1:]}: {listed}")
