"""The training sets of a comparison: as given, positives or negatives added, negatives dropped."""

import random
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from .._inputs import as_python
from .._parameters import check_number
from .._random_state import RandomState, make_rng
from ._augment import make_new_rows
from ._gazetteer import check_gazetteer
from ._labels import find_positive_label, read_labels
from ._mentions import EntityFinder, Mentions, Spans, check_all_mentions, find_mentions
from ._rows import Labels, Rows, Texts, join_rows, make_rows_like, read_rows, take_rows
from ._undersample import draw_negatives


def make_training_sets(
    X: Rows,
    y: Labels,
    *,
    gazetteer: Mapping[str, Sequence[str]],
    mentions: Mentions | None = None,
    tagger: EntityFinder | None = None,
    pos_label: Hashable | None = None,
    extra_negatives: float = 0.25,
    random_state: RandomState = None,
) -> "TrainingSets":
    """Make the training sets of the paper's study of imbalance (section 5.1, Table 8).

    With P positives and more negatives, N:

    ========================  =============================  =============================
    set                       positives                      negatives
    ========================  =============================  =============================
    ``original``              P                              N
    ``+positive``             N, of them N - P new           N
    ``+negative``             P                              2 N - P, of them N - P new
    ``-negative``             P                              P, drawn at random
    ``+positive&negative``    M, of them M - P new           M, of them M - N new
    ========================  =============================  =============================

    with M = N + round(`extra_negatives` N). New rows are given ones with their entity mentions
    replaced by others of the same type. In pairs, positives swap only what is mentioned in both
    texts, so that they stay paraphrases; negatives swap everything.

    Parameters
    ----------
    X : list, tuple, Series or array of str or of 2-tuples, (n, 2) array or two-column DataFrame
        Texts or pairs.
    y : list, tuple, Series or array of shape (n_rows,)
        Labels.
    gazetteer : dict of str to list of str
        The mentions of each type, as `collect_mentions` gives them.
    mentions : list, default=None
        The mentions of each row of X, as `find_mentions` gives them.
    tagger : object with a method ``predict_entities``, default=None
        Finds the mentions if they are not given; exactly one of the two must be.
    pos_label : label, default=None
        The positive label; all others are negatives, and new negatives have the label of the row
        that they were made of. None is the larger of exactly two labels.
    extra_negatives : float, default=0.25
        New negatives of ``+positive&negative`` as a share of the given ones.
    random_state : int, RandomState, Generator or None, default=None
        Seed. NumPy's global random state is neither read nor changed.

    Returns
    -------
    TrainingSets
        Each set is built when it is first asked for, and is the same whichever others are.

    Raises
    ------
    TypeError
        If an argument is of another kind.
    ValueError
        If a parameter, a row, a label or a mention is invalid, or the positives are not fewer than
        the negatives. A set for which too few rows can be swapped raises it when it is asked for.

    Notes
    -----
    The paper says of ``+positive&negative`` both that the distribution of the data stays the same
    and that it is balanced, and gives it the size of ``+positive``, which when balanced leaves no
    room for new negatives. Here it is balanced and larger.

    References
    ----------
    Li et al., "Dice Loss for Data-imbalanced NLP Tasks", ACL 2020, section 5.1.

    Examples
    --------
    >>> from skdice.augmentation import make_training_sets
    >>> X = [("Is Oslo big?", "How big is Oslo?"), ("Is Oslo big?", "Is Oslo wet?"),
    ...      ("Who runs Oslo?", "Is Oslo wet?")]
    >>> y = [1, 0, 0]
    >>> mentions = [([(3, 7, "LOC")], [(11, 15, "LOC")]), ([(3, 7, "LOC")], [(3, 7, "LOC")]),
    ...             ([(9, 13, "LOC")], [(3, 7, "LOC")])]
    >>> sets = make_training_sets(
    ...     X, y, mentions=mentions, gazetteer={"LOC": ["Kiel", "Rome"]}, random_state=0
    ... )
    >>> print(sets.report().to_string())
                        n_rows  n_positive  n_negative  positive_share  n_added  n_removed
    set
    original                 3           1           2        0.333333        0          0
    +positive                4           2           2        0.500000        1          0
    +negative                4           1           3        0.250000        1          0
    -negative                2           1           1        0.500000        0          1
    +positive&negative       4           2           2        0.500000        1          0
    >>> X_new, y_new = sets["+positive"]
    >>> X_new[:3] == X, y_new
    (True, [1, 0, 0, 1])
    """
    rng = make_rng(random_state, "make_training_sets")
    check_number("make_training_sets", "extra_negatives", extra_negatives, low=0, high=float("inf"))
    if (mentions is None) == (tagger is None):
        given = "neither" if mentions is None else "both"
        raise ValueError(f"Pass exactly one of mentions and tagger; got {given}.")
    checked_gazetteer = check_gazetteer(gazetteer)
    X, y = as_python(X), as_python(y)
    rows = read_rows(X)
    labels = read_labels(y, len(rows))
    positive = find_positive_label(labels, pos_label)
    is_positive = [bool(label == positive) for label in labels]
    n_positives = sum(is_positive)
    n_negatives = len(labels) - n_positives
    if n_positives >= n_negatives:
        raise ValueError(
            f"The positives must be the minority; y has {n_positives} rows with the positive label "
            f"{positive!r} and {n_negatives} others. Pass pos_label if another label is meant."
        )
    if tagger is not None:
        mentions = find_mentions(tagger, X)
    every_row = range(len(rows))
    source = _Source(
        X=take_rows(X, every_row),
        y=take_rows(y, every_row),
        rows=rows,
        positive=positive,
        is_positive=is_positive,
        spans=check_all_mentions(rows, mentions),
        gazetteer=checked_gazetteer,
    )
    return TrainingSets(source, extra_negatives, rng.getrandbits(64))


class _Source(NamedTuple):
    """What all sets are made of: the given rows and what can be done to them."""

    X: Rows
    y: Labels
    rows: list[Texts]
    positive: Hashable
    is_positive: list[bool]
    spans: list[tuple[Spans, ...]]
    gazetteer: dict[str, list[str]]


class _Recipe(NamedTuple):
    n_new_positives: int = 0
    n_new_negatives: int = 0
    n_dropped_negatives: int = 0


class TrainingSets(Mapping[str, tuple[Any, Any]]):
    """Training sets by name, as `make_training_sets` makes them.

    A mapping of ``"original"``, ``"+positive"``, ``"+negative"``, ``"-negative"`` and
    ``"+positive&negative"``, in this order, to (X, y) in containers of the kinds given, or those
    that `augment` gives for them. Kept rows come first, in their old order, new positives and then
    new negatives after them: shuffle before a training that does not. Pandas objects with new rows
    are numbered from 0; the others keep their index.

    Sets are built when they are first asked for, and kept.
    """

    def __init__(self, source: _Source, extra_negatives: float, seed: int) -> None:
        self._source = source
        self._seed = seed
        self._built: dict[str, tuple[Any, Any]] = {}
        n_positives = sum(source.is_positive)
        n_negatives = len(source.is_positive) - n_positives
        gap = n_negatives - n_positives
        n_extra = round(extra_negatives * n_negatives)
        self._recipes = {
            "original": _Recipe(),
            "+positive": _Recipe(n_new_positives=gap),
            "+negative": _Recipe(n_new_negatives=gap),
            "-negative": _Recipe(n_dropped_negatives=gap),
            "+positive&negative": _Recipe(n_new_positives=gap + n_extra, n_new_negatives=n_extra),
        }

    def __getitem__(self, name: str) -> tuple[Any, Any]:
        if name not in self._recipes:
            raise KeyError(f"{name!r}; the training sets are {', '.join(map(repr, self))}")
        if name not in self._built:
            self._built[name] = self._build(name)
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._recipes)

    def __len__(self) -> int:
        return len(self._recipes)

    def __contains__(self, name: object) -> bool:
        return name in self._recipes  # The inherited one would build the set.

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self))})"

    def report(self) -> pd.DataFrame:
        """Count the rows of each set; builds those that are not built yet.

        Returns
        -------
        DataFrame
            A row for each set. Columns: ``n_rows``, ``n_positive``, ``n_negative``,
            ``positive_share``, and against the original ``n_added`` and ``n_removed`` rows.
        """
        rows = []
        for name, recipe in self._recipes.items():
            labels = read_labels(self[name][1], len(self[name][0]))
            n_positive = sum(label == self._source.positive for label in labels)
            rows.append(
                {
                    "n_rows": len(labels),
                    "n_positive": n_positive,
                    "n_negative": len(labels) - n_positive,
                    "positive_share": n_positive / len(labels),
                    "n_added": recipe.n_new_positives + recipe.n_new_negatives,
                    "n_removed": recipe.n_dropped_negatives,
                }
            )
        return pd.DataFrame(rows, index=pd.Index(self._recipes, name="set"))

    def _build(self, name: str) -> tuple[Any, Any]:
        source, recipe = self._source, self._recipes[name]
        # A generator of its own, so that a set does not depend on which others were built.
        rng = random.Random(f"{self._seed} {name}")
        n_kept = source.is_positive.count(False) - recipe.n_dropped_negatives
        kept = draw_negatives(source.is_positive, n_kept, rng)
        X, y = take_rows(source.X, kept), take_rows(source.y, kept)
        seen = set(source.rows)
        for are_positive, n_new in (
            (True, recipe.n_new_positives),
            (False, recipe.n_new_negatives),
        ):
            if n_new == 0:
                continue
            try:
                new_rows, origins = make_new_rows(
                    source.rows,
                    [i for i, flag in enumerate(source.is_positive) if flag is are_positive],
                    n_new,
                    spans=source.spans,
                    gazetteer=source.gazetteer,
                    shared_only=are_positive and len(source.rows[0]) == 2,
                    rng=rng,
                    seen=seen,
                    what="positive rows" if are_positive else "negative rows",
                )
            except ValueError as error:
                raise ValueError(f"The set {name!r} cannot be built. {error}") from error
            X = join_rows(X, make_rows_like(source.X, new_rows))
            y = join_rows(y, take_rows(source.y, origins))
        return X, y
