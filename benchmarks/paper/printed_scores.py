"""The paper's printed F1 beside the F1 of its printed precision and recall.

    python -m benchmarks.paper.printed_scores

``printed_scores.csv`` has the scores as Tables 3 to 8 and 10 of the paper print them. Printed
numbers are rounded to two digits, which changes F1 by at most .01.
"""

from pathlib import Path

import pandas as pd

TABLE = Path(__file__).with_suffix(".csv")
ROUNDING = 0.0151
# The cross-entropy row that DSC is compared with, by table.
BASELINES = {3: "BERT-Tagger", 4: "BERT-Tagger", 5: "BERT-MRC"}


def read_scores() -> pd.DataFrame:
    """Return a row for each score; ``computed`` is the F1 of its precision and recall."""
    scores = pd.read_csv(TABLE)
    precision, recall = scores["precision"], scores["recall"]
    return scores.assign(computed=(2 * precision * recall / (precision + recall)).round(2))


def contradictions(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the rows whose printed F1 is not that of their precision and recall."""
    return scores[(scores["f1"] - scores["computed"]).abs() > ROUNDING]


def gains(scores: pd.DataFrame) -> pd.DataFrame:
    """Return what DSC gains over cross-entropy, where printed and computed F1 disagree."""
    rows = []
    for (table, dataset), part in scores.groupby(["table", "dataset"], sort=False):
        if table in BASELINES:
            f1 = part.set_index("model")[["f1", "computed"]]
            dsc = f1.index[f1.index.str.endswith("DSC")][0]
            rows.append((table, dataset, *(f1.loc[dsc] - f1.loc[BASELINES[table]])))
    table = pd.DataFrame(rows, columns=["table", "dataset", "by printed F1", "by F1 of P and R"])
    return table[(table["by printed F1"] - table["by F1 of P and R"]).abs() > ROUNDING]


def to_markdown() -> str:
    """Return the two tables that ``docs/paper.md`` has."""
    scores = read_scores()
    names = {"precision": "P", "recall": "R", "f1": "printed F1", "computed": "F1 of P and R"}
    wrong = contradictions(scores).rename(columns=names)
    tables = (
        wrong.to_markdown(index=False, floatfmt=".2f"),
        gains(scores).to_markdown(index=False, floatfmt="+.2f", intfmt="d"),
    )
    return "\n\n".join(tables)


if __name__ == "__main__":
    found = read_scores().dropna()
    print(f"{len(contradictions(found))} of {len(found)} rows\n\n{to_markdown()}")
