"""base_model_digest: another one for other files, whatever their path and times."""

import shutil
import socket

import pytest

from skdice._digest import base_model_digest, base_model_digests

from .tiny_models import change_weights


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def test_what_counts(own_bert, tmp_path):
    first = base_model_digest(own_bert)
    assert first == base_model_digest(str(own_bert)) == base_model_digest(own_bert)
    assert first == base_model_digest(shutil.copytree(own_bert, tmp_path / "elsewhere"))
    (own_bert / "README.md").write_text("A model.")
    (own_bert / ".gitattributes").write_text("*")
    (own_bert / "runs").mkdir()
    assert first == base_model_digest(own_bert)
    change_weights(own_bert)
    second = base_model_digest(own_bert)
    assert second != first
    first = second
    for name in ("config.json", "tokenizer.json"):
        with open(own_bert / name, "a") as file:
            file.write(" ")
        before, first = first, base_model_digest(own_bert)
        assert first != before


def test_hub_ids_are_looked_up_in_the_cache(own_bert, tmp_path, monkeypatch, no_network):
    from huggingface_hub import constants, file_download

    cache = tmp_path / "hub"
    for module in (constants, file_download.constants):
        monkeypatch.setattr(module, "HF_HUB_CACHE", str(cache))
    assert base_model_digest("me/bert") == ""
    place = cache / "models--me--bert"
    shutil.copytree(own_bert, place / "snapshots" / "1a2b")
    change_weights(own_bert)
    shutil.copytree(own_bert, place / "snapshots" / "3c4d")
    (place / "refs").mkdir()
    digests = []
    for commit in ("1a2b", "3c4d"):
        (place / "refs" / "main").write_text(commit)
        digests.append(base_model_digest("me/bert"))
        assert digests[-1] == base_model_digest(place / "snapshots" / commit)
    assert digests[0] != digests[1]
    (place / "snapshots" / "3c4d" / "model.safetensors").unlink()
    assert base_model_digest("me/bert") == "", "the weights are still to come"


@pytest.mark.parametrize("name", ["nobody/nothing", "/no/such/place", "a/b/c", "--", "x" * 200])
def test_nothing_here(name, no_network):
    assert base_model_digest(name) == ""


def test_among_parameters(tiny_bert, tiny_roberta):
    digests = base_model_digests(
        {"model": tiny_bert, "step__model": tiny_roberta, "lr": 1, "a__model": None, "mymodel": ""}
    )
    assert list(digests) == ["model", "step__model"]
    assert digests["model"] == base_model_digest(tiny_bert) != digests["step__model"]
