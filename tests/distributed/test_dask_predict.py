import copy
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from skdice import DiceTokenTagger
from skdice.distributed import _predict, predict_parquet

from ..corpora import easy_corpus
from ..io.conftest import CASES, N_ROWS, fit_once
from ..spies import internals, limited_file_size

WORDS = pa.list_(pa.string())
# Columns, type of the predictions.
TABLES = {
    "tagger": (["words"], WORDS), "queries": (["words"], WORDS), "texts": (["text"], pa.string()),
    "labels": (["text"], pa.list_(pa.int8())), "pairs": (["one", "two"], pa.int64()),
    "questions": (["question", "context"], pa.string()),
}  # fmt: skip


@pytest.fixture(scope="module")
def fitted(tiny_models):
    return fit_once(tiny_models)


@pytest.fixture(scope="module")
def tagger(fitted):
    return fitted("tagger")[0]


_RAW = pa.array([b"a", b"b", b"c", b"\xff", b"d", b"e\xc3"])
# Parquet does not check it.
NOT_UTF_8 = pa.Array.from_buffers(pa.string(), 6, _RAW.buffers())


@pytest.fixture
def small_chunks(monkeypatch):
    """Let a part of a few rows be several chunks and row groups."""
    monkeypatch.setattr(_predict, "_CHUNK_ROWS", 3)


def columns_of(case, rows):
    names = TABLES[case][0]
    if len(names) == 1:
        return {names[0]: rows}
    if hasattr(rows, "columns"):
        return {name: rows[name].tolist() for name in names}
    return dict(zip(names, map(list, zip(*rows))))


def write_corpus(directory, columns, cuts=(0, 5, 5, 11, 16)):
    """Write parts of the rows between the cuts; one of them is empty."""
    table = pa.table({"id": range(len(next(iter(columns.values())))), **columns})
    for i, (start, end) in enumerate(itertools.pairwise(cuts)):
        path = directory / ("" if i % 2 else "sub") / f"part-{i}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table.slice(start, end - start), path)
    return directory


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(tmp_path / "corpus", {"words": easy_corpus(N_ROWS, seed=1)[0]})


def predict(estimator, source, destination, columns="words", **options):
    return predict_parquet(estimator, source, destination, columns=columns, verbose=0, **options)


def files_of(directory):
    files = filter(Path.is_file, directory.rglob("*"))
    return sorted(path.relative_to(directory).as_posix() for path in files)


def read(directory):
    """Return the rows of all parts in the order of their ids."""
    return pd.read_parquet(directory).sort_values("id", ignore_index=True)


class TestPredictions:
    @pytest.mark.parametrize("case", TABLES)
    def test_as_predict(self, case, fitted, tmp_path, small_chunks):
        estimator = fitted(case)[0]
        rows = CASES[case][1](N_ROWS, seed=1)[0]
        source = write_corpus(tmp_path / "corpus", columns_of(case, rows))
        table = predict(estimator, source, tmp_path / "out", TABLES[case][0], keep="id")
        names = ["part-1", "part-3", "sub/part-0", "sub/part-2"]
        assert table["part"].tolist() == [f"{name}.parquet" for name in names]
        assert table["n_rows"].tolist() == [0, 5, 5, 6]
        assert table["is_new"].all()
        assert (table["seconds"] > 0).all()
        assert files_of(tmp_path / "out") == sorted(table["part"])
        for name in table["part"]:
            one, other = pq.read_table(source / name), pq.read_table(tmp_path / "out" / name)
            assert other.schema.names == ["id", "prediction"]
            assert other.schema.field("prediction").type == TABLES[case][1]
            assert one["id"].equals(other["id"])
        expected = estimator.predict(rows).tolist()
        assert pa.array(read(tmp_path / "out")["prediction"]).to_pylist() == expected

    def test_one_file_and_hidden_ones(self, tagger, corpus, tmp_path):
        for name in ("_part.parquet", ".part.parquet", "notes.txt"):
            (corpus / name).write_text("no Parquet")
        (corpus / "day.parquet").mkdir()  # Spark names directories like files.
        one = predict(tagger, corpus / "part-3.parquet", tmp_path / "one")
        assert one["part"].tolist() == ["part-3.parquet"]
        (tmp_path / "link.parquet").symlink_to(corpus / "part-3.parquet")
        one = predict(tagger, tmp_path / "link.parquet", tmp_path / "linked")
        assert one["part"].tolist() == ["link.parquet"]
        assert len(predict(tagger, corpus, tmp_path / "a")) == 4
        tagger.save_pretrained(tmp_path / "tagger")
        again = predict(tmp_path / "tagger", corpus, tmp_path / "a")
        assert not again["is_new"].any()

    def test_directories_that_are_links(self, tagger, corpus, tmp_path):
        """They lie on another disk, and have their rows in the corpus."""
        (corpus / "sub").rename(tmp_path / "elsewhere")
        (tmp_path / "elsewhere").rename(tmp_path / "disk")
        (corpus / "sub").symlink_to(tmp_path / "disk")
        (corpus / "_old").symlink_to(tmp_path / "nowhere")
        assert predict(tagger, corpus, tmp_path / "out")["n_rows"].sum() == N_ROWS
        for name, target, message in (
            ("loop", corpus.parent, r"loop' leads back to a directory that it lies in"),
            ("loop", ".", "loop' leads back"),
            ("sub/loop", corpus, "sub/loop' leads back"),
            ("day=2", tmp_path / "nowhere", "day=2' is a link to nothing"),
        ):
            (corpus / name).symlink_to(target)
            with pytest.raises(ValueError, match=message):
                predict(tagger, corpus, tmp_path / "out")
            (corpus / name).unlink()

    def test_groups_of_rows_with_words_in_a_dictionary(self, tagger, tmp_path):
        words = pa.array([["oslo"], ["the", "oslo"]] * 4, pa.list_(pa.string()))
        kind = pa.list_(pa.dictionary(pa.int8(), pa.string()))
        (tmp_path / "corpus").mkdir()
        table = pa.table({"words": words.cast(kind), "id": range(8)})
        pq.write_table(table, tmp_path / "corpus" / "a.parquet", row_group_size=3)
        predict(tagger, tmp_path / "corpus", tmp_path / "out")
        found = pq.read_table(tmp_path / "out")["prediction"].to_pylist()
        assert found == tagger.predict(words.to_pylist()).tolist()

    def test_a_search_in_a_pipeline(self, tagger, corpus, tmp_path):
        search = GridSearchCV(tagger, {}, cv=2)
        search.best_estimator_ = Pipeline([("tag", tagger)])
        predict(Pipeline([("search", search)]), corpus, tmp_path / "out")
        before = Pipeline([("same", FunctionTransformer()), ("search", search)])
        with pytest.raises(ValueError, match="no predictions by this estimator"):
            predict(before, corpus, tmp_path / "out")
        assert not predict(tagger, corpus, tmp_path / "out")["is_new"].any()


class TestResuming:
    def test_finished_parts_stay(self, tagger, corpus, tmp_path):
        out = tmp_path / "out"
        predict(tagger, corpus, out)
        before = {name: (out / name).stat().st_mtime_ns for name in files_of(out)}
        (out / "part-3.parquet").unlink()
        # What a killed process leaves behind.
        (out / "sub" / ".part-0.parquet.0123.unfinished").write_bytes(b"PAR1")
        table = predict(tagger, corpus, out)
        assert table.loc[table["is_new"], "part"].tolist() == ["part-3.parquet"]
        assert table["seconds"].isna().tolist() == (~table["is_new"]).tolist()
        assert files_of(out) == sorted(before)
        changed = [name for name in before if (out / name).stat().st_mtime_ns != before[name]]
        assert changed == ["part-3.parquet"]

    def test_an_error_keeps_what_is_finished(self, tagger, corpus, tmp_path):
        table = pq.read_table(corpus / "sub" / "part-2.parquet")
        bad = table.set_column(1, "words", pa.array([None, *table["words"].to_pylist()[1:]]))
        pq.write_table(bad, corpus / "sub" / "part-2.parquet")
        out = tmp_path / "out"
        with pytest.raises(ValueError, match=r"'sub/part-2.parquet'.*row 0"):
            predict(tagger, corpus, out)
        assert len(files_of(out)) == 3
        pq.write_table(table, corpus / "sub" / "part-2.parquet")
        table = predict(tagger, corpus, out)
        assert table["is_new"].tolist() == [False, False, False, True]

    @pytest.mark.parametrize("change", [
        lambda other: other.set_params(decode="argmax"),
        lambda other: setattr(other, "background_bias_", 0.5),
        lambda other: next(other.net_.module_.parameters()).data.add_(1e-3),
        {"columns": "more"},
        {"output": "tags"},
    ])  # fmt: skip
    def test_another_run(self, change, tagger, tmp_path):
        X = easy_corpus(N_ROWS)[0]
        source = write_corpus(tmp_path / "corpus", {"words": X, "more": X})
        out = tmp_path / "out"
        predict(tagger, source, out)
        if callable(change):
            other = copy.deepcopy(tagger)
            change(other)
            change = {"estimator": other}
        with pytest.raises(ValueError, match="another destination"):
            predict(**{"estimator": tagger, **change}, source=source, destination=out)
        assert not predict(tagger, source, out)["is_new"].any()

    def test_a_part_that_has_changed(self, tagger, corpus, tmp_path):
        out = tmp_path / "out"
        predict(tagger, corpus, out)
        path = corpus / "part-3.parquet"
        pq.write_table(pq.read_table(path).slice(1), path)
        with pytest.raises(ValueError, match=r"part-3.parquet.*as it is now"):
            predict(tagger, corpus, out)
        path.unlink()
        with pytest.raises(ValueError, match=r"no parts but .*'part-3.parquet'"):
            predict(tagger, corpus, out)


class TestBadInput:
    @pytest.mark.parametrize("n_bytes", [2, 200, 600])
    def test_a_full_disk(self, tagger, corpus, tmp_path, n_bytes):
        message = r"Part '.*.parquet' of the predictions could not be saved \(File too large\)"
        with limited_file_size(n_bytes), pytest.raises(OSError, match=message):
            predict(tagger, corpus, tmp_path / "out")
        assert not list((tmp_path / "out").rglob(".*"))

    def test_a_label_that_parquet_cannot_hold(self, tagger, corpus, tmp_path):
        classes = np.array(["B-\ud800", *tagger.classes_[1:]], dtype=object)
        task = replace(internals(tagger).task, classes=classes)
        with pytest.raises(ValueError, match=r"label 'B-.ud800' has a lone surrogate, which Parq"):
            predict(internals(tagger).with_task(task), corpus, tmp_path / "out")
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize("given, error, message", [
        ({"columns": "tokens"}, ValueError, "'part-1.parquet'.*'tokens'"),
        ({"keep": "tokens"}, ValueError, "'tokens'"),
        ({"columns": ["id", "words"]}, ValueError, r"must be 1 \(words\); got"),
        ({"keep": ["id", "id"]}, ValueError, "each of them once"),
        ({"client": "scheduler:8786"}, TypeError, "client must be a distributed.Cl"),
        ({"source": "nothing"}, ValueError, "There is no directory"),
        ({"estimator": DiceTokenTagger()}, NotFittedError, "not fitted"),
        ({"estimator": LogisticRegression()}, TypeError, "fitted estimator of skdice"),
    ])  # fmt: skip
    def test_arguments(self, tagger, corpus, tmp_path, given, error, message):
        arguments = {"estimator": tagger, "source": corpus, "destination": tmp_path / "out"}
        with pytest.raises(error, match=message):
            predict(**{**arguments, **given})
        assert not (tmp_path / "out").exists()

    def test_sources(self, tagger, corpus, tmp_path):
        for destination in (corpus, corpus / "out", corpus.parent):
            with pytest.raises(ValueError, match="must lie beside the source"):
                predict(tagger, corpus, destination)
        (corpus / "part-9.parquet").write_bytes(b"PAR1 and no more")
        with pytest.raises(ValueError, match=r"part-9.parquet. cannot be read"):
            predict(tagger, corpus, tmp_path / "out")

    @pytest.mark.parametrize("case, column, values, row", [
        ("tagger", "words", [["a"]] * 7 + [["b", None]], 7),
        ("pairs", "two", ["a", None, "c", "d"], 1),
        ("texts", "text", NOT_UTF_8, 3),
    ])  # fmt: skip
    def test_bad_rows(self, case, column, values, row, fitted, tmp_path, small_chunks):
        """The error has the rows that were read together, and the row among them."""
        columns = {name: ["a"] * len(values) for name in TABLES[case][0]} | {column: values}
        source = write_corpus(tmp_path / "corpus", columns, (0, len(values)))
        first = row - row % 3
        with pytest.raises(ValueError, match=rf"sub/part-0.parquet', rows {first} to"):
            predict(fitted(case)[0], source, tmp_path / "out", TABLES[case][0])
        assert files_of(tmp_path / "out") == []


def test_progress(tagger, corpus, tmp_path, capsys):
    predict_parquet(tagger, corpus, tmp_path / "out", columns="words")
    assert "4/4" in capsys.readouterr().err
    predict(tagger, corpus, tmp_path / "quiet")
    assert capsys.readouterr() == ("", "")
