"""Time and memory of the readers of annotation tools.

    python -m benchmarks.reading --data path/to/corpora

Writes made text of a million words, and the sentences of CoNLL-2003, in each format, and reads them
back in a process of its own. Memory is the peak above that of the imports, divided by the size of
the file. Then it times ``words_from_spans``, which turns such text and spans into words and tags.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd

from skdice import datasets
from skdice.datasets import make_tagging, read_conll, words_from_spans, write_conll
from skdice.metrics import get_entities

# Files by format; what writes them and what reads them is named alike.
FILES = {
    "label_studio": "tasks.json",
    "doccano": "texts.jsonl",
    "spacy_json": "docs.jsonl",
    "brat": "documents",
    "conll": "sentences.conll",
}
_READ = """
import json, sys, time
from skdice import datasets
datasets.read_conll
def peak():  # Of this program: ru_maxrss has that of the one that started it.
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
before = peak()
start = time.perf_counter()
rows, _ = getattr(datasets, f"read_{sys.argv[1]}")(sys.argv[2])
print(json.dumps([len(rows), time.perf_counter() - start, (peak() - before) * 1024]))
"""


def join(sentences: Any, tags: Any, space: str = " ") -> tuple[list[str], list[list[Any]]]:
    """Return the texts of sentences, and their entities as spans of characters."""
    texts, spans = [], []
    for words, row in zip(sentences, tags):
        starts = [0]
        for word in words:
            starts.append(starts[-1] + len(word) + len(space))
        texts.append(space.join(words))
        entities = get_entities(row)
        spans.append([(starts[a], starts[b] - len(space), label) for a, b, label in entities])
    return texts, spans


def write(form: str, path: Path, sentences: Any, tags: Any) -> None:
    """Write sentences in a format."""
    if form == "conll":
        write_conll(path, sentences, tags)
    else:
        getattr(datasets, f"write_{form}")(path, *join(sentences, tags))


def read(form: str, path: Path) -> dict[str, Any]:
    """Read a file in another process and return its rows, seconds and memory."""
    command = [sys.executable, "-c", _READ, form, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    n_rows, seconds, memory = json.loads(done.stdout)
    size = sum(file.stat().st_size for file in [path, *path.glob("*")] if file.is_file())
    return {"rows": n_rows, "MB": size / 1e6, "seconds": seconds, "memory / file": memory / size}


def split(sentences: Any, tags: Any, splitter: str) -> dict[str, Any]:
    """Return how long it takes to turn texts into words, and how many texts have other words."""
    texts, spans = join(sentences, tags, "" if splitter == "characters" else " ")
    start = time.perf_counter()
    words, _ = words_from_spans(texts, spans, splitter=splitter, on_misaligned="expand")
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "texts with other words": sum(map(list.__ne__, words, sentences))}


def main() -> None:
    """Write, read, split, and print a table of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    args = parser.parse_args()
    corpora = {
        "made": make_tagging(70_000, ratio=8, random_state=0),
        "CoNLL-2003": read_conll(args.data / "ner/conll2003_en/train.conll.xz"),
    }
    table = []
    for name, (sentences, tags) in corpora.items():
        n_words = sum(map(len, sentences))
        for form, file in FILES.items():
            with tempfile.TemporaryDirectory() as folder:
                write(form, Path(folder) / file, sentences, tags)
                row = read(form, Path(folder) / file)
                table.append({"text": name, "format": form, "words": n_words, **row})
    print(pd.DataFrame(table).to_markdown(index=False, floatfmt=".1f", intfmt=","))
    corpora["MSRA"] = read_conll(args.data / "ner/msra_zh/train.bio.xz")
    table = []
    for name, splitter in (
        ("CoNLL-2003", "whitespace"),
        ("CoNLL-2003", "words"),
        ("MSRA", "characters"),
    ):
        sentences, tags = map(list, corpora[name])
        n_words = sum(map(len, sentences))
        row = {"text": name, "splitter": splitter, "words": n_words}
        table.append({**row, **split(sentences, tags, splitter)})
    print()
    print(pd.DataFrame(table).to_markdown(index=False, floatfmt=".1f", intfmt=","))


if __name__ == "__main__":
    main()
