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
    """Return the walks of a default fit of a tagger and of a prediction."""
    sentences = [["john", "lives", "in", "oslo"], ["the", "city", "was", "old"]] * 4
    tags = [["B-PER", "O", "O", "B-LOC"], ["O"] * 4] * 4
    tagger = skdice.DiceTokenTagger(model, random_state=0)
    walks = {"fit": walk_of(lambda: tagger.fit(sentences, tags))}
    return walks | {"predict": walk_of(lambda: tagger.predict(sentences))}


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
