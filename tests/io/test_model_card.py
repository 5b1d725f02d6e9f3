"""The model card says what the run was, and its header and tables are well-formed."""

import re
from dataclasses import replace

import pandas as pd
import pytest
from huggingface_hub import ModelCard

from skdice.io._manifest import Manifest
from skdice.io._model_card import Run, model_card
from skdice.losses import DiceLoss
from skdice.tasks import Tagging

from .conftest import CASES

MANIFEST = Manifest(
    estimator="DiceTokenTagger",
    parameters={"model": "dslim/bert-base-NER", "loss": "dice"},
    state={
        "best_epoch_": 3,
        "history_": [{}] * 5,
        "interrupted_": False,
        "_n_training_rows": 14041,
        "_n_unlabeled_rows": 0,
        "lr_": 2e-4,
        "choices_": pd.DataFrame({"parameter": ["lr"], "value": [2e-4], "why": ["It is small."]}),
        "_learned_task": {"word_shapes": False, "crf": False},
        "negative_ratio_": None,
    },
    network={"criterion": DiceLoss(background=2), "precision": "bf16", "base_digest": ""},
    metrics={"valid_score": 0.91237},
    versions={"skdice": "1.2", "torch": "2.13"},
)
RUN = Run(
    texts=Tagging.card,
    manifest=MANIFEST,
    parameters={"lr": 1e-3},
    metric="F1",
    decision={"background_bias_": -0.5},
    classes=["B-LOC", "O"],
)


def with_manifest(**changed):
    return replace(RUN, manifest=replace(MANIFEST, **changed))


def table(card):
    training = card.partition("## What was chosen")[0]
    rows = [line for line in training.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]
    assert all(len(row) == 2 for row in cells)
    return {key: value for key, value in cells if key}


def code_blocks(card):
    return re.findall(r"```python\n(.*?)```", card, re.DOTALL)


class TestText:
    def test_facts(self):
        card = model_card(RUN, "my-tagger")
        tags = ["skdice", "scikit-learn", "transformers", "token-classification", "imbalanced-data"]
        [result] = ModelCard(card).data.eval_results
        found = (result.metric_name, result.metric_type, result.metric_value)
        assert found == ("F1", "f1", 0.91237)
        header = ModelCard(card).data.to_dict()
        assert header.pop("model-index")[0]["name"] == "my-tagger"
        assert header == {
            "base_model": "dslim/bert-base-NER",
            "library_name": "skdice",
            "pipeline_tag": "token-classification",
            "tags": tags,
        }
        assert table(card) == {
            "Loss": "`dice: DiceLoss(background=2)`",
            "Precision": "bf16",
            "Training rows": "14,041",
            "Epochs": "5, of which the weights of epoch 3 are kept",
            "Learning rate": "0.0002",
            "Validation score": "F1 0.9124 (epoch 3)",
            "`background_bias_`": "`-0.5`",
            "Parameter `lr`": "`0.001`",
        }
        chosen = "| `lr` | `0.0002` | It is small. |"
        for text in ("# my-tagger", "`B-LOC`, `O`", "- skdice 1.2", "not calibrated", chosen):
            assert text in card

    def test_nothing_held_out(self):
        card = model_card(with_manifest(metrics={}), "a")
        assert table(card)["Validation score"] == "none: no rows were held out"
        assert "model-index" not in card

    def test_paths_of_this_machine_are_not_told(self, tiny_bert):
        for model in (tiny_bert, "/home/someone/secret/bert", "./secret/bert"):
            card = model_card(with_manifest(parameters={"model": model, "loss": "ce"}), "a")
            assert "base_model" not in card
            assert "secret" not in card
            assert "the local model `bert" in card

    def test_labels_cannot_break_it(self):
        odd = ["a|b", "`code`", "line\nbreak", "---", "x" * 1000, "\ud800", *range(1000)]
        run = replace(RUN, classes=odd, decision={"a": "|\n|`"})
        card = model_card(run, "na\nme")
        assert table(card)["`a`"] == r"`'\|\n\|''`"
        assert "# na me\n" in card
        assert "`line break`" in card
        assert ModelCard(card).data.model_name == "na me"
        assert "x" * 301 not in card
        assert "`93`, and 906 more" in card

    @pytest.mark.parametrize(
        "name, heading",
        [
            ("my-tagger.v2", "my-tagger.v2"),
            ("<img src=x onerror=alert(1)>", r"\<img src=x onerror=alert(1)\>"),
            ("&lt;b&gt;", r"\&lt;b\&gt;"),
            ("[a](b) *c* `d`", r"\[a\](b) \*c\* \`d\`"),
            ("a\n# b", r"a \# b"),
        ],
    )
    def test_the_heading_is_text(self, name, heading):
        card = model_card(RUN, name)
        assert f"\n# {heading}\n" in card
        assert ModelCard(card).data.model_name == " ".join(name.split())


@pytest.mark.parametrize("case", CASES)
def test_the_code_of_every_estimator_runs(fitted, case, tmp_path, monkeypatch):
    estimator, _, _ = fitted(case)
    estimator.save_pretrained(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    for block in code_blocks((tmp_path / "mine" / "README.md").read_text()):
        names = {}
        exec(block, names)
        assert "model" in names
