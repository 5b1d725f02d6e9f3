"""A table of losses as Markdown, LaTeX and HTML, which pandas writes."""

import html
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

_TITLES = {
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "accuracy": "Accuracy",
    "exact_match": "EM",
}
_MARKDOWN_SPECIAL = re.compile(r"([\\`*_<|~&])")
# More than pandas escapes: < > | come out as other signs, and Δ stops LaTeX.
_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "Δ": r"$\Delta$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
_LATEX_STYLE: list[Any] = [
    {"selector": "footnotesize", "props": ":;"},
    {"selector": "setlength", "props": r":{\tabcolsep}{3pt};"},
]
_SIGNED = re.compile(r"[+-]\d+\.\d+")


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
    cells = _lay_out(table, metrics, _escape_latex, r"\textbf{{{}}}")
    # The sign of a number is a sign, not a hyphen.
    cells.iloc[:, 1:] = cells.iloc[:, 1:].map(lambda text: _SIGNED.sub(r"$\g<0>$", text))
    return (
        cells.style.hide(axis="index")
        .set_table_styles(_LATEX_STYLE)
        .to_latex(
            column_format=f"@{{}}l{'r' * (cells.shape[1] - 1)}@{{}}",
            position_float="centering",
            hrules=True,
            caption=_escape_latex(caption),
        )
    )


def to_html(table: pd.DataFrame, metrics: Sequence[str], caption: str) -> str:
    """Return an HTML table; parameters as in :func:`to_markdown`."""
    cells = _lay_out(table, metrics, html.escape, "<strong>{}</strong>")
    styler = cells.style.hide(axis="index").set_caption(html.escape(caption))
    # A style sheet, with ids that change, would get lost where HTML is pasted.
    return styler.to_html(exclude_styles=True, table_attributes='style="text-align: right"')


def _lay_out(
    table: pd.DataFrame, metrics: Sequence[str], escape: Callable[[str], str], bold: str
) -> pd.DataFrame:
    """Return the cells as they are written, the difference right after its metric.

    ``bold`` is what a text is put into that is the best of its column.
    """
    columns = {"Loss": [escape(str(label)) for label in table.index]}
    for metric in metrics:
        columns[_TITLES[metric]] = [
            bold.format(escape(text)) if is_best else escape(text)
            for text, is_best in _means(table[metric], table[f"{metric}_sd"])
        ]
        if f"{metric}_delta" in table and len(table) > 1:
            title = escape(f"Δ {_TITLES[metric]} [95 %]")
            columns[title] = [escape(text) for text in _differences(table, f"{metric}_delta")]
    return pd.DataFrame(columns)


def _means(means: pd.Series, deviations: pd.Series) -> list[tuple[str, bool]]:
    """Return the means and whether they are the best, which those are that read as the highest."""
    shown = [f"{mean:.2f}" for mean in means]
    best = max(shown, key=float)
    return [
        (text if math.isnan(sd) else f"{text} ± {sd:.2f}", text == best and len(shown) > 1)
        for text, sd in zip(shown, deviations)
    ]


def _differences(table: pd.DataFrame, name: str) -> list[str]:
    columns = zip(table[name], table[f"{name}_low"], table[f"{name}_high"])
    return [
        "" if math.isnan(delta) else f"{delta:+.2f} [{low:+.2f}, {high:+.2f}]"
        for delta, low, high in columns
    ]


def _escape_markdown(text: str) -> str:
    return _MARKDOWN_SPECIAL.sub(r"\\\1", text)


def _escape_latex(text: str) -> str:
    return "".join(_LATEX_SPECIAL.get(character, character) for character in text)
