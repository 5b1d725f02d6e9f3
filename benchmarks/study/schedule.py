"""Carries out the plan in several processes, until it is done or the time is over."""

import math
import time
import traceback
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

from .corpora import CORPORA
from .plan import Study, Task
from .runs import Run, append, execute


def carry_out(study: Study, out: Path, jobs: int, budget_minutes: float | None) -> int:
    """Do what is left of a study; a task whose time would go over the budget is not started.

    Parameters
    ----------
    study : Study
    out : Path
        The file that results are added to.
    jobs : int
        Processes, of one thread each.
    budget_minutes : float or None

    Returns
    -------
    int
        Runs that ended with an error; their tasks are still open.
    """
    deadline = math.inf if budget_minutes is None else time.monotonic() + 60 * budget_minutes
    waiting = study.tasks()
    running: dict[Future[dict[str, Any]], Run] = {}
    n_errors = 0
    with ProcessPoolExecutor(jobs) as pool:
        while True:
            while len(running) < jobs:
                run = take_next(study, waiting, set(running.values()), deadline)
                if run is None:
                    break
                running[pool.submit(execute, run, study.data)] = run
            if not running:
                return n_errors
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                run = running.pop(future)
                try:
                    study.results[run] = future.result()
                except Exception:
                    n_errors += 1
                    print(f"ERROR in {run}:\n{traceback.format_exc()}", flush=True)
                    waiting = [task for task in waiting if study.resolve(task) != run]
                else:
                    append(study.results[run], out)
                    print(describe(run, study.results[run]), flush=True)


def take_next(study: Study, waiting: list[Task], running: set[Run], deadline: float) -> Run | None:
    """Take the first task that can start off the list, with those before it that are done."""
    open_tasks = iter(list(waiting))
    waiting.clear()
    for task in open_tasks:
        run = study.resolve(task)
        if run is not None and run not in running:
            if run in study.results:
                continue
            if time.monotonic() + study.seconds(task) <= deadline:
                waiting.extend(open_tasks)
                return run
        waiting.append(task)
    return None


def describe(run: Run, result: dict[str, Any]) -> str:
    """Say in a line what came of a run; test scores are left to the report."""
    if result["failed"]:
        outcome = result["failed"]
    elif run.stage == "tune":
        scores = result["dev"]
        outcome = f"dev {CORPORA[run.corpus].metric} {100 * scores['own']:.1f}"
        outcome += f", with a tuned decision {100 * scores['tuned']:.1f}"
    else:
        outcome = "predicted the test rows"
    changed = "".join(f", {name} {value:g}" for name, value in run.parameters)
    return (
        f"{run.regime:>9} {run.corpus:<13} {run.fit:<12} lr {run.lr:g}{changed}, seed {run.seed}: "
        f"{outcome} ({result['fit_seconds']:.0f} s)"
    )
