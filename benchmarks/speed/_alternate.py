"""Contenders that alternate in one run, so that a slow minute of the machine hits all of them."""

import gc
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

Contender = Callable[[], Mapping[str, Any]]


def alternate(contenders: Mapping[str, Contender], rounds: int) -> pd.DataFrame:
    """Call all contenders in turn, in every round.

    Parameters
    ----------
    contenders : mapping of str to callable
        Each gives what it measured, by name.
    rounds : int

    Returns
    -------
    DataFrame
        A row per call: ``round``, ``contender`` and what was measured.
    """
    rows = []
    for number in range(rounds):
        for name, contender in contenders.items():
            gc.collect()  # What the last one left behind is not this one's time.
            rows.append({"round": number, "contender": name, **contender()})
    return pd.DataFrame(rows)


def table_of_rates(
    results: pd.DataFrame, rate: str, reference: str, budgets: Mapping[str, float]
) -> pd.DataFrame:
    """Compare the reference with all contenders, round by round.

    Parameters
    ----------
    results : DataFrame
        As from :func:`alternate`.
    rate : str
        The column to compare; larger is better.
    reference : str
        The contender that the ratios are about.
    budgets : mapping of str to float
        The least ratio to a contender that is aimed at.

    Returns
    -------
    DataFrame
        A row per contender, as text: the median rate; the median of the ratios "reference to this
        contender" of the rounds, and the smallest and largest of them; the budget.
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
