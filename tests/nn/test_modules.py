import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, BertForTokenClassification

from skdice.nn import MODULES

N_CLASSES = 3


def make_inputs(n_rows=2, length=7):
    ids = torch.arange(n_rows * length).reshape(n_rows, length) % 50 + 10
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "token_type_ids": torch.zeros_like(ids),
        "row": torch.tensor([0, 0, 1]),
        "column": torch.tensor([1, 3, 6]),
    }


def changed_copy(model, path, change=None, **config):
    """Copy a model, with the tensors of its checkpoint or its configuration changed."""
    shutil.copytree(model, path, dirs_exist_ok=True)
    if change is not None:
        tensors = load_file(path / "model.safetensors")
        change(tensors)
        save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})
    before = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**before, **config}))
    return str(path)


def rename(tensors):
    for name in list(tensors):
        tensors[f"other.{name}"] = tensors.pop(name)


LAST = "encoder.layer.1.output.dense.weight"


@pytest.mark.parametrize("change, config, message", [
    (lambda tensors: tensors.pop(LAST), {}, rf"no weights .* 1 parameters of .*'\w+\.{LAST}'"),
    (None, {"intermediate_size": 48}, "no weights of the right shape for 6 parameters"),
    (rename, {}, "has no weights of the right shape"),
], ids=["missing", "of another shape", "of another model"])  # fmt: skip
def test_weights_that_the_checkpoint_does_not_have(tiny_model, tmp_path, change, config, message):
    model = changed_copy(tiny_model, tmp_path, change, **config)
    with pytest.raises(ValueError, match=message):
        MODULES["tagging"](model, N_CLASSES)


@pytest.fixture
def seven_classes(tiny_bert, tmp_path):
    config = AutoConfig.from_pretrained(tiny_bert, num_labels=7)
    BertForTokenClassification(config).save_pretrained(tmp_path)
    return str(tmp_path)


def test_a_head_of_another_size_is_replaced(seven_classes, capfd):
    capfd.readouterr()
    module = MODULES["tagging"](seven_classes, N_CLASSES)
    assert capfd.readouterr() == ("", "")
    assert module(**make_inputs()).shape == (3, N_CLASSES)
    saved = load_file(f"{seven_classes}/model.safetensors")["classifier.weight"]
    kept = MODULES["tagging"](seven_classes, 7).transformer.classifier.weight.detach()
    torch.testing.assert_close(kept, saved)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_checkpoints_in_half_precision_become_float32(tiny_bert, tmp_path, dtype):
    def halve(tensors):
        for name in list(tensors):
            tensors[name] = tensors[name].to(getattr(torch, dtype))

    module = MODULES["tagging"](changed_copy(tiny_bert, tmp_path, halve, dtype=dtype), N_CLASSES)
    assert {parameter.dtype for parameter in module.parameters()} == {torch.float32}
    assert module(**make_inputs()).dtype == torch.float32
