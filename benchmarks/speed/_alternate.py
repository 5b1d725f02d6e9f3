"""Contenders that alternate in one run, so that a slow minute of the machine hits all of them."""

import gc
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

Contender = Callable[[], Mapping[str, Any]]


def alternate(contenders: Mapping[str, Contender], rounds: int) -> pd.DataFrame:
    """Call all contenders in turn, in every round; return a row per call with what it measured."""
    rows = []
    for number in range(rounds):
        for name, contender in contenders.items():
            gc.collect()  # What the last one left behind is not this one's time.
            rows.append({"round": number, "contender": name, **contender()})
    return pd.DataFrame(rows)


def table_of_rates(
    results: pd.DataFrame, rate: str, reference: str, budgets: Mapping[str, float]
) -> pd.DataFrame:
    """Compare the reference with all contenders of :func:`alternate`, round by round.

    A row per contender, as text: the median of its ``rate``, of which larger is better; the median
    of the ratios "reference to this contender" of the rounds, with the smallest and largest; and
    the least ratio that is aimed at, if ``budgets`` has one.
    """
    rates = results.pivot(index="round", columns="contender", values=rate)
    rows = []
    for name in results["contender"].unique():
        ratios = rates[reference] / rates[name]
        budget = budgets.get(name)
        rows.append(
            {
                "contender": name,
                rate: f"{rates[name].median():,.0f}",
                f"{reference} / contender": f"{ratios.median():.2f}",
                "lowest to highest": f"{ratios.min():.2f} to {ratios.max():.2f}",
                "budget": "" if budget is None else f">= {budget:g}",
                "met": "" if budget is None else "yes" if ratios.median() >= budget else "no",
            }
        )
    return pd.DataFrame(rows)
