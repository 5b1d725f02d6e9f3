"""What a comparison of losses found: scores, a table with intervals, and its exports."""

import html
import math
import re
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .._parameters import check_option
from ..metrics import RowCounts

_N_RESAMPLES = 2000
_LATEX = str.maketrans(
    {"\\": r"\textbackslash{}", "±": r"$\pm$", "Δ": r"$\Delta$", "~": r"\textasciitilde{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "^": r"\textasciicircum{}"}
    | {sign: f"\\{sign}" for sign in "&%$#_{}"}
)


class ScoredRun(NamedTuple):
    """A loss with one seed on the test rows, the seconds of its fit and what it got right."""

    loss: str
    seed: int
    fit_seconds: float
    counts: RowCounts


class LossComparison:
    """Scores of several losses and seeds on the same test rows; :func:`compare_losses` makes it.

    Attributes
    ----------
    frame : DataFrame
        A row per loss and seed: ``loss``, ``seed``, ``fit_seconds`` and the metrics, in [0, 1]:
        ``precision``, ``recall``, ``f1`` (taggers of entities, pairs), ``exact_match``, ``f1``
        (questions), or ``accuracy``, ``f1`` (texts, other tags).
    losses : tuple of str
        In the order of the table.
    seeds : tuple of int
    metrics : tuple of str
    baseline : str
        The loss that the others are compared with.
    n_train, n_held_out, n_test : int
        Rows that each run was trained on, that its decision was tuned on, and that it is scored on.
    n_epochs : int or "auto"

    Notes
    -----
    F1 is entity-level micro F1; F1 of ``pos_label`` with two classes, macro F1 with more, micro F1
    with several labels per row; SQuAD's F1 of answers.

    The interval of a difference comes from a paired bootstrap of the test rows: 2,000 resamples,
    the same for all runs. Each gives a difference of means over the seeds; the interval goes from
    the 2.5th to the 97.5th percentile of these. It covers *other test rows*, but not other seeds or
    training rows. So with few seeds it is too narrow for "this loss is better on such data".
    """

    def __init__(
        self,
        runs: Sequence[ScoredRun],
        *,
        baseline: str,
        n_train: int,
        n_epochs: int | str,
        n_held_out: int = 0,
    ) -> None:
        self._runs = list(runs)  # every loss with every seed, loss by loss
        self.losses = tuple(dict.fromkeys(run.loss for run in runs))
        self.seeds = tuple(dict.fromkeys(run.seed for run in runs))
        self.metrics = runs[0].counts.metrics
        self.baseline = baseline
        self.n_train = n_train
        self.n_held_out = n_held_out
        self.n_test = len(runs[0].counts.counts)
        self.n_epochs = n_epochs
        names = ("loss", "seed", "fit_seconds")
        self.frame = pd.DataFrame(
            [dict(zip(names, run)) | run.counts.of_all_rows() for run in self._runs]
        )

    def __repr__(self) -> str:
        return f"{self._lay_out(str, '{}').to_string(index=False)}\n{self.caption()}"

    def table(self) -> pd.DataFrame:
        """Sum the scores up, a row per loss.

        Returns
        -------
        DataFrame
            Index ``loss``; all numbers are percentages. For each metric the mean over the seeds,
            and ``<metric>_sd``, the standard deviation (missing with one seed). F1, exact match and
            accuracy have three more: ``<metric>_delta``, ``<metric>_delta_low`` and
            ``<metric>_delta_high``, as of :meth:`differences`.
        """
        scores = self.frame.groupby("loss", sort=False)[list(self.metrics)]
        means, deviations = scores.mean() * 100, scores.std() * 100
        columns: dict[Hashable, pd.Series] = {}
        for metric in self.metrics:
            columns[metric] = means[metric]
            columns[f"{metric}_sd"] = deviations[metric]
            if metric not in ("precision", "recall"):
                columns.update(self.differences(metric).add_prefix(f"{metric}_").items())
        return pd.DataFrame(columns)

    def differences(self, metric: str = "f1") -> pd.DataFrame:
        """Return the differences of a metric to the baseline.

        Parameters
        ----------
        metric : str, default="f1"
            One of ``metrics``.

        Returns
        -------
        DataFrame
            Index ``loss``; columns ``delta``, ``delta_low`` and ``delta_high``, the difference of
            the means and its 95 % interval, in percentage points. Missing for the baseline.
        """
        check_option("LossComparison", "metric", metric, self.metrics)
        frame = pd.DataFrame(
            self._differences[:, :, self.metrics.index(metric)],
            index=pd.Index(self.losses, name="loss"),
            columns=["delta", "delta_low", "delta_high"],
        )
        frame.loc[self.baseline] = np.nan
        return frame

    def to_markdown(self) -> str:
        """Return the table in Markdown, the best mean of each metric in bold, with a caption."""
        cells = self._lay_out(_escape_markdown, "**{}**")
        sides = ["left", *["right"] * (cells.shape[1] - 1)]
        text = cells.to_markdown(index=False, colalign=sides, disable_numparse=True)
        return f"{text}\n\n{_escape_markdown(self.caption())}\n"

    def to_latex(self) -> str:
        r"""Return a LaTeX table, the best mean of each metric in bold, with a caption.

        It needs ``\usepackage{booktabs}``.
        """
        cells = self._lay_out(lambda text: text.translate(_LATEX), r"\textbf{{{}}}")
        return cells.style.hide(axis="index").to_latex(
            column_format=f"l{'r' * (cells.shape[1] - 1)}",
            position_float="centering",
            hrules=True,
            caption=self.caption().translate(_LATEX),
        )

    def to_html(self) -> str:
        """Return an HTML table, the best mean of each metric in bold, with a caption."""
        cells = self._lay_out(html.escape, "<strong>{}</strong>")
        styler = cells.style.hide(axis="index").set_caption(html.escape(self.caption()))
        # A style sheet, with ids that change, would get lost where HTML is pasted.
        return styler.to_html(exclude_styles=True, table_attributes='style="text-align: right"')

    _repr_html_ = to_html

    def plot(self, ax: Any = None, *, metric: str = "f1") -> Any:
        """Draw the means with their intervals and the single seeds.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        metric : str, default="f1"
            One of ``metrics``.

        Returns
        -------
        LossComparisonDisplay
        """
        from ..inspection import LossComparisonDisplay

        return LossComparisonDisplay(self, metric=metric).plot(ax)

    def caption(self) -> str:
        """Say in a line what the budget was and what the numbers are."""
        more = f" ({self.n_held_out:,} more to tune decisions for F1)" if self.n_held_out else ""
        seeds = ", ".join(map(str, self.seeds))
        mean = "in %" if len(self.seeds) == 1 else "mean ± standard deviation over the seeds, in %"
        delta = ""
        if len(self.losses) > 1:
            delta = (
                f"; Δ to {self.baseline} with the 95 % interval of a paired bootstrap over the "
                f"test rows ({_N_RESAMPLES:,} resamples), which covers neither seeds nor training "
                f"rows"
            )
        return (
            f"{self.n_train:,} training rows{more}, {self.n_test:,} test rows, "
            f"epochs {self.n_epochs!r}, seeds {seeds}; {mean}{delta}."
        )

    def _lay_out(self, escape: Callable[[str], str], bold: str) -> pd.DataFrame:
        """Return the cells as they are written: means, the best ones in bold, and differences."""
        table = self.table()
        columns = {"Loss": [escape(str(label)) for label in table.index]}
        for metric in self.metrics:
            means = [f"{mean:.2f}" for mean in table[metric]]
            best = max(means, key=float) if len(means) > 1 else None
            title = "EM" if metric == "exact_match" else metric.capitalize()
            columns[title] = [
                (bold if mean == best else "{}").format(
                    escape(mean if math.isnan(sd) else f"{mean} ± {sd:.2f}")
                )
                for mean, sd in zip(means, table[f"{metric}_sd"])
            ]
            name = f"{metric}_delta"
            if name in table and len(table) > 1:
                parts = zip(table[name], table[f"{name}_low"], table[f"{name}_high"])
                columns[escape(f"Δ {title} [95 %]")] = [
                    "" if math.isnan(delta) else escape(f"{delta:+.2f} [{low:+.2f}, {high:+.2f}]")
                    for delta, low, high in parts
                ]
        return pd.DataFrame(columns)

    @cached_property
    def _differences(self) -> np.ndarray:
        """Difference to the baseline, lower and upper bound, (n_losses, 3, n_metrics)."""
        shape = (len(self.losses), len(self.seeds))
        scores = self.frame[list(self.metrics)].to_numpy().reshape(*shape, -1).mean(axis=1)
        # All runs in one table, so that they have the same resamples.
        counts = [run.counts.counts for run in self._runs]
        table = np.concatenate(counts, axis=1).astype(np.float64)
        rng, n_rows = np.random.default_rng(0), len(table)
        sums = np.empty((_N_RESAMPLES, table.shape[1]))
        for total in sums:
            times_drawn = np.bincount(rng.integers(n_rows, size=n_rows), minlength=n_rows)
            np.matmul(times_drawn.astype(np.float64), table, out=total)
        # A run that predicts other labels has other columns.
        parts = np.split(sums, np.cumsum([count.shape[1] for count in counts])[:-1], axis=1)
        resampled = np.stack([run.counts.scores(part) for run, part in zip(self._runs, parts)])
        resampled = resampled.reshape(*shape, _N_RESAMPLES, -1).mean(axis=1)
        base = self.losses.index(self.baseline)
        bounds = np.quantile(resampled - resampled[base], [0.025, 0.975], axis=1)
        return 100 * np.stack([scores - scores[base], *bounds], axis=1)


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\`*_<|~&])", r"\\\1", text)
