"""A table of losses as Markdown, LaTeX and HTML, which pandas writes."""

import html
import math
import re
from collections.abc import Callable, Sequence

import pandas as pd

_TITLES = {
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "accuracy": "Accuracy",
    "exact_match": "EM",
}
_LATEX = str.maketrans(
    {"\\": r"\textbackslash{}", "±": r"$\pm$", "Δ": r"$\Delta$", "~": r"\textasciitilde{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "^": r"\textasciicircum{}"}
    | {sign: f"\\{sign}" for sign in "&%$#_{}"}
)


def to_markdown(table: pd.DataFrame, metrics: Sequence[str], caption: str) -> str:
    """Return a Markdown table with its caption below.

    Parameters
    ----------
    table : DataFrame
        From :meth:`LossComparison.table`.
    metrics : sequence of str
    caption : str
    """
    cells = _lay_out(table, metrics, _escape_markdown, "**{}**")
    sides = ["left", *["right"] * (cells.shape[1] - 1)]
    text = cells.to_markdown(index=False, colalign=sides, disable_numparse=True)
    return f"{text}\n\n{_escape_markdown(caption)}\n"


def to_latex(table: pd.DataFrame, metrics: Sequence[str], caption: str) -> str:
    """Return a LaTeX table in the style of booktabs; parameters as in :func:`to_markdown`."""
    cells = _lay_out(table, metrics, lambda text: text.translate(_LATEX), r"\textbf{{{}}}")
    styler = cells.style.hide(axis="index")
    return styler.to_latex(
        column_format=f"l{'r' * (cells.shape[1] - 1)}",
        position_float="centering",
        hrules=True,
        caption=caption.translate(_LATEX),
    )


def to_html(table: pd.DataFrame, metrics: Sequence[str], caption: str) -> str:
    """Return an HTML table; parameters as in :func:`to_markdown`."""
    cells = _lay_out(table, metrics, html.escape, "<strong>{}</strong>")
    styler = cells.style.hide(axis="index").set_caption(html.escape(caption))
    # A style sheet, with ids that change, would get lost where HTML is pasted.
    return styler.to_html(exclude_styles=True, table_attributes='style="text-align: right"')


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\`*_<|~&])", r"\\\1", text)


def _lay_out(
    table: pd.DataFrame, metrics: Sequence[str], escape: Callable[[str], str], bold: str
) -> pd.DataFrame:
    """Return the cells as they are written: means, the best ones in bold, and differences."""
    columns = {"Loss": [escape(str(label)) for label in table.index]}
    for metric in metrics:
        means = [f"{mean:.2f}" for mean in table[metric]]
        best = max(means, key=float) if len(means) > 1 else None
        columns[_TITLES[metric]] = [
            (bold if mean == best else "{}").format(
                escape(mean if math.isnan(sd) else f"{mean} ± {sd:.2f}")
            )
            for mean, sd in zip(means, table[f"{metric}_sd"])
        ]
        name = f"{metric}_delta"
        if name in table and len(table) > 1:
            parts = zip(table[name], table[f"{name}_low"], table[f"{name}_high"])
            columns[escape(f"Δ {_TITLES[metric]} [95 %]")] = [
                "" if math.isnan(delta) else escape(f"{delta:+.2f} [{low:+.2f}, {high:+.2f}]")
                for delta, low, high in parts
            ]
    return pd.DataFrame(columns)
