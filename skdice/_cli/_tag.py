"""The command tag: entities of the lines of standard input."""

import argparse
import csv
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from ._commands import given, note

# Of standard input, so that memory stays flat; what is there sooner is tagged sooner.
_BLOCK_BYTES = 1 << 16


def run_tag(arguments: argparse.Namespace) -> None:
    from tqdm import tqdm

    from ..estimators import load_pretrained

    tagger = load_pretrained(arguments.model, **given(arguments, "device"))
    if not hasattr(tagger, "predict_entities"):
        raise ValueError(
            f"{arguments.model} holds a {type(tagger).__name__}, which finds no entities. Expected "
            "a tagger, as skdice fit saves it for --task tagging."
        )
    threshold = given(arguments, "threshold")
    tagger.predict_entities([], **threshold)  # A threshold that is not allowed is one at once.
    columns = ("line", "start", "end", "label", "score", "text")
    table = csv.writer(sys.stdout, delimiter="\t", lineterminator="\n")
    if arguments.format == "tsv":
        table.writerow(columns)
    if sys.stdin.isatty():
        note(arguments, "reading the terminal, a text a line; Ctrl-D ends it")
    number = n_found = 0
    is_hidden = arguments.quiet or sys.stdout.isatty() or not sys.stderr.isatty()
    with tqdm(unit="line", disable=is_hidden) as bar:
        for texts in read_texts(sys.stdin.buffer):
            for text, entities in zip(texts, tagger.predict_entities(texts, **threshold)):
                number += 1
                n_found += len(entities)
                for start, end, label, score in entities:
                    row = (number, start, end, label, score, text[start:end])
                    if arguments.format == "tsv":
                        table.writerow([*row[:4], f"{score:.4f}", row[5]])
                    else:
                        print(json.dumps(dict(zip(columns, row)), ensure_ascii=False))
            sys.stdout.flush()
            bar.update(len(texts))
    note(arguments, f"{number:,} lines, {n_found:,} entities")


def read_texts(stream: Any) -> Iterator[list[str]]:
    """Yield the lines of a stream of bytes, as many at a time as are there and fit a block.

    Lines end at a line feed only, with one carriage return before it.
    """
    n_before, rest = 0, b""
    while block := stream.read1(_BLOCK_BYTES):
        *lines, rest = (rest + block).split(b"\n")
        yield from _decode(lines, n_before)
        n_before += len(lines)
    if rest:
        yield from _decode([rest], n_before)


def _decode(lines: Sequence[bytes], n_before: int) -> Iterator[list[str]]:
    """Yield the texts of some lines; those before one that is not UTF-8, then the error."""
    texts: list[str] = []
    for number, line in enumerate(lines, start=n_before + 1):
        try:
            text = line.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            yield texts
            raise ValueError(
                f"standard input, line {number}: cannot decode the bytes "
                f"{line[error.start : error.end]!r} as 'utf-8' ({error.reason}). The lines before "
                "are tagged. Convert the text first, such as with iconv -f latin1 -t utf-8."
            ) from None
        texts.append(text.removeprefix("\ufeff") if number == 1 else text)
    yield texts
