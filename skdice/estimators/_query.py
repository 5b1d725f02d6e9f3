"""Entities by asking for each type: BERT-MRC named entity recognition."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from .._parameters import Parameter, check_number, not_allowed, number, option, parametrised
from ..losses import MatchCandidates
from ..tasks import Querying, check_queries
from ._base import FittedAttribute
from ._words import WordTagger


def _check_span_weights(owner: str, name: str, value: Any) -> None:
    if not isinstance(value, tuple | list) or len(value) != 3 or not any(value):
        allowed = "three numbers that are not all 0: of starts, ends and matches"
        raise not_allowed(owner, name, allowed, value)
    for weight in value:
        check_number(owner, name, weight, low=0)


@parametrised
class DiceQueryTagger(WordTagger[Querying]):
    """Find entities, also nested ones, by asking for each type in plain words (BERT-MRC).

    For each type of entity a query ("Which people are mentioned?") is read together with the
    sentence, and words are scored as starts and ends of entities, pairs of them as belonging
    together. X is a list, Series or object array of sentences, each a list of str; y has a list of
    chunk tags for each, one per word, or of entities (start, end, label), ``end`` exclusive, which
    may be nested or overlap with ``decode="nested"``.

    %(containers)s

    Parameters
    ----------
    stride
        Pieces of the sentence that neighbouring windows share; by default a quarter of what fits
        beside the query. An entity that no window has as a whole cannot be found.
    queries
        What to ask for each label. Labels without a query get a default one, if they are common
        (PER, LOC, ORG, Disease, ...), or else their name, with a warning if others have a query.
    span_weights
        Weights of the losses of starts, ends and matches; divided by their sum.
    match_candidates
        Pairs of words on which matches of a start with an end are trained: "all" pairs of a window,
        those of a "gold" start and a gold end, those of a predicted or gold start and end
        ("pred_and_gold"), or these and some random ones, which are drawn for each batch
        ("pred_gold_random").
    decode
        "flat" gives the best set of entities without overlap, "nested" all whose start, end and
        match are above the threshold. ``predict`` always gives flat tags.

    Attributes
    ----------
    labels_ : list of str
        The types of entities, sorted.
    queries_ : dict of label to str
        What is asked.
    scheme_ : str
        Scheme of the predicted tags: that of the training tags, "IOB2" if y was rows of spans.
    splitter_ : {"words", "characters"}
        How ``predict_entities`` splits raw texts: as the training sentences were, whose words may
        be single characters.
    threshold_ : float, or read-only mapping of label to float
        The score that an entity has to exceed, in [0, 1]: 0.5 after ``fit``, see
        :func:`skdice.model_selection.tune_decision`. It can be set; labels that a dict does not
        name get 0.5.
    %(attributes)s

    See Also
    --------
    skdice.DiceTokenTagger : Reads each sentence once, for all types.

    Notes
    -----
    The method is that of "A Unified MRC Framework for Named Entity Recognition" (Li et al., ACL
    2020). Its three losses (starts, ends, matches) judge each word, or pair of words, by a sigmoid.
    Class weights are for the classes 0 and 1, from the counts of starts among words. The score of a
    pair is the product of two vectors of 64 numbers, so that memory does not
    grow with pairs times hidden size.

    ``score`` counts an entity as found if start, end and label are right, and all gold entities
    count, also those that no window has as a whole, or whose label was not in training.

    Examples
    --------
    >>> from skdice import DiceQueryTagger
    >>> tagger = DiceQueryTagger(random_state=0)
    >>> tagger.fit(sentences, tags)  # doctest: +SKIP
    >>> tagger.predict_spans([["John", "lives", "in", "Oslo"]])  # doctest: +SKIP
    """

    stride: Annotated[int | None, number(low=0, integer=True, optional=True)] = None
    queries: Annotated[
        dict[str, str] | None, Parameter("dict of label to str", check=check_queries)
    ] = None
    span_weights: Annotated[
        Sequence[float], Parameter("tuple of 3 floats", check=_check_span_weights)
    ] = (1, 1, 0.1)
    match_candidates: Annotated[MatchCandidates, option()] = "pred_gold_random"
    decode: Annotated[Literal["flat", "nested"], option()] = "flat"

    labels_ = FittedAttribute[list[str]]("task.labels")
    queries_ = FittedAttribute[dict[str, str]]("task.queries")

    def _asked(self) -> Querying:
        return Querying(
            owner=type(self).__name__,
            stride=self.stride,
            queries=self.queries,
            span_weights=tuple(self.span_weights),
            match_candidates=self.match_candidates,
            decode=self.decode,
        )

    def check_parameters(self) -> None:
        super().check_parameters()
        if isinstance(self.class_weight, Mapping) and not self.class_weight.keys() <= {0, 1}:
            raise ValueError(
                f"The 'class_weight' parameter of {type(self).__name__} must have the keys 0 "
                f"(words that start no entity) and 1 (those that do), not labels. Got "
                f"{self.class_weight!r} instead."
            )
