"""A table of losses as Markdown, LaTeX and HTML."""

import html
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

_TITLES = {
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "accuracy": "Accuracy",
    "exact_match": "EM",
}
_MARKDOWN_SPECIAL = re.compile(r"([\\`*_<|~&])")
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
_HTML_NUMBER = "text-align: right; padding: 0.1em 0.7em"
_HTML_LABEL = "text-align: left; font-weight: normal; padding: 0.1em 0.7em"
_HTML_CAPTION = "caption-side: bottom; text-align: left"
_SIGNED = re.compile(r"[+-]\d+\.\d+")


class Cell(NamedTuple):
    """A text of the table, and whether it is the best of its column."""

    text: str
    is_best: bool = False


def to_markdown(table: pd.DataFrame, metrics: Sequence[str], baseline: str, caption: str) -> str:
    """Return a Markdown table with its caption below.

    Parameters
    ----------
    table : DataFrame
        From :meth:`LossComparison.table`.
    metrics : sequence of str
    baseline, caption : str
    """
    header, rows = lay_out(table, metrics, baseline)

    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"

    def write(cell: Cell) -> str:
        text = _MARKDOWN_SPECIAL.sub(r"\\\1", cell.text)
        return f"**{text}**" if cell.is_best else text

    head = [_MARKDOWN_SPECIAL.sub(r"\\\1", title) for title in header]
    rule = line(["---", *["---:"] * (len(header) - 1)])
    body = [line([write(cell) for cell in row]) for row in rows]
    return "\n".join([line(head), rule, *body, "", _MARKDOWN_SPECIAL.sub(r"\\\1", caption)]) + "\n"


def to_latex(table: pd.DataFrame, metrics: Sequence[str], baseline: str, caption: str) -> str:
    """Return a LaTeX table in the style of booktabs; parameters as in :func:`to_markdown`."""
    header, rows = lay_out(table, metrics, baseline)

    def write(cell: Cell) -> str:
        text = _escape_latex(cell.text)
        return rf"\textbf{{{text}}}" if cell.is_best else text

    def line(cells: Sequence[str]) -> str:
        return rf"    {' & '.join(cells)} \\"

    body = [
        line([_escape_latex(row[0].text), *(_math_signs(write(cell)) for cell in row[1:])])
        for row in rows
    ]
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            r"  \footnotesize",
            r"  \setlength{\tabcolsep}{3pt}",
            rf"  \caption{{{_escape_latex(caption)}}}",
            rf"  \begin{{tabular}}{{@{{}}l{'r' * (len(header) - 1)}@{{}}}}",
            r"    \toprule",
            line([_escape_latex(title) for title in header]),
            r"    \midrule",
            *body,
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def to_html(table: pd.DataFrame, metrics: Sequence[str], baseline: str, caption: str) -> str:
    """Return an HTML table; parameters as in :func:`to_markdown`."""
    header, rows = lay_out(table, metrics, baseline)

    def write(cell: Cell) -> str:
        text = html.escape(cell.text)
        text = f"<strong>{text}</strong>" if cell.is_best else text
        return f'<td style="{_HTML_NUMBER}">{text}</td>'

    def write_label(text: str) -> str:
        return f'<th scope="row" style="{_HTML_LABEL}">{html.escape(text)}</th>'

    head = "".join(
        f'<th scope="col" style="{style}">{html.escape(title)}</th>'
        for title, style in zip(header, [_HTML_LABEL, *[_HTML_NUMBER] * len(header)])
    )
    body = [
        f"<tr>{write_label(row[0].text)}{''.join(write(cell) for cell in row[1:])}</tr>"
        for row in rows
    ]
    return "\n".join(
        [
            '<table class="skdice-loss-comparison">',
            f'<caption style="{_HTML_CAPTION}">{html.escape(caption)}</caption>',
            f"<thead><tr>{head}</tr></thead>",
            "<tbody>",
            *body,
            "</tbody>",
            "</table>",
            "",
        ]
    )


def lay_out(
    table: pd.DataFrame, metrics: Sequence[str], baseline: str
) -> tuple[list[str], list[list[Cell]]]:
    """Return the titles of the columns and the rows, the difference right after its metric."""
    columns = [[Cell(str(label)) for label in table.index]]
    header = ["Loss"]
    for metric in metrics:
        header.append(_TITLES[metric])
        columns.append(_mean_cells(table[metric], table[f"{metric}_sd"]))
        if f"{metric}_delta" in table and len(table) > 1:
            header.append(f"Δ {_TITLES[metric]} [95 %]")
            columns.append(_difference_cells(table, f"{metric}_delta"))
    return header, [list(row) for row in zip(*columns)]


def _mean_cells(means: pd.Series, deviations: pd.Series) -> list[Cell]:
    """Return the means; those that read as the highest are the best."""
    shown = [f"{mean:.2f}" for mean in means]
    best = max(shown, key=float)
    return [
        Cell(text if math.isnan(sd) else f"{text} ± {sd:.2f}", text == best and len(shown) > 1)
        for text, sd in zip(shown, deviations)
    ]


def _difference_cells(table: pd.DataFrame, name: str) -> list[Cell]:
    columns = zip(table[name], table[f"{name}_low"], table[f"{name}_high"])
    return [
        Cell("" if math.isnan(delta) else f"{delta:+.2f} [{low:+.2f}, {high:+.2f}]")
        for delta, low, high in columns
    ]


def _escape_latex(text: str) -> str:
    return "".join(_LATEX_SPECIAL.get(character, character) for character in text)


def _math_signs(text: str) -> str:
    """Set the sign of numbers as a sign, not as a hyphen."""
    return _SIGNED.sub(r"$\g<0>$", text)
