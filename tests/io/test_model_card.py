import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from huggingface_hub import ModelCard

import skdice
from skdice import DiceTokenTagger
from skdice.losses import DiceLoss

from ..spies import internals
from .conftest import CASES

HISTORY = pd.DataFrame(
    {"train_loss": [0.5] * 5, "valid_score": [0.1, 0.2, 0.91237, 0.3, 0.4], "n_texts": [70] * 5},
    index=pd.Index([1, 2, 3, 4, 5], name="epoch"),
)


@pytest.fixture
def card(fitted, tmp_path):
    """Return the card of a fit, of which some parts and parameters are others."""
    estimator = fitted("tagger")[0]
    task = internals(estimator).task
    task = replace(task, classes=np.array(["B-LOC", "O"], dtype=object), bias=-0.5)
    choices = pd.DataFrame({"parameter": ["lr"], "value": [2e-4], "why": ["It is small."]})
    parts = {"task": task, "loss": DiceLoss(background=2), "choices": choices, "history": HISTORY}
    fitted_value = internals(estimator).fitted
    runs = fitted_value.runs.assign(epochs=5, best_epoch=3)
    learned = replace(fitted_value, **parts, runs=runs, score=0.91237, n_rows=14041)

    def make(name="a", parts=None, model="dslim/bert-base-NER"):
        one = DiceTokenTagger(model, lr=1e-3)
        one._fitted = replace(learned, **({} if parts is None else parts))
        one.save_pretrained(tmp_path / name)
        return (tmp_path / name / "README.md").read_text(encoding="utf-8")

    make.task = task
    return make


def table(card):
    training = card.partition("## What was chosen")[0]
    rows = [line for line in training.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]
    assert all(len(row) == 2 for row in cells)
    return {key: value for key, value in cells if key}


def test_facts(card, tiny_bert):
    text = card("my-tagger")
    tags = ["skdice", "scikit-learn", "transformers", "token-classification", "imbalanced-data"]
    assert ModelCard(text).data.to_dict() == {
        "base_model": "dslim/bert-base-NER",
        "library_name": "skdice",
        "pipeline_tag": "token-classification",
        "tags": tags,
    }
    assert table(text) == {
        "Loss": "`DiceLoss(background=2)`", "Precision": "fp32", "Training rows": "14,041",
        "Epochs": "5, of which the weights of epoch 3 are kept", "Learning rate": "0.005",
        "Validation score": "F1 0.9124", "`scheme_`": "`'IOB2'`", "`threshold_`": "`0.0`",
        "`background_bias_`": "`-0.5`", "Parameter `lr`": "`0.001`",
    }  # fmt: skip
    chosen = "| `lr` | `0.0002` | It is small. |"
    version = f"- skdice {skdice.__version__}"
    for part in ("# my-tagger", "`B-LOC`, `O`", version, "not calibrated", chosen):
        assert part in text
    # Nothing is held out; rows are drawn, and others have no labels.
    history = HISTORY.drop(columns="valid_score")
    drawn = {"n_unlabeled": 1000, "negative_ratio": 2.0}
    text = card(parts={"history": history, "score": np.nan, **drawn})
    assert table(text)["Validation score"] == "none: no rows were held out"
    assert table(text)["Training rows"] == (
        "14,041, and 1,000 without labels, which fitted networks labelled; an epoch has all texts "
        "with positives and others drawn anew, 70 texts"
    )
    # Paths of this machine are not told.
    for model in (tiny_bert, "/home/someone/secret/bert", "./secret/bert"):
        text = card(model=model)
        assert "base_model" not in text
        assert "secret" not in text
        assert "the local model `bert" in text


def test_the_loss_is_that_of_the_fit(tiny_bert, tmp_path):
    """What is set since counts for the next fit."""
    rows = [["Anna", "is", "in", "Oslo"]] * 4, [["B-PER", "O", "O", "B-LOC"]] * 4
    tagger = DiceTokenTagger(tiny_bert, max_epochs=1, random_state=0, verbose=0)
    for n, name in enumerate(("CrossEntropyLoss", "DiceLoss"), 1):
        tagger.set_params(loss="ce" if n == 1 else "dice", n_members=n).fit(*rows)
        tagger.set_params(loss="focal").save_pretrained(tmp_path / name)
        shown = table((tmp_path / name / "README.md").read_text(encoding="utf-8"))
        assert shown["Epochs"] == " and ".join(["1"] * n)
        assert shown["Loss"].startswith(f"`{name}(")


def test_labels_cannot_break_it(card):
    odd = ["a|b", "`code`", "line\nbreak", "---", "x" * 1000, "\ud800", *map(str, range(1000))]
    task = replace(card.task, classes=np.array(odd, dtype=object), scheme="|\n|`")
    text = card("na\nme", {"task": task})
    assert table(text)["`scheme_`"] == r"`'\|\n\|''`"
    assert "# na me\n" in text
    assert "`line break`" in text
    assert "x" * 301 not in text
    assert "`93`, and 906 more" in text


@pytest.mark.parametrize("case", CASES)
def test_the_code_of_every_estimator_runs(fitted, case, tmp_path, monkeypatch):
    estimator, _, _ = fitted(case)
    estimator.save_pretrained(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    card = (tmp_path / "mine" / "README.md").read_text()
    for block in re.findall(r"```python\n(.*?)```", card, re.DOTALL):
        names = {}
        exec(block, names)
        assert "model" in names
