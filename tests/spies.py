"""What tests look into fits with, and what stops them: a callback, and a disk that is full."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields

import pytest
from skorch.callbacks import Callback


class Spy(Callback):
    """Calls a function on an event, with the net and how often the event has happened."""

    only_watches = True

    def __init__(self, event, function=lambda net, count: None):
        self.event = event
        self.function = function
        self.count_ = 0

    def __getattribute__(self, name):
        if name.startswith("on_") and name == self.event:
            return self._call
        return super().__getattribute__(name)

    def _call(self, net, *args, **kwargs):
        self.count_ += 1
        self.function(net, self.count_)


def internals(estimator):
    """Return what has the task, the logits and all that was fitted, for other modules to ask."""
    return estimator.internals


def fitted_state(estimator):
    """Return what a fit has set, but the network: the fields of the task one by one."""
    fitted, task = internals(estimator).fitted, internals(estimator).task
    left_out = ("net", "reader", "task")
    state = {f.name: getattr(fitted, f.name) for f in fields(fitted) if f.name not in left_out}
    of_task = {f.name: getattr(task, f.name) for f in fields(task) if f.name != "decision"}
    return state | of_task | task.decision_attributes


def encoded_rows(estimator, X):
    task = internals(estimator).task
    encoded = task.encode(task.read_X(X), internals(estimator).fitted.reader)
    return getattr(encoded, "dataset", encoded)


def stop(error, when=lambda net, count: True):
    """Return what stops a fit that has come so far; Ctrl-C comes as the system sends it."""

    def stop_there(net, count):
        if when(net, count):
            if error is KeyboardInterrupt:
                signal.raise_signal(signal.SIGINT)
            raise error

    return stop_there


@contextmanager
def limited_file_size(n_bytes: int) -> Iterator[None]:
    """Let writes fail that make a file longer than so many bytes; skip where that cannot be set."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
