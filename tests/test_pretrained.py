"""Loading from the hub, without one."""

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
