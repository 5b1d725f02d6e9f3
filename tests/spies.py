"""A callback that tests look into a fit with, or stop it."""

import signal

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


def stop(error, when=lambda net, count: True):
    """Return what stops a fit that has come so far; Ctrl-C comes as the system sends it."""

    def stop_there(net, count):
        if when(net, count):
            if error is KeyboardInterrupt:
                signal.raise_signal(signal.SIGINT)
            raise error

    return stop_there
