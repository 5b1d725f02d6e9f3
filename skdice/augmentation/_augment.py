"""New rows of a label, made of given ones by other entity mentions."""

import random
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from .._inputs import as_python
from .._parameters import check_bool, check_number, check_option
from .._random_state import RandomState, make_rng
from ._gazetteer import check_gazetteer
from ._labels import check_label, find_larger_label, read_labels
from ._mentions import Mentions, Spans, check_all_mentions
from ._rows import SomeLabels, SomeRows, Texts, make_rows_like, read_rows, take_rows
from ._swap import check_shared_only, iter_swaps, make_template


def augment(
    X: SomeRows,
    y: SomeLabels,
    n_new: int,
    *,
    label: Hashable,
    mentions: Mentions,
    gazetteer: Mapping[str, Sequence[str]],
    shared_only: bool | str = "auto",
    random_state: RandomState = None,
) -> tuple[SomeRows, SomeLabels]:
    """Make new rows of a label by swapping the entity mentions of its rows.

    The rows of the label that have a mention to swap are the templates, in random order. Each is
    used once before any is used twice.

    Parameters
    ----------
    X : list, tuple, Series or array of str or of 2-tuples, (n, 2) array or two-column DataFrame
        Texts or pairs.
    y : list, tuple, Series or array of shape (n_rows,)
        Labels.
    n_new : int
        Number of new rows.
    label : label
        The label of the templates and so of the new rows.
    mentions : list
        The mentions of each row of X, as `find_mentions` gives them.
    gazetteer : dict of str to list of str
        The mentions of each type, as `collect_mentions` gives them.
    shared_only : bool or "auto", default="auto"
        Replace only what is mentioned in both texts of a pair, so that a paraphrase stays one.
        ``"auto"`` does so if `label` is the larger of the two labels of y (any number of labels
        with single texts).
    random_state : int, RandomState, Generator or None, default=None
        Seed. NumPy's global random state is neither read nor changed.

    Returns
    -------
    X_new, y_new : containers of the kinds given
        The new rows only, all distinct and none equal to a row of X. Pandas objects are numbered
        from 0. Of other libraries (polars, pyarrow, datasets) columns come out as lists, tables as
        a DataFrame of pandas.

    Raises
    ------
    TypeError
        If X, y, the mentions or the gazetteer are of another kind.
    ValueError
        If a parameter, a row, a label or a mention is invalid, or if fewer than `n_new` distinct
        rows can be made.

    See Also
    --------
    swap_mentions : What is done to a row.
    make_training_sets : Sets with augmented positives, negatives or both.

    Examples
    --------
    >>> from skdice.augmentation import augment
    >>> X, y = ["Oslo is lovely", "We left Oslo"], ["good", "bad"]
    >>> mentions = [[(0, 4, "LOC")], [(8, 12, "LOC")]]
    >>> gazetteer = {"LOC": ["Oslo", "Rome"]}
    >>> augment(X, y, 1, label="good", mentions=mentions, gazetteer=gazetteer)
    (['Rome is lovely'], ['good'])
    """
    rng = make_rng(random_state, "augment")
    check_number("augment", "n_new", n_new, low=0, integer=True)
    X, y = as_python(X), as_python(y)
    rows = read_rows(X)
    labels = read_labels(y, len(rows))
    check_label(labels, label, "label")
    n_texts = len(rows[0])
    is_shared = _check_shared_only(shared_only, labels, label, n_texts)
    new_rows, origins = make_new_rows(
        rows,
        [i for i, other in enumerate(labels) if other == label],
        int(n_new),
        spans=check_all_mentions(rows, mentions),
        gazetteer=check_gazetteer(gazetteer),
        shared_only=is_shared,
        rng=rng,
        seen=set(rows),
        what=f"rows with the label {label!r}",
    )
    y_new: Any = take_rows(y, origins)
    if hasattr(y_new, "reset_index"):
        y_new = y_new.reset_index(drop=True)
    return make_rows_like(X, new_rows), y_new


def make_new_rows(
    rows: Sequence[Texts],
    templates: Sequence[int],
    n_new: int,
    *,
    spans: Sequence[tuple[Spans, ...]],
    gazetteer: Mapping[str, list[str]],
    shared_only: bool,
    rng: random.Random,
    seen: set[Texts],
    what: str,
) -> tuple[list[Texts], list[int]]:
    """Make new rows of some of the rows; all arguments are checked ones.

    Parameters
    ----------
    rows : sequence of tuple of str
    templates : sequence of int
        The rows to make new ones of.
    n_new : int
    spans : sequence of length n_rows
    gazetteer : dict of str to list of str
    shared_only : bool
    rng : random.Random
    seen : set of tuple of str
        Rows that must not be made; the new ones are added.
    what : str
        What the error calls the templates.

    Returns
    -------
    new_rows : list of tuple of str
    origins : list of int
        The row that each new one was made of.

    Raises
    ------
    ValueError
        If fewer than `n_new` rows can be made.
    """
    made = [(i, make_template(rows[i], spans[i], gazetteer, shared_only)) for i in templates]
    sources = [(i, iter_swaps(template, rng)) for i, template in made if template is not None]
    n_sources = len(sources)
    rng.shuffle(sources)
    new_rows: list[Texts] = []
    origins: list[int] = []
    while sources and len(new_rows) < n_new:
        productive = []
        for i, swaps in sources:
            if len(new_rows) == n_new:
                break
            texts = next((texts for texts in swaps if texts not in seen), None)
            if texts is not None:
                seen.add(texts)
                new_rows.append(texts)
                origins.append(i)
                productive.append((i, swaps))
        sources = productive
    if len(new_rows) < n_new:
        where = " in both texts" if shared_only else ""
        raise ValueError(
            f"Cannot make {n_new} new {what}, only {len(new_rows)} distinct ones: of the "
            f"{len(templates)} {what}, {n_sources} have a mention{where} that the gazetteer "
            "can replace. Ask for fewer rows, or give a larger gazetteer or more mentions."
        )
    return new_rows, origins


def _check_shared_only(
    shared_only: bool | str, labels: Sequence[Hashable], label: Hashable, n_texts: int
) -> bool:
    if not isinstance(shared_only, str):
        check_bool("augment", "shared_only", shared_only)
        check_shared_only(bool(shared_only), n_texts)
        return bool(shared_only)
    check_option("augment", "shared_only", shared_only, (True, False, "auto"))
    if n_texts == 1:
        return False
    advice = "Pass shared_only=True or False"
    return label == find_larger_label(labels, "shared_only='auto'", advice)
