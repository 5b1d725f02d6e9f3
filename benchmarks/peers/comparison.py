"""skdice and what people use instead, on the same rows and with the same encoder.

    python -m benchmarks.peers --data path/to/corpora
    python -m benchmarks.peers --data path/to/corpora --corpora SMS --contenders setfit words
    python -m benchmarks.peers --data path/to/corpora --regime all --draws 0
    python -m benchmarks.peers --data ... --encoder MPNet --encoders path/to/encoders

Every contender is a script that is run in a virtual environment of its library, on one thread. The
250 rows (or all) are drawn as in the study, and its metrics score the same test rows. On entities
the rows of skdice are the study's. The others get IOB2 tags: SpanMarker refuses tags without a B,
as draws of CoNLL03 have. Seconds are those of the processor. A finished run is a row of a CSV file
and is not run again; the tables have all that are finished.
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

from skdice.metrics import get_entities

from .._runs import finish
from ..study.corpora import CORPORA, FIRST_DRAW, WHOLE, Part, draw
from ..study.plan import NEW_DRAW, WHOLE_EPOCHS
from ..study.runs import SCORES, encoder_path, read, score

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
RESULTS = HERE / "scores.csv"
ENVIRONMENTS = REPOSITORY / "build" / "peers"
NAMES = ("BTC", "CoNLL03", "BC5CDR", "NCBI-disease", "Amazon-Google", "MRPC", "QQP", "SST-2", "SMS")
OURS = "skdice"
TUNED_EPOCHS = 30
KEY = ("contender", "encoder", "corpus", "regime", "seed")
Key = tuple[str, str, str, str, int]
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
    options : str
        What the script sets of the training, in words.
    precision : str
        Of the training, where the script does not say it itself.
    lr : float
        Of the Trainer, whose new head has five times as much; 0 where the script has none.
    """

    library: str
    settings: str
    script: str
    environment: str
    tasks: tuple[str, ...] = ("entities",)
    options: str = "none set"
    precision: str = "fp32"
    lr: float = 0.0


TRAINER = (
    "head five times lr, 30 epochs (of all rows those of skdice), batches of 16 by length, warmup "
    "0.1, embeddings frozen, best path of IOB2"
)
NGRAMS = "TF-IDF of characters 2 to 4"
REGRESSION = "logistic regression, C 1, balanced"
CONTENDERS = {
    # On entities their runs are the study's.
    "skdice": Contender("skdice", "the defaults", "dice", "skdice", ("pairs", "texts")),
    "skdice_ce": Contender("skdice", "cross-entropy", "dice", "skdice", (), "loss ce"),
    "trainer_defaults": Contender("Trainer", "defaults", "trainer", "transformers"),
    "trainer_tuned": Contender(
        "Trainer", "tuned, constrained", "trainer", "transformers", options=TRAINER, lr=1e-4
    ),
    "trainer_tuned_slow": Contender(
        "Trainer", "tuned, half the rate", "trainer", "transformers", options=TRAINER, lr=5e-5
    ),
    "span_marker": Contender("SpanMarker", "as skdice trains", "spans", "span_marker"),
    "crfsuite": Contender(
        "sklearn-crfsuite",
        "of its tutorial",
        "crf",
        "crfsuite",
        options="c1 0.1, c2 0.1, 100 iterations",
        precision="fp64",
    ),
    "spacy": Contender(
        "spaCy", "of init config", "small_network", "spacy", options="a fifth is held out"
    ),
    "flair": Contender(
        "flair",
        "of its tutorial",
        "fine_tuned_words",
        "flair",
        options="lr 5e-5, 10 epochs, batches of 4",
    ),
    "characters": Contender(
        "scikit-learn",
        "character n-grams",
        "characters",
        "skdice",
        ("pairs",),
        f"{NGRAMS}, {REGRESSION}",
        "fp64",
    ),
    "cosine": Contender(
        "scikit-learn",
        "cosine of character n-grams",
        "cosine",
        "skdice",
        ("pairs",),
        f"{NGRAMS}, the share of matches",
        "fp64",
    ),
    "words": Contender(
        "scikit-learn",
        "words, character n-grams",
        "words",
        "skdice",
        ("texts",),
        f"TF-IDF of words 1 to 2, {NGRAMS}, {REGRESSION}",
        "fp64",
    ),
    "frozen": Contender(
        "sentence-transformers",
        "frozen embeddings",
        "frozen",
        "setfit",
        ("pairs", "texts"),
        "logistic regression, C 10, balanced",
    ),
    "setfit": Contender(
        "SetFit",
        "of its readme",
        "few_shot",
        "setfit",
        ("pairs", "texts"),
        "1 epoch, 20 iterations, batches of 16",
    ),
}


def script_of(contender: str) -> Path:
    """Return the script of a contender."""
    return HERE / "contenders" / f"{CONTENDERS[contender].script}.py"


def count_lines(contender: str) -> int:
    """Count the lines of code that the user writes, as the comments of the script mark them."""
    counted, n_lines = False, 0
    for line in map(str.strip, script_of(contender).read_text(encoding="utf-8").splitlines()):
        if line.startswith(("# Counted", "# Not counted")):
            _, is_for, name = line.partition("# Counted for ")
            counted = contender.startswith(name) if is_for else line == "# Counted"
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


def make_task(key: Key, train: Part, X_test: list[Any], encoders: Path) -> dict[str, Any]:
    """Return what a contender is told, which is all but the labels of the test rows."""
    contender, encoder, corpus, regime, seed = key
    name, y, how = CORPORA[corpus].task, train.y, CONTENDERS[contender]
    return {
        "contender": contender,
        "name": name,
        "encoder": encoder_path(encoder, encoders),
        "X": train.X,
        "y": [to_iob2(tags) for tags in y] if name == "entities" else y,
        "seed": seed,
        "epochs": WHOLE_EPOCHS.get(corpus) if regime == WHOLE else TUNED_EPOCHS,
        "X_test": X_test,
        "lr": how.lr,
        # An encoder of base size is trained in bf16, as skdice does where a CPU has it.
        "precision": how.precision if encoder == "MiniLM" else "bf16",
    }


def run(key: Key, data: Path, environments: Path, encoders: Path) -> dict[str, Any]:
    """Run a contender on a draw of rows, and return a row of the file.

    Draws that choose are scored on dev rows, the others on test rows.
    """
    contender, _, name, regime, seed = key
    parts = draw(name, regime, seed, data)
    scored = parts.test if seed >= FIRST_DRAW or regime == WHOLE else parts.dev
    task = make_task(key, parts.train, scored.X, encoders)
    result = do(contender, task, environments)
    predicted, how = result.pop("predicted"), CONTENDERS[contender]
    row = dict(zip(KEY, key)) | result | {"score": score(CORPORA[name], scored, predicted)}
    return row | {
        "commit": checked_out(),
        "precision": result["precision"] or task["precision"],
        "options": how.options + (f", lr {how.lr:g}" if how.lr else ""),
    }


def checked_out() -> str:
    """Return the commit that is checked out, with "-dirty" if a file differs from it."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=HERE)
    return done.stdout.strip()


def read_results(file: Path) -> pd.DataFrame:
    """Read the runs of a file, and those of skdice on entities, which are the study's.

    On few rows the defaults are cross-entropy, on whole corpora dice. The seed here is the study's
    draw; other networks for the same draw, with other seeds of the study, are left out.
    """
    ours = read(SCORES)
    ours = ours[ours["seed"] == 0].drop(columns="seed")
    ours = ours.rename(columns={"draw": "seed", "seconds": "fit_seconds", "f1": "score"})
    is_whole = ours["regime"] == WHOLE
    epochs = ours["corpus"].map(WHOLE_EPOCHS).where(is_whole, 0)
    is_drawn = (ours["regime"] == "250") & (ours["seed"] >= NEW_DRAW)
    is_entities = ours["corpus"].map(lambda name: CORPORA[name].task == "entities")
    kept = (ours["epochs"] == epochs) & is_entities
    ours = ours[kept & (is_whole | is_drawn)]
    default = ours["regime"].map({WHOLE: "dice", "250": "ce"})
    names = ours["contender"].where(ours["contender"] != default, OURS).replace("ce", "skdice_ce")
    ours = ours.assign(contender=names)[[*KEY, "fit_seconds", "score"]]
    done = pd.read_csv(file, dtype={"regime": str})
    return pd.concat([done, ours], ignore_index=True)


def table(runs: pd.DataFrame, task: str, regime: str = "250", encoder: str = "MiniLM") -> str:
    """Return what skdice scores, and by how much the contenders that have runs differ from it.

    A difference is the mean over the draws that both have. In brackets stand their number and the
    seconds of the fits on them.
    """
    runs = runs[(runs["regime"] == regime) & (runs["encoder"] == encoder)]
    of = {
        key: rows.set_index("seed")[["score", "fit_seconds"]]
        for key, rows in runs.groupby(["corpus", "contender"])
    }
    columns = [c for c in NAMES if CORPORA[c].task == task and (c, OURS) in of]
    lines = []
    for name, contender in CONTENDERS.items():
        cells = []
        for corpus in columns:
            ours = of[corpus, OURS]
            theirs = of.get((corpus, name), ours.iloc[:0])
            draws = ours.index.intersection(theirs.index)
            if draws.empty:
                cells.append("")
                continue
            score, seconds = theirs.loc[draws].mean()
            apart = score - ours.loc[draws, "score"].mean()
            shown = f"{score:.1f}" if name == OURS else f"{apart:+.1f}"
            cells.append(f"{shown} ({len(draws)}; {seconds:.{int(seconds < 10)}f} s)")
        if any(cells):
            lines.append([contender.library, contender.settings, str(count_lines(name)), *cells])
    header = ["library", "settings", "lines", *columns]
    shown = pd.DataFrame(lines, columns=header)
    return str(shown.to_markdown(index=False, disable_numparse=True))


def main() -> None:
    """Run what is asked for and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--corpora", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--regime", choices=("250", WHOLE), default="250")
    parser.add_argument("--encoder", choices=("MiniLM", "MPNet"), default="MiniLM")
    parser.add_argument("--encoders", type=Path, default=Path(), help="directory of MPNet")
    parser.add_argument("--draws", type=int, nargs="+", default=[NEW_DRAW, NEW_DRAW + 1])
    parser.add_argument("--environments", type=Path, default=ENVIRONMENTS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    for environment in sorted({CONTENDERS[name].environment for name in args.contenders}):
        interpreter(environment, args.environments)
    keys = [
        (contender, args.encoder, corpus, args.regime, seed)
        for seed in args.draws
        for corpus in args.corpora
        for contender in args.contenders
        if CORPORA[corpus].task in CONTENDERS[contender].tasks
    ]
    one_run = partial(run, environments=args.environments, encoders=args.encoders)
    finish(keys, KEY, one_run, args.data, args.out, jobs=1)
    runs = read_results(args.out)
    for task in ("entities", "pairs", "texts"):
        print(f"\n{task}\n\n{table(runs, task, args.regime, args.encoder)}")


if __name__ == "__main__":
    main()
