"""What to ask for each type of entity."""

import warnings
from typing import Any

from .._parameters import not_allowed

_QUERIES = {
    "person": "Which people are mentioned by their name, be they real or invented?",
    "location": "Which places are mentioned: countries, cities, regions, mountains, rivers, roads?",
    "organization": "Which organisations are mentioned: companies, parties, teams, agencies?",
    "misc": "Which other names are mentioned: nationalities, languages, events, works, products?",
    "gpe": "Which countries, cities and states are mentioned that have a government?",
    "facility": "Which buildings, airports, bridges and other constructions are mentioned?",
    "vehicle": "Which cars, ships, planes and other vehicles are mentioned?",
    "weapon": "Which weapons are mentioned, such as guns, bombs and missiles?",
    "norp": "Which nationalities, religions and political groups are mentioned?",
    "product": "Which products are mentioned by their name?",
    "event": "Which events are mentioned by their name, such as wars, storms and games?",
    "work_of_art": "Which titles of books, songs, films and other works are mentioned?",
    "law": "Which laws and treaties are mentioned by their name?",
    "language": "Which languages are mentioned?",
    "date": "Which dates and periods are mentioned?",
    "time": "Which times of the day are mentioned?",
    "percent": "Which percentages are mentioned?",
    "money": "Which sums of money are mentioned, with their unit?",
    "quantity": "Which measured amounts are mentioned, such as weights and distances?",
    "ordinal": "Which ordinal numbers are mentioned, such as first and second?",
    "cardinal": "Which plain numbers are mentioned?",
    "disease": "Which diseases, disorders and symptoms are mentioned?",
    "chemical": "Which chemicals and drugs are mentioned?",
    "gene": "Which genes and proteins are mentioned?",
    "species": "Which species of animals, plants and microbes are mentioned?",
}
_NAMES = {
    "per": "person",
    "pers": "person",
    "people": "person",
    "loc": "location",
    "place": "location",
    "org": "organization",
    "organisation": "organization",
    "company": "organization",
    "fac": "facility",
    "veh": "vehicle",
    "wea": "weapon",
    "miscellaneous": "misc",
    "drug": "chemical",
    "protein": "gene",
    "dna": "gene",
}


def default_query(label: str) -> str:
    """Return the query of a label: that of a common type, or else the name of the label."""
    name = label.lower()
    return _QUERIES.get(_NAMES.get(name, name), label.replace("_", " "))


def choose_queries(labels: list[str], given: dict[str, str] | None) -> dict[str, str]:
    """Return the query of each label; labels that were forgotten are named in a warning."""
    given = given or {}
    queries = {label: given.get(label) or default_query(label) for label in labels}
    missing = [label for label in labels if label not in given]
    if given and missing:
        warnings.warn(
            f"queries has no query for {', '.join(map(repr, missing))}; asked is "
            f"{', '.join(repr(queries[label]) for label in missing)}.",
            stacklevel=3,
        )
    return queries


def check_queries(owner: str, name: str, queries: Any) -> None:
    """Raise a ValueError unless queries is None or a dict of label to text."""
    if queries is not None and not isinstance(queries, dict):
        raise not_allowed(owner, name, "None or a dict of label to text", queries)
    for label, query in (queries or {}).items():
        if not isinstance(label, str) or not isinstance(query, str) or not query.strip():
            raise ValueError(
                f"The {name!r} parameter of {owner} must be None or a dict of label to a text "
                f"that is not empty. Got {query!r} for {label!r}."
            )
