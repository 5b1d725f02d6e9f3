"""The command: what it prints equals what Python gives, and its errors say where."""

import gzip
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

import skdice
from skdice import (
    DicePairClassifier,
    DiceTextClassifier,
    DiceTokenTagger,
    compare_losses,
    imbalance_report,
)
from skdice._cli import main
from skdice.datasets import (
    make_questions,
    read_conll,
    read_labeled_text,
    read_pairs,
    read_squad,
)
from skdice.estimators import DiceQueryTagger, load_pretrained

from .corpora import easy_corpus, easy_pairs, easy_texts

ROOT = Path(__file__).parents[1]
FAST = ["--set", "lr=2e-3", "--set", "batch_size=8", "--set", "device=cpu"]
TEXTS = ["john saw oslo", "", '"mary" went\tto paris', "the said", " anna\u2028peter ", "berlin"]


def write_conll(path, n, seed=0):
    sentences = zip(*easy_corpus(n, seed))
    path.write_text(
        "\n\n".join("\n".join(map("\t".join, zip(*sentence))) for sentence in sentences),
        encoding="utf-8",
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with a file of each kind."""
    monkeypatch.chdir(tmp_path)
    write_conll(tmp_path / "train.conll", 32)
    write_conll(tmp_path / "test.conll", 20, seed=1)
    pairs = "\n".join(f"{a} .\t{b} .\t{label}" for (a, b), label in zip(*easy_pairs(24)))
    Path("pairs.tsv").write_text(pairs, encoding="utf-8")
    texts = "\n".join(f"{label}\t{text}" for text, label in zip(*easy_texts(24)))
    Path("texts.tsv").write_text(texts, encoding="utf-8")
    X, y = make_questions(12, random_state=0)
    paragraphs = []
    for i, answer in enumerate(y):
        answers = [{"text": answer["text"][0], "answer_start": answer["answer_start"][0]}]
        question = {"id": str(i), "question": X["question"][i], "answers": answers}
        paragraphs.append({"context": X["context"][i], "qas": [question]})
    Path("questions.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    return tmp_path


@pytest.fixture(scope="module")
def tagger(quick_bert, tmp_path_factory):
    """Directory of a saved tagger that finds entities."""
    X, y = easy_corpus(60)
    fitted = DiceTokenTagger(
        quick_bert, loss="ce", max_epochs=6, lr=5e-3, random_state=0, verbose=0, device="cpu"
    ).fit(X, y)
    directory = tmp_path_factory.mktemp("saved") / "tagger"
    fitted.save_pretrained(directory)
    return str(directory)


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command in this process; return its status, stdout and stderr."""

    def run(*argv, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        try:
            status = main([str(word) for word in argv])
        except SystemExit as end:
            status = end.code
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def run_process(line, folder=None, stdin=""):
    """Run a line of the shell."""
    command = line.replace("skdice", f"{shlex.quote(sys.executable)} -m skdice")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        ["bash", "-c", command],
        input=stdin,
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
    )


def read_tsv(text):
    return pd.read_csv(io.StringIO(text), sep="\t", keep_default_na=False, na_values=[""])


def read_json(text):
    return [json.loads(line) for line in text.splitlines()]


class TestReport:
    @pytest.mark.parametrize(
        "file, noted",
        [
            ("train.conll", "32 sentences for --task tagging (guessed), read by read_conll"),
            ("pairs.tsv", "24 pairs for --task pairs (guessed), read by read_pairs"),
            ("texts.tsv", "24 texts for --task texts (guessed), read by read_labeled_text"),
            ("questions.json", "12 questions for --task questions (guessed), read by read_squad"),
            ("words.jsonl", "1 sentence for --task tagging (guessed), read by read_tagged_json"),
            ("lines.jsonl", "1 text for --task texts (guessed), read by read_labeled_json"),
        ],
    )
    def test_what_was_taken(self, folder, run, file, noted):
        Path("words.jsonl").write_text('{"tokens": ["Anna", "ran"], "tags": ["B-PER", "O"]}')
        Path("lines.jsonl").write_text('{"text": "Hi", "label": "ham"}')
        status, out, err = run("report", file)
        assert (status, err) == (0, f"skdice: {file}: {noted}\n")
        assert list(read_tsv(out)) == ["class", "count", "negatives", "positives", "ratio"]

    def test_numbers(self, folder, run):
        expected = imbalance_report(read_conll("train.conll")[1]).reset_index()
        _, out, _ = run("report", "train.conll")
        pd.testing.assert_frame_equal(read_tsv(out), expected, check_dtype=False, rtol=1e-5)
        _, out, _ = run("report", "train.conll", "--format", "json")
        found = pd.DataFrame(read_json(out))
        pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-13)

    def test_task_and_reader_options(self, folder, run):
        Path("columns.txt").write_text("NN,john,x,B-PER\nVB,saw,x,O\n")
        options = ["--task", "tagging", "--read", "separator=,", "--read", "columns=(1, -1)"]
        status, out, err = run("report", "columns.txt", *options)
        assert status == 0
        assert set(read_tsv(out)["class"]) == {"all", "B-PER", "O"}
        assert err == "skdice: columns.txt: 1 sentence for --task tagging, read by read_conll\n"


class TestFit:
    @pytest.mark.parametrize(
        "file, task, read, cls",
        [
            ("train.conll", "tagging", read_conll, DiceTokenTagger),
            ("train.conll", "query-tagging", read_conll, DiceQueryTagger),
            ("pairs.tsv", "pairs", read_pairs, DicePairClassifier),
            ("texts.tsv", "texts", read_labeled_text, DiceTextClassifier),
            ("questions.json", "questions", read_squad, skdice.DiceSpanExtractor),
        ],
    )
    def test_every_task_as_in_python(self, folder, run, tiny_bert, file, task, read, cls):
        argv = ["fit", file, "--task", task, "--model", tiny_bert, "--loss", "ce", "--epochs", 2]
        status, out, err = run(*argv, *FAST, "--seed", 3, "--out", "out/model")
        assert status == 0
        X, y = read(file)
        parameters = {"loss": "ce", "max_epochs": 2, "lr": 2e-3, "batch_size": 8, "device": "cpu"}
        by_hand = cls(tiny_bert, **parameters, random_state=3, verbose=0).fit(X, y)
        saved = load_pretrained("out/model")
        assert type(saved) is cls
        assert saved.get_params() == {**by_hand.get_params(), "verbose": 1}
        assert list(saved.predict(X)) == list(by_hand.predict(X))
        table = read_tsv(out)
        assert list(table["epoch"]) == [1, 2]
        np.testing.assert_allclose(table["train_loss"], by_hand.history_["train_loss"], rtol=1e-5)
        assert "epoch 2/2, loss " in err
        assert f"saved the {cls.__name__} to out/model" in err

    def test_a_file_to_validate_on(self, folder, tiny_bert, capsys):
        run = ["fit", "train.conll", "--model", tiny_bert, "--epochs", "2", *FAST]
        assert main([*run, "--valid", "test.conll", "--out", "t", "--set", "patience=1"]) == 0
        table = pd.read_csv(io.StringIO(capsys.readouterr().out), sep="\t")
        saved = load_pretrained("t")
        best = table["valid_score"][saved.best_epoch_ - 1]
        assert saved.score(*read_conll("test.conll")) == pytest.approx(best, rel=1e-5)
        assert main([*run, "--valid", "texts.tsv", "--out", "u"]) == 2
        assert (
            "texts.tsv looks like labeled text, which is not for --task tagging"
            in capsys.readouterr().err
        )

    def test_quiet_and_warnings_of_one_line(self, folder, run, tiny_bert):
        Path("a.tsv").write_text("ham\tjohn saw oslo\nspam\t" + "mary " * 99 + "\n")
        argv = ["fit", "a.tsv", "--model", tiny_bert, *FAST, "--epochs", 1, "--out", "a", "-q"]
        (line,) = [line for line in run(*argv)[2].splitlines() if "longer than" in line]
        assert line.startswith("skdice: warning: 1 of 2 texts are longer than max_length=")

    def test_place_is_checked_before_the_training(self, folder, run):
        status, _, err = run("fit", "train.conll", "--model", "nowhere", "--out", ".")
        assert status == 2
        assert "has files that skdice did not save: pairs.tsv" in err


def test_compare_equals_python(folder, run, tiny_bert):
    argv = ["compare", "train.conll", "test.conll", "--model", tiny_bert, "--epochs", "1", *FAST]
    argv += ["--losses", "ce", "dice", "--seeds", "0", "1", "--tune-threshold", "--cache", "runs"]
    status, out, err = run(*argv, "--format", "json")
    assert status == 0
    estimator = DiceTokenTagger(tiny_bert, max_epochs=1, lr=2e-3, batch_size=8, device="cpu")
    comparison = compare_losses(
        estimator,
        *read_conll("train.conll"),
        *read_conll("test.conll"),
        losses=("ce", "dice"),
        seeds=(0, 1),
        tune_threshold=True,
        verbose=0,
    )
    expected = comparison.table().reset_index()
    found = pd.DataFrame(read_json(out)).astype(expected.dtypes)
    pd.testing.assert_frame_equal(found, expected, rtol=1e-12)
    assert "4/4" in err
    assert f"skdice: {comparison.caption()}\n" in err

    _, out, err = run(*argv, "--format", "markdown", "--quiet")
    assert out == comparison.to_markdown()
    assert all(line.startswith("skdice: warning: ") for line in err.splitlines())


class TestPredict:
    def expected(self, tagger, **options):
        found = load_pretrained(tagger).predict_entities(TEXTS, **options)
        return [
            {"line": i, **entity._asdict(), "text": text[entity.start : entity.end]}
            for i, (text, entities) in enumerate(zip(TEXTS, found), start=1)
            for entity in entities
        ]

    @pytest.mark.parametrize(
        "file, start, end",
        [(None, "", "\n"), ("rows.txt", "\ufeff", "\r\n"), ("rows.txt.gz", "", "\r")],
    )
    def test_equals_python(self, folder, tagger, run, start, end, file):
        expected = pd.DataFrame(self.expected(tagger))
        assert len(expected) >= 4
        stdin = (start + end.join(TEXTS)).encode("utf-8")
        if file:
            Path(file).write_bytes(gzip.compress(stdin) if file.endswith("gz") else stdin)
        argv = ["predict", tagger, *([file] if file else [])]
        status, out, err = run(*argv, "--format", "json", stdin=stdin)
        assert status == 0
        pd.testing.assert_frame_equal(pd.DataFrame(read_json(out)), expected, rtol=1e-5)
        assert err == f"skdice: 6 lines, {len(expected)} predictions\n"
        _, out, _ = run(*argv, stdin=stdin)
        pd.testing.assert_frame_equal(read_tsv(out), expected, atol=1e-4, rtol=0)

    @pytest.mark.parametrize("name", ["test.conll", "copy.txt"])
    def test_a_file_that_fit_reads(self, folder, tagger, run, name):
        """Words are words, not each line a text, and labels are not read as texts."""
        Path("copy.txt").write_bytes(Path("test.conll").read_bytes())
        X, _ = read_conll("test.conll")
        status, out, err = run("predict", tagger, name, "--format", "json")
        assert status == 0
        assert [
            (row["sentence"], row["start"], row["end"], row["label"]) for row in read_json(out)
        ] == [
            (i, entity.start, entity.end, entity.label)
            for i, entities in enumerate(load_pretrained(tagger).predict_spans(X), start=1)
            for entity in entities
        ]
        assert all(X[row["sentence"] - 1][row["start"]] in row["text"] for row in read_json(out))
        assert "20 sentences for --task tagging, read by read_conll" in err
        assert "20 sentences, " in err
        by_lines = run("predict", tagger, name, "--lines")[2]
        assert by_lines.startswith("skdice: 122 lines, ")

    def test_a_file_of_another_task(self, folder, tagger, run):
        status, out, err = run("predict", tagger, "questions.json")
        assert (status, out) == (2, "")
        assert "looks like squad, which is not for --task tagging. --lines reads it" in err
        assert "Pass --task" not in err  # It is no option here.
        _, _, err = run("score", tagger, "questions.json")
        assert "which is not for --task tagging. Pass --task to read it all the same." in err

    def test_options_of_taggers(self, tagger, run):
        threshold = float(np.median([row["score"] for row in self.expected(tagger)]))
        stdin = "\n".join(TEXTS).encode()
        _, out, _ = run("predict", tagger, "--threshold", threshold, "--device", "cpu", stdin=stdin)
        expected = self.expected(tagger, threshold=threshold)
        assert 0 < len(read_tsv(out)) == len(expected) < len(self.expected(tagger))
        status, out, err = run("predict", tagger, "--threshold", 3)
        assert (status, out) == (2, "")
        assert "must be a float in the range [0, 1]. Got 3" in err
        options = [[], ["--splitter", "words"], ["--splitter", "whitespace"]]
        starts = [run("predict", tagger, *option, stdin=b"oslo,paris")[1] for option in options]
        assert starts[0] == starts[1] != starts[2]

    def test_few_lines(self, tagger, run):
        header = "line\tstart\tend\tlabel\tscore\ttext\n"
        assert run("predict", tagger) == (0, header, "skdice: 0 lines, 0 predictions\n")

    def test_bad_lines(self, tagger, run):
        for stdin, message in [
            (b"oslo\n\nau caf\xe9\n", "line 1: cannot decode this line or one behind it"),
            (b"oslo\n\nau\rcafe\noslo\n", "line 1: a carriage return"),
        ]:
            status, _, err = run("predict", tagger, stdin=stdin)
            assert status == 2
            assert f"skdice: error: standard input, {message}" in err

    @pytest.mark.parametrize(
        "file, task, lines",
        [
            ("texts.tsv", "texts", ["john saw oslo", "", "mary went"]),
            ("pairs.tsv", "pairs", ["john saw\tmary saw", "a\tb"]),
            ("questions.json", "questions", ["Who ran?\tAnna ran.", "Who?\tAnna."]),
            ("pos.conll", "tagging", ["john saw oslo", "mary went."]),
            ("train.conll", "query-tagging", ["john saw oslo", "", "mary went to paris"]),
        ],
    )
    def test_every_task_as_in_python(self, folder, run, tiny_bert, file, task, lines):
        Path("pos.conll").write_text("john\tNN\nran\tVB\n\nmary\tNN\nsaw\tVB\n\n")
        argv = ["fit", file, "--task", task, "--model", tiny_bert, *FAST, "--epochs", 1]
        assert run(*argv, "--out", "a", "-q")[0] == 0
        Path("rows.txt").write_text("\n".join(lines) + "\n")
        status, out, err = run("predict", "a", "rows.txt", "--format", "json")
        assert (status, err.splitlines()[-1][:15]) == (0, f"skdice: {len(lines)} lines")
        estimator, found = load_pretrained("a"), read_json(out)
        assert f"for --task {task}, read by read_" in run("predict", "a", file)[2]
        check_score(run, estimator, task, file)
        if task == "query-tagging":
            entities = estimator.predict_entities(lines)
            assert [row["text"] for row in found] == [
                text[e.start : e.end] for text, row in zip(lines, entities) for e in row
            ]
            return
        X = [tuple(line.split("\t")) for line in lines] if task in ("pairs", "questions") else lines
        if task == "tagging":
            X = [["john", "saw", "oslo"], ["mary", "went", "."]]
            assert [row["text"] for row in found] == [word for row in X for word in row]
        name = "answer" if task == "questions" else "label"
        expected = np.concatenate([np.atleast_1d(row) for row in estimator.predict(X)]).tolist()
        assert [row[name] for row in found] == expected
        if name == "label" and task != "tagging":
            proba = estimator.predict_proba(X).max(axis=1)
            np.testing.assert_allclose([row["score"] for row in found], proba, rtol=1e-5)

    def test_several_labels(self, folder, run, tiny_bert):
        X = easy_texts(12)[0]
        many = np.stack([np.arange(12) % 2, np.ones(12)], axis=1).astype(int)
        fitted = DiceTextClassifier(tiny_bert, max_epochs=1, verbose=0, device="cpu").fit(X, many)
        fitted.save_pretrained("a")
        out = run("predict", "a", "--format", "json", stdin="\n".join(X).encode())[1]
        found = np.zeros_like(many)
        for row in read_json(out):
            found[row["line"] - 1, row["label"]] = 1
        assert found.tolist() == fitted.predict(X).tolist()

    def test_rows_that_do_not_fit_the_model(self, folder, run, tiny_bert):
        run("fit", "pairs.tsv", "--model", tiny_bert, *FAST, "--epochs", 1, "--out", "a", "-q")
        status, out, err = run("predict", "a", stdin=b"a\tb\n\n")
        assert status == 2
        assert "error: line 2: expected two texts with a TAB between; got 1 column in ''" in err
        status, out, err = run("predict", "a", "--threshold", 0.5)
        assert (status, out) == (2, "")
        assert "--threshold is an option of taggers; a holds a DicePairClassifier." in err


def check_score(run, estimator, task, file):
    """Scores are those of the estimator, and the rows of the table those of the classes."""
    status, out, err = run("score", "a", file)
    assert status == 0, err
    reader = {"texts": read_labeled_text, "pairs": read_pairs, "questions": read_squad}
    X, y = reader.get(task, read_conll)(file)
    assert f" {estimator.score(X, y):.4f}\n" in err
    table = read_tsv(out)
    assert ("f1" if task == "questions" else "precision") in table
    labels = {"tagging": "NN", "query-tagging": "PER", "questions": "total"}
    assert labels.get(task, str(y[0])) in table["rows"].tolist()


class TestErrors:
    @pytest.mark.parametrize(
        "argv, message",
        [
            ("report nowhere.tsv", "There is no file nowhere.tsv"),
            ("report bad.conll", "bad.conll, line 3: got 1 column in 'b'"),
            ("report plain.txt", "plain.txt: the texts seem to have no labels. The first words of"),
            ("report plain.jsonl", "plain.jsonl, row 0: 'label' is missing"),
            ("report words.txt", "words.txt: cannot tell what the file holds. Say it with --task"),
            (
                "report train.conll --read tag=xpos",
                "--read: read_conll() got an unexpected keyword",
            ),
            ("fit train.conll --out a --loss dize", "'dize'"),
            ("fit train.conll --out a --set epochs=1", "Invalid parameter 'epochs' for"),
            ("fit train.conll --out bad.conll", "is a file; pass the path of a directory"),
            ("compare train.conll test.conll --losses dice", "baseline"),
            ("predict .", "was not saved by skdice"),
            ("", "the following arguments are required: COMMAND"),
            ("fit train.conll --out a --set lr", "expected NAME=VALUE"),
            ("report train.conll --form json", "unrecognized arguments: --form"),
        ],
    )
    def test_input(self, folder, run, argv, message):
        Path("bad.conll").write_text("a\tO\n\nb\n")
        Path("words.txt").write_text("a\tb\nc\td\n")
        Path("plain.txt").write_text("Hello, you\nHow are you\nFine, thanks\n")
        Path("plain.jsonl").write_text('{"text": "Hello"}\n')
        status, out, err = run(*argv.split())
        assert (status, out) == (2, "")
        assert message in err[err.index("error: ") :]
        assert "Traceback" not in err

    def test_what_is_not_about_the_input(self, folder, run, monkeypatch):
        report = Mock(side_effect=[KeyboardInterrupt(), KeyError("a bug")])
        monkeypatch.setattr("skdice.inspection.imbalance_report", report)
        status, out, err = run("report", "train.conll")
        assert (status, out) == (130, "")
        assert err.endswith("skdice: interrupted\n")
        with pytest.raises(KeyError, match="a bug"):
            main(["report", "train.conll"])


def commands_in(text):
    """Return the commands of a text as (stdin, arguments)."""
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        line = line.strip().removeprefix("$ ").partition("   #")[0]
        if re.match(r"(echo|skdice) ", line):
            before, _, after = line.rpartition("| ")
            stdin = shlex.split(before)[1] + "\n" if before else ""
            found.append((stdin.encode(), shlex.split(after)[1:]))
    return found


@pytest.mark.parametrize("source", ["help", "guide"])
def test_examples_run(folder, run, tiny_bert, source):
    if source == "help":
        helps = [
            run(name, "--help")[1] for name in ("report", "fit", "compare", "score", "predict")
        ]
        text = "".join(text.partition("example:\n")[2] for text in helps)
    else:
        text = (ROOT / "docs" / "guide" / "shell.md").read_text(encoding="utf-8")
    commands = commands_in(text)
    assert [argv[0] for _, argv in commands] == ["report", "fit", "compare", "score", "predict"]
    for stdin, argv in commands:
        extra = []
        if argv[0] in ("fit", "compare"):
            extra = ["--model", tiny_bert, *FAST, "--set", "max_epochs=1"]
        status, out, err = run(*argv, *extra, stdin=stdin)
        assert (status, out != "") == (0, True), err


@pytest.mark.skipif(os.name != "posix", reason="there are pipes as in a shell")
def test_process_and_a_reader_that_stops_early(tagger):
    done = run_process(f"skdice predict {tagger}", stdin="\n".join(TEXTS))
    assert "\r" not in done.stdout
    entities = load_pretrained(tagger).predict_entities(TEXTS)
    assert len(read_tsv(done.stdout)) == sum(map(len, entities))
    assert re.fullmatch(r"skdice: 6 lines, \d+ predictions\n", done.stderr)
    done = run_process(f"set -o pipefail; yes john saw oslo | skdice predict {tagger} | head -1")
    assert (done.stdout, done.stderr) == ("line\tstart\tend\tlabel\tscore\ttext\n", "")
    done = run_process("cat /dev/null | skdice report /dev/stdin")
    assert (done.returncode, "is a pipe" in done.stderr) == (2, True)


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from skdice._cli import main\n"
        "try: main(['fit', '--help'])\n"
        "except SystemExit: print([m for m in ('torch', 'numpy', 'sklearn') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.stdout.splitlines()[-1] == "[]"


def test_version(run):
    assert run("--version") == (0, f"skdice {skdice.__version__}\n", "")
