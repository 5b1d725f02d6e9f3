"""Made-up pairs and texts about cities and people, with the mentions that a tagger would find."""

import re

from skdice.text._entities import Entity

GAZETTEER = {
    "LOC": ["Bergen", "Kiel", "Lund", "Oslo", "Rome", "Turku"],
    "PER": ["Ann Lee", "Bo", "Carla", "Dag Holm"],
}
_NAMES = {name: label for label, names in GAZETTEER.items() for name in names}
_PATTERN = re.compile("|".join(map(re.escape, _NAMES)), re.IGNORECASE)
_TYPES = {name.lower(): label for name, label in _NAMES.items()}


class FakeTagger:
    """Finds the entries of the gazetteer; remembers what it was given."""

    def __init__(self):
        self.calls = []

    def predict_entities(self, texts):
        self.calls.append(list(texts))
        return [find(text) for text in texts]


def find(text):
    """Return the entities of a text, in upper or lower case."""
    return [
        Entity(match.start(), match.end(), _TYPES[match.group().lower()], 0.9)
        for match in _PATTERN.finditer(text)
    ]


def find_all(X):
    return [find(row) if isinstance(row, str) else tuple(map(find, row)) for row in X]


def make_pairs(n_positives=6, n_negatives=14):
    """Return pairs, 0/1 labels and mentions; every third row has none that is shared."""
    X, y = [], []
    for i in range(n_positives + n_negatives):
        city = GAZETTEER["LOC"][i % 6]
        person = GAZETTEER["PER"][i % 4]
        if i % 3 == 2:
            X.append((f"Where did {person} go in {1900 + i}?", "Who went where?"))
        else:
            X.append(
                (f"Is {city} older than {1000 + i}?", f"Was {person} in {city} in {1900 + i}?")
            )
        y.append(int(i % 10 < 3 and sum(y) < n_positives))
    assert sum(y) == n_positives
    return X, y, find_all(X)
