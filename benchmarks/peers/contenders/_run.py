"""Fit and predict as a contender does: ``python _run.py SCRIPT TASK RESULT``.

A contender is a script beside this one with ``fit(task)``, ``predict(fitted, X)`` and, if it does
not predict tags of words, ``to_tags(predicted, X)``, which is not timed. The task is a JSON file.
"""

import json
import sys
import time
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

script, question, answer = sys.argv[1:]
contender = import_module(script)
task = SimpleNamespace(**json.loads(Path(question).read_text(encoding="utf-8")))
if task.name == "pairs":
    task.X, task.X_test = [list(map(tuple, rows)) for rows in (task.X, task.X_test)]
seconds = [time.process_time()]
fitted = contender.fit(task)
seconds.append(time.process_time())
predicted = contender.predict(fitted, task.X_test)
seconds.append(time.process_time())
if hasattr(contender, "to_tags"):
    predicted = contender.to_tags(predicted, task.X_test)
result = {
    "predicted": predicted,
    "fit_seconds": seconds[1] - seconds[0],
    "predict_seconds": seconds[2] - seconds[1],
    "precision": getattr(getattr(fitted, "net_", None), "precision", None),
}
written = json.dumps(result, default=lambda array: array.tolist())
Path(answer).write_text(written, encoding="utf-8")
