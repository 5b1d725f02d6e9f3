"""The comparison with other libraries: what is counted, asked, scored, kept and shown."""

import ast
import sys

import pandas as pd
import pytest

from benchmarks._runs import finish
from benchmarks.other_libraries import comparison
from benchmarks.other_libraries.comparison import CONTENDERS, KEY, count_lines, script_of, to_iob2
from benchmarks.study.corpora import draw

# Tags words as they were tagged in training; "%s" is put into the first row of tags.
REMEMBERS_WORDS = """
# User code
def fit(encoder, sentences, tags, epochs, seed):
    return {word: tag for row in zip(sentences, tags) for word, tag in zip(*row)}


def predict(known, sentences):
    tags = [[known.get(word, "O") for word in words] for words in sentences]
    %s
    return tags
# End of user code


from _task import run

run(fit, predict)
"""


@pytest.fixture
def stub(tmp_path, monkeypatch):
    """Puts a script in the place of every contender's, with the tests' own interpreter."""

    def put(change="pass"):
        script = tmp_path / "stub.py"
        script.write_text(REMEMBERS_WORDS % change)
        monkeypatch.setattr(comparison, "script_of", lambda contender: script)
        monkeypatch.setattr(
            comparison, "interpreter", lambda *args: comparison.Path(sys.executable)
        )
        monkeypatch.setenv("PYTHONPATH", str(comparison.HERE / "contenders"))

    return put


@pytest.mark.parametrize(
    "code, n",
    [("", 0), ("a = 1\n", 1), ("\n\na = (\n    1\n)\n  # why\n\n", 3), ("a = 1  # why\n", 1)],
)
def test_lines_between_the_marks_that_hold_code(code, n):
    script = f'"""A."""\nimport b\n# User code\n{code}# End of user code\nrun()\n'
    assert count_lines(script) == n


@pytest.mark.parametrize("name", CONTENDERS)
def test_contender_is_there(name):
    script = script_of(name).read_text(encoding="utf-8")
    assert count_lines(script) > 5
    start, end = script.index(comparison.FIRST_LINE), script.index(comparison.LAST_LINE)
    code = ast.parse(script[start:end])
    functions = {node.name for node in code.body if isinstance(node, ast.FunctionDef)}
    assert {"fit", "predict"} <= functions
    requirements = comparison.HERE / "requirements" / f"{CONTENDERS[name].environment}.txt"
    assert requirements.exists()


@pytest.mark.parametrize(
    "tags, expected",
    [
        ("O I-A I-A O", "O B-A I-A O"),
        ("I-A B-A I-B", "B-A B-A B-B"),
        ("B-A I-A B-A", "B-A I-A B-A"),
        ("", ""),
    ],
)
def test_iob2(tags, expected):
    assert to_iob2(tags.split()) == expected.split()


def test_run_is_a_row_of_the_file(stub, data, tmp_path):
    stub()
    out = tmp_path / "out" / "runs.csv"
    keys = [("skdice_ce", "CoNLL03", 250, 0)]

    def run(key, data):
        return comparison.run(key, data, tmp_path)

    rows = pd.DataFrame([run(key, data) for key in keys])
    assert rows[list(KEY)].values.tolist() == [list(keys[0])]
    assert rows.f1[0] == 100
    assert rows.fit_seconds[0] >= 0
    out.parent.mkdir()
    rows.to_csv(out, index=False)
    again = finish(keys, KEY, run, data, out, jobs=1)
    pd.testing.assert_frame_equal(again, rows)


def test_contender_is_not_told_the_tags_of_the_test_rows(data):
    parts = draw("CoNLL03", "250", 0, data)
    task = comparison.make_task(parts, 12, 0)
    assert task["test_sentences"] == [list(words) for words in parts.test.X]
    assert len(task["tags"]) == len(parts.train.y)
    assert parts.test.y not in task.values()


@pytest.mark.parametrize(
    "change, message",
    [
        ("raise OSError('no such encoder')", "skdice_ce stopped.*no such encoder"),
        ("tags[0].pop()", "tags"),
    ],
)
def test_what_a_contender_does_wrong_is_an_error(change, message, stub, data, tmp_path):
    stub(change)
    with pytest.raises((RuntimeError, ValueError), match=f"(?s){message}"):
        comparison.run(("skdice_ce", "CoNLL03", 250, 0), data, tmp_path)


def test_table_has_means_and_gaps():
    runs = pd.DataFrame(
        [
            ("skdice_ce", "CoNLL03", 250, 0, 70.0, 40.0),
            ("skdice_ce", "CoNLL03", 250, 1, 72.0, 44.0),
            ("trainer_tuned", "BC5CDR", 1000, 0, 60.0, 10.0),
        ],
        columns=[*KEY, "f1", "fit_seconds"],
    )
    lines = {tuple(line.split("|")[1:3]): line for line in comparison.table(runs).splitlines()}
    rows = {tuple(cell.strip() for cell in key): line for key, line in lines.items()}
    assert "CoNLL03, 250" in rows["library", "settings"]
    assert "71.0 (42 s)" in rows["skdice", "cross-entropy, tuned"]
    assert "60.0 (10 s)" in rows["Trainer", "tuned"]
    assert "71.0" not in rows["SpanMarker", "tuned"]
