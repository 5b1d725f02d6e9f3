"""What every contender does around the code of its user; the standard library alone."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def run(
    fit: Callable[..., Any],
    predict: Callable[[Any, list[list[str]]], Any],
    to_tags: Callable[[Any, list[list[str]]], list[list[str]]] | None = None,
) -> None:
    """Read the task that is the first argument, and write what came of it to the second.

    Parameters
    ----------
    fit : callable
        ``fit(encoder, sentences, tags, epochs, seed)`` returns what `predict` takes.
    predict : callable
        ``predict(fitted, sentences)``.
    to_tags : callable, optional
        ``to_tags(predicted, sentences)``, for libraries that do not predict tags. It is not timed.
    """
    task = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    start = time.process_time()
    fitted = fit(*(task[name] for name in ("encoder", "sentences", "tags", "epochs", "seed")))
    fit_seconds = time.process_time() - start
    start = time.process_time()
    tags = predict(fitted, task["test_sentences"])
    predict_seconds = time.process_time() - start
    if to_tags is not None:
        tags = to_tags(tags, task["test_sentences"])
    result = {
        "tags": [[str(tag) for tag in row] for row in tags],
        "fit_seconds": fit_seconds,
        "predict_seconds": predict_seconds,
    }
    Path(sys.argv[2]).write_text(json.dumps(result), encoding="utf-8")
