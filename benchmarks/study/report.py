"""The tables of the study, in Markdown."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from .corpora import CORPORA, REGIMES
from .losses import BASELINE, CONTENDERS
from .plan import Cell, Study
from .scores import CellScores, Difference

MISSING = "missing"
TITLES = {
    "tags": "Part of speech",
    "entities": "Named entities",
    "questions": "Question answering",
    "pairs": "Pairs of texts",
    "texts": "Single texts",
}
HEADINGS = {
    "precision": "P",
    "recall": "R",
    "f1": "F1",
    "accuracy": "accuracy",
    "exact_match": "EM",
}
# The paper's differences to cross-entropy with BERT (Tables 5 to 7 and 9; CoNLL03: BERT-MRC).
PAPER_DIFFERENCES = {
    "CoNLL03": {"dsc": 0.29},
    "SQuAD 1.1": {"focal": 0.35, "dice": 0.96, "dsc": 1.07},
    "Quoref": {"focal": 1.24, "dice": 1.93, "dsc": 2.57},
    "MRPC": {"focal": 0.43, "dice": 0.71, "dsc": 0.92},
    "QQP": {"focal": 0.56, "dice": 0.62, "dsc": 0.81},
    "SST-2": {"dice": -0.53, "dsc": -0.06},
    "SST-5": {"dice": -0.94, "dsc": -0.38},
}
INTRODUCTION = f"""\
Scores in percent on the test rows, mean ± standard deviation over the seeds. Δ is the difference to
"{BASELINE}" in points over the seeds that both have, with the 95 % interval of a paired bootstrap
over seeds (each has other training rows) and test rows; with one seed, over test rows alone.
"+ decision": the bias of "O" or the threshold is tuned on dev rows; part of speech, and questions
that all have answers, have none to tune. "tuned": with or without that, whichever had the better
dev score. All settings were chosen on dev rows. "Δ to ce in the
paper": with BERT and all training rows (Tables 5, 6, 7 and 9), where cross-entropy had no tuned
threshold. "{MISSING}": not run yet."""
TUNING_TITLE = """\
### Dev scores of all settings

Learning rate and own parameter: dev score in percent (with a tuned decision)."""
RATIO_INTRODUCTION = f"""\
## Effect of the imbalance ratio

F1, and the difference to {BASELINE}. Positives are left out of the training rows; dev and test rows
keep their ratio."""


def report(study: Study) -> str:
    """Return all tables of what is finished."""
    found = {cell: CellScores(study, cell) for cell in study.cells}
    parts = [INTRODUCTION]
    for regime in dict.fromkeys(cell.regime for cell in study.cells):
        cells = {cell: scores for cell, scores in found.items() if cell.regime == regime}
        if REGIMES[regime].ratio is not None or not any(map(_has_runs, cells.values())):
            continue
        rows = REGIMES[regime].n_rows
        parts.append(f"## {'All' if rows is None else f'{rows:,}'} training rows")
        for task, title in TITLES.items():
            of_task = [scores for scores in cells.values() if scores.corpus.task == task]
            if of_task:
                parts.append(f"### {title}")
            for scores in of_task:
                table = corpus_table(scores)
                parts += [f"{_caption(scores)}\n\n{_markdown(table)}"]
        parts.append(f"### Differences to {BASELINE}\n\n{_markdown(summary_table(cells))}")
        parts.append(f"### Chosen settings\n\n{_markdown(settings_table(study, cells))}")
        parts.append(f"{TUNING_TITLE}\n\n{_markdown(tuning_table(study, list(cells)))}")
    parts += ratio_parts(study, found)
    return "\n\n".join(parts)


def corpus_table(scores: CellScores) -> pd.DataFrame:
    """Make the table of a corpus, a row per contender, in the paper's layout."""
    rows = []
    for name in scores.names:
        row = {"model": name}
        for metric in scores.metrics:
            row[HEADINGS[metric]] = _mean(scores.percent(name, metric))
        row[f"Δ {HEADINGS[scores.metric]} [95 %]"] = _interval(scores, name)
        if scores.corpus.has_decision:
            row[f"{HEADINGS[scores.metric]}, same fits, decision tuned"] = _mean(
                scores.tuned_percent(name)
            )
        if in_paper := PAPER_DIFFERENCES.get(scores.cell.corpus):
            row["Δ to ce in the paper"] = f"{in_paper[name]:+.2f}" if name in in_paper else ""
        failed = f", {scores.n_failed[name]} not finite" if scores.n_failed[name] else ""
        row["seeds"] = f"{len(scores.seeds(name))}{failed}"
        rows.append(row)
    return pd.DataFrame(rows)


def summary_table(cells: dict[Cell, CellScores]) -> pd.DataFrame:
    """Make the table of differences: a column per corpus, and the average of the imbalanced ones.

    An average over fewer corpora than are planned says so. "Above 0" counts the corpora whose
    interval is; "worst" is the smallest difference.
    """
    imbalanced = [scores for scores in cells.values() if scores.corpus.is_imbalanced]
    rows = []
    for name in CONTENDERS:
        if name == BASELINE or not any(name in scores.names for scores in cells.values()):
            continue
        row = {"model": name}
        for cell, scores in cells.items():
            mark = "*" if scores.corpus.is_imbalanced else ""
            difference = _difference_of(scores, name)
            row[f"{cell.corpus}{mark}"] = _difference(difference) if name in scores.names else ""
        rows.append(row)
        if not imbalanced:
            continue
        found = [d for scores in imbalanced if (d := _difference_of(scores, name)) is not None]
        few = "" if len(found) == len(imbalanced) else f" ({len(found)} of {len(imbalanced)} sets)"
        mean = mean_difference(found)
        row["average over imbalanced sets*"] = (
            MISSING if mean is None else _difference(mean, with_interval=True) + few
        )
        n_above = sum(difference.interval[0] > 0 for difference in found)
        row["above 0"] = f"{n_above} of {len(found)}"
        row["worst"] = f"{min(d.mean for d in found):+.1f}" if found else MISSING
    return pd.DataFrame(rows)


def mean_difference(differences: Sequence[Difference]) -> Difference | None:
    """Return the mean of differences on several corpora, whose rows are resampled by themselves."""
    if not differences:
        return None
    # The same generator draws for every corpus; other orders make the resamples independent.
    shuffled = [
        np.random.default_rng(number).permutation(difference.resampled)
        for number, difference in enumerate(differences)
    ]
    return Difference(float(np.mean([d.mean for d in differences])), np.mean(shuffled, axis=0))


def settings_table(study: Study, cells: Iterable[Cell]) -> pd.DataFrame:
    """Make the table of the settings that were best on dev rows."""
    rows = []
    for name in study.contenders:
        row = {"model": name}
        for cell in cells:
            contender = study.contenders_of(cell).get(name)
            best = None if contender is None else study.best(cell, contender)
            missing = "" if contender is None else MISSING
            row[cell.corpus] = missing if best is None else str(best)
        rows.append(row)
    return pd.DataFrame(rows)


def tuning_table(study: Study, cells: Sequence[Cell]) -> pd.DataFrame:
    """Make the table of all dev scores, by which the settings were chosen."""
    fits = dict.fromkeys(
        contender.fit for cell in cells for contender in study.contenders_of(cell).values()
    )
    rows = []
    for fit in fits:
        row = {"fit": fit}
        for cell in cells:
            scores = study.tuning_scores(cell, fit)
            row[cell.corpus] = "; ".join(f"{key}: {_both(found)}" for key, found in scores.items())
        rows.append(row)
    return pd.DataFrame(rows)


def ratio_parts(study: Study, found: dict[Cell, CellScores]) -> list[str]:
    """Return the tables of the imbalance ratio, one for each corpus."""
    cells = {
        cell: scores
        for cell, scores in found.items()
        if REGIMES[cell.regime].ratio is not None and _has_runs(scores)
    }
    parts = [RATIO_INTRODUCTION] if cells else []
    for corpus in dict.fromkeys(cell.corpus for cell in cells):
        rows = []
        for name in study.contenders:
            row = {"model": name}
            for cell, scores in found.items():
                if cell.corpus != corpus or REGIMES[cell.regime].ratio is None:
                    continue
                text = _mean(scores.percent(name, scores.metric))
                difference = scores.difference(name)
                if name != BASELINE and difference is not None:
                    text += f", {_difference(difference, with_interval=True)}"
                row[f"{REGIMES[cell.regime].ratio:g} negatives to a positive"] = text
            rows.append(row)
        parts.append(f"### {corpus}\n\n{_markdown(pd.DataFrame(rows))}")
    return parts


def _caption(scores: CellScores) -> str:
    corpus = CORPORA[scores.cell.corpus]
    ratio = f"{corpus.ratio:g} negatives to a positive"
    if corpus.metric == "accuracy":
        ratio = f"largest class {corpus.ratio:g} times the smallest"
    return f"**{scores.cell.corpus}**, {ratio}:"


def _difference_of(scores: CellScores, name: str) -> Difference | None:
    return scores.difference(name) if name in scores.names else None


def _has_runs(scores: CellScores) -> bool:
    return any(scores.seeds(name) for name in scores.names)


def _mean(percent: np.ndarray) -> str:
    if not len(percent):
        return MISSING
    spread = f" ± {percent.std(ddof=1):.1f}" if len(percent) > 1 else ""
    return f"{percent.mean():.1f}{spread}"


def _both(scores: dict[str, float]) -> str:
    return f"{100 * scores['own']:.1f} ({100 * scores['tuned']:.1f})"


def _interval(scores: CellScores, name: str) -> str:
    return "" if name == BASELINE else _difference(scores.difference(name), with_interval=True)


def _difference(difference: Difference | None, *, with_interval: bool = False) -> str:
    if difference is None:
        return MISSING
    low, high = difference.interval
    if not with_interval:
        return f"{difference.mean:+.1f}"
    return f"{difference.mean:+.1f} [{low:+.1f}, {high:+.1f}]"


def _markdown(table: pd.DataFrame) -> str:
    return table.to_markdown(index=False, disable_numparse=True)
