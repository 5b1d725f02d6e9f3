import html
import re
from collections import namedtuple

import numpy as np
import pytest

from skdice.metrics import RowCounts, count_rows
from skdice.model_selection import LossComparison

# A loss with one seed on the test rows.
ScoredRun = namedtuple("ScoredRun", ["loss", "seed", "fit_seconds", "counts"])
LABELS = ("ce", "dice", "50 % <b>a_b</b> & {c}|~^\\*")


def make_comparison(labels=LABELS, seeds=(0, 1, 2), error_rates=(0.4, 0.3, 0.2), **options):
    rng = np.random.default_rng(0)
    y_true = rng.integers(2, size=150)
    runs = []
    for label, rate in zip(labels, error_rates):
        for seed in seeds:
            y_pred = y_true ^ (rng.random(150) < rate)
            runs.append(ScoredRun(label, seed, 1.5, count_rows("pairs", y_true, y_pred, 1)))
    options = {"baseline": labels[0], "n_train": 1200, "n_epochs": 3} | options
    return LossComparison(runs, **options)


def make_questions(labels=("a", "b")):
    counts = np.array([[1, 1, 1], [0, 0.5, 1], [0, 0, 1]])
    runs = [ScoredRun(label, 0, 1.0, RowCounts("questions", counts)) for label in labels]
    return LossComparison(runs, baseline="a", n_train=10, n_epochs=1)


@pytest.fixture(scope="module")
def comparison():
    return make_comparison()


def read_markdown(text):
    """Return the cells of a Markdown table, without the line below the header."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
    cells = [[re.sub(r"\\(.)", r"\1", cell.strip()) for cell in row] for row in rows]
    assert re.fullmatch(r"[-: ]+", "".join(cells[1]))
    return [cells[0], *cells[2:]]


def test_table(comparison):
    table = comparison.table()
    delta = ["f1_delta", "f1_delta_low", "f1_delta_high"]
    means = ["precision", "precision_sd", "recall", "recall_sd", "f1", "f1_sd"]
    assert list(table) == means + delta
    assert set(table.dtypes) == {np.dtype(float)}
    assert table.index.tolist() == list(LABELS)
    assert table.index.name == "loss"
    for label in LABELS:
        f1 = 100 * comparison.frame.loc[comparison.frame["loss"] == label, "f1"]
        assert table.loc[label, "f1"] == pytest.approx(f1.mean())
        assert table.loc[label, "f1_sd"] == pytest.approx(np.std(f1, ddof=1))
    differences = table["f1"] - table.loc["ce", "f1"]
    assert table["f1_delta"].tolist()[1:] == pytest.approx(differences.tolist()[1:])
    assert table.loc["ce", delta].isna().all()
    others = table.iloc[1:]
    assert (others["f1_delta_low"] < others["f1_delta"]).all()
    assert (others["f1_delta"] < others["f1_delta_high"]).all()


def test_runs_that_predict_other_labels():
    """A label that is not in the test rows has columns in the runs that predict it."""
    y, rng = np.array([*"ab"] * 40), np.random.default_rng(0)
    guesses = {"ce": "a", "dice": "d", "same": "b"}
    found = {name: np.where(rng.random(80) < 0.8, y, label) for name, label in guesses.items()}
    runs = [ScoredRun(name, 0, 1.0, count_rows("texts", y, pred)) for name, pred in found.items()]
    assert len({run.counts.counts.shape for run in runs}) == 2
    table = LossComparison(runs, baseline="ce", n_train=10, n_epochs=1).table().iloc[1:]
    for metric in ("accuracy", "f1"):
        delta, low, high = (table[f"{metric}_delta{end}"] for end in ("", "_low", "_high"))
        assert ((low < delta) & (delta < high)).all()


def test_interval_is_that_of_resampled_mean_differences():
    comparison = make_comparison(seeds=(0, 1))
    counts = [run.counts.counts.astype(float) for run in comparison._runs]
    rng = np.random.default_rng(0)
    differences = []
    for _ in range(2000):
        rows = rng.integers(150, size=150)
        totals = [count[rows].sum(axis=0) for count in counts]
        f1 = [2 * correct / (predicted + actual) for correct, predicted, actual in totals]
        differences.append(100 * (np.mean(f1[2:4]) - np.mean(f1[:2])))
    expected = np.quantile(differences, [0.025, 0.975])
    found = comparison.table().loc["dice", ["f1_delta_low", "f1_delta_high"]]
    assert found.tolist() == pytest.approx(expected.tolist())


def test_differences(comparison):
    found = comparison.differences("recall")
    assert list(found) == ["delta", "delta_low", "delta_high"]
    recall = comparison.table()["recall"]
    assert found.loc["dice", "delta"] == pytest.approx(recall["dice"] - recall["ce"])
    with pytest.raises(ValueError, match="'metric' parameter of LossComparison must be one of"):
        comparison.differences("accuracy")


def test_exact_match_has_a_difference_too():
    table = make_questions().table()
    assert {"exact_match_delta", "f1_delta"} < set(table)
    assert table.loc["b"].drop(["exact_match_sd", "f1_sd"]).tolist() == pytest.approx(
        [100 / 3, 0, 0, 0, 50, 0, 0, 0]
    )
    text = make_questions().to_markdown()
    assert read_markdown(text)[0] == ["Loss", "EM", "Δ EM [95 %]", "F1", "Δ F1 [95 %]"]
    # Equal means are all best.
    assert [text.count(f"**{best}**") for best in ("33.33", "50.00")] == [2, 2]


def expected_cells(comparison):
    rows = []
    for label, row in comparison.table().iterrows():
        cells = [label]
        cells += [
            f"{row[metric]:.2f} ± {row[f'{metric}_sd']:.2f}"
            for metric in ("precision", "recall", "f1")
        ]
        delta, low, high = row[-3:]
        cells.append("" if np.isnan(delta) else f"{delta:+.2f} [{low:+.2f}, {high:+.2f}]")
        rows.append(cells)
    return rows


def best_cells(comparison):
    cells = list(zip(*expected_cells(comparison)))[1:4]
    return [max(column, key=lambda text: float(text.split()[0])) for column in cells]


def test_markdown(comparison):
    header, *rows = read_markdown(comparison.to_markdown())
    assert header == ["Loss", "Precision", "Recall", "F1", "Δ F1 [95 %]"]
    bold = [cell.strip("*") for row in rows for cell in row[1:] if cell.startswith("**")]
    assert sorted(bold) == sorted(best_cells(comparison))
    plain = [[row[0], *(cell.strip("*") for cell in row[1:])] for row in rows]
    assert plain == expected_cells(comparison)
    assert comparison.to_markdown().endswith("training rows.\n")


def test_html(comparison):
    text = comparison.to_html()
    assert f"<caption>{html.escape(comparison.caption())}</caption>" in text
    assert html.escape(LABELS[2]) in text
    assert re.findall("<strong>(.*?)</strong>", text) == best_cells(comparison)
    assert comparison._repr_html_() == text


def test_latex(comparison):
    text = comparison.to_latex()
    assert (
        r"50 \% \textless{}b\textgreater{}a\_b\textless{}/b\textgreater{} \& \{c\}\textbar{}"
        r"\textasciitilde{}\textasciicircum{}\textbackslash{}*"
    ) in text
    for cell in best_cells(comparison):
        mean, deviation = cell.split(" ± ")
        assert rf"\textbf{{{mean} $\pm$ {deviation}}}" in text
    # What is special outside of commands is escaped, and what is opened is closed.
    assert not re.search(r"(?<!\\)[%#]|±|Δ", text)
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")


def test_caption():
    caption = make_comparison(n_held_out=212).caption()
    assert caption.startswith(
        "1,200 training rows (212 more to tune decisions for F1), 150 test rows, epochs 3, seeds "
        "0, 1, 2; mean ± standard deviation over the seeds, in %; Δ to ce with the 95 % interval"
    )
    assert "more to tune" not in make_comparison().caption()
    assert "epochs 'auto'" in make_comparison(n_epochs="auto").caption()
