"""Token tagging: part-of-speech tags and named entities."""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from types import NoneType
from typing import Annotated, Any, Literal

import numpy as np

from .._inputs import check_tags, check_token_lists, list_some
from .._parameters import (
    Parameter,
    check_option,
    not_allowed,
    number,
    option,
    parametrised,
)
from .._typing import ObjectArray, TokenLists
from ..io import PIPELINE, SOFTMAX, CardTexts, label_config
from ..metrics import entity_f1_score, get_entities, tag_f1_score
from ..nn import TagChain, TokenModule, size_of_network
from ..text import (
    SHAPES,
    EncodedDataset,
    Entity,
    TagDecoder,
    allowed_transitions,
    are_chunk_tags,
    by_label,
    encode_words,
    has_capital,
    infer_scheme,
    keep_above,
)
from ._goal import F1, Goal, choose_decision, score_candidates
from ._lesson import Lesson, positives_first, shared_pieces
from ._loss import check_loss_classes
from ._out_of_fold import out_of_fold_scores
from ._rows import Rows, Task, object_array
from ._words import WordTagger, count_tagged

# Dice was ahead of cross-entropy with 220 to 770 entities, and level from 950 on
# (benchmarks/STUDY.md).
_FEW_ENTITIES = 800
# Names are capitalised in more than this share: nearly all of CoNLL03's and WikiGold's, a half of
# NCBI-disease's. They gain by shapes, few others by a chain (benchmarks/RESULTS.md, "Shapes that
# are left out" and "Tags that are scored together").
_NAMES = 2 / 3
# Passes that cross-entropy takes over many sentences, if these make no more than so many steps
# (benchmarks/RESULTS.md, "Passes over a thousand sentences").
_PASSES, _MOST_STEPS = 8, 512
_STRIDE = "Pieces that neighbouring windows share; a quarter of the window by default."
_DECODE = """
"constrained" gives the best sequence that is well-formed in the scheme of the training tags;
"argmax" the best tag of each word.
"""
_CRF = """
Whether the tags of a sentence are scored together, as a linear-chain conditional random field whose
transitions are those of the scheme: the loss, whichever it is, and ``predict_proba`` are then of
the probability that each tag has among the well-formed sequences. For chunk tags. "auto" does so
for up to 800 entities that are no names: in sentences with a capital letter, at most two in three
are capitalised. Other programs that load a saved model know the network alone.
"""
_WORD_SHAPES = """
Whether the network is told the shape of each word (lower or upper case, capitalised, digits, ...)
as its token type. It is not told those of sentences without a capital letter, nor of three in ten
others in training, drawn anew in each epoch, so that texts in lower case are tagged as well. "auto"
tells them where, of the others, more than two in three entities are capitalised, and the encoder
does not see case ("uncased") but has a table of token types (BERT, ELECTRA, MiniLM), which is
trained with the head, so ``n_frozen_layers`` must be None or 0. Other programs do not know the
shapes when they load a saved model.
"""
_BIAS = """
Added to the logit of "O"; a negative bias finds more entities. "auto" tunes it for the score on the
validation part. "cv" tunes it on the training rows: five more models are fitted, and each predicts
the fifth of the rows that it was not trained on. No row is held out, and a fit takes about five
times as long.
"""


def _check_bool_or_auto(owner: str, name: str, value: Any) -> None:
    if not isinstance(value, np.bool_):
        check_option(owner, name, value, (True, False, "auto"))


def _count_entities(rows: Rows) -> int:
    return sum(len(get_entities(row)) for row in rows.y)


def _share_of_names(rows: Rows) -> float:
    """Return the share of capitalised entities in sentences with a capital, nan without any."""
    told = ((x, y) for x, y in zip(rows.X, rows.y) if has_capital(x))
    first = [x[start] for x, y in told for start, _, _ in get_entities(y)]
    return float(np.mean([word[:1].isupper() for word in first])) if first else math.nan


def _find_measure(y: Any) -> str:
    return "entities" if are_chunk_tags(sorted({tag for row in y for tag in row})) else "tags"


@parametrised
class DiceTokenTagger(WordTagger):
    """Tag every word of a sentence with a fine-tuned transformer.

    X is a list, Series or object array of sentences, each a list of str; y has a list of tags for
    each, one per word, in any scheme.

    %(containers)s

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), object
        The tags, sorted.
    scheme_ : str or None
        Scheme of the training tags ("IOB1", "IOB2", "IOBES"), None if they are no chunk tags.
    splitter_ : {"words", "characters"}
        How ``predict_entities`` splits raw texts: as the training sentences were, whose words may
        be single characters.
    cut_words_ : list of str
        Training words that the splitter "words" would cut most often (``'@name'``, ``"'s"``); empty
        if it would cut less than one in twenty.
    background_bias_ : float, or dict of label to float
        Of labels, if they were tuned by :func:`skdice.model_selection.tune_decision`.
    threshold_ : float, or dict of label to float
        Entities with a lower score are dropped: 0 after ``fit``, other values are tuned.
    stride_ : int
    crf_, word_shapes_ : bool
    %(attributes)s

    See Also
    --------
    skdice.metrics.entity_f1_score : What ``score`` computes for chunk tags.

    Notes
    -----
    A word is tagged on its first piece. Sentences longer than the model are cut into overlapping
    windows, and each word is taken from the window in which it is most central. A word of which the
    tokenizer keeps nothing is seen as the unknown token. So every word gets one tag.

    Examples
    --------
    >>> from skdice import DiceTokenTagger
    >>> tagger = DiceTokenTagger(random_state=0)
    >>> tagger.fit(sentences, tags)  # doctest: +SKIP
    >>> tagger.predict([["John", "lives", "in", "Oslo"]])  # doctest: +SKIP
    array([list(['B-PER', 'O', 'O', 'B-LOC'])], dtype=object)
    """

    _module_class = TokenModule
    _task = Task(
        row="sentence",
        read_X=check_token_lists,
        read_y=check_tags,
        find_measure=_find_measure,
        count_rows=count_tagged,
        state={
            "stride_": int,
            "crf_": bool,
            "word_shapes_": bool,
            "classes_": np.ndarray,
            "scheme_": (str, NoneType),
            "splitter_": str,
            "cut_words_": list,
            "background_bias_": (int, float, dict),
            "threshold_": (int, float, dict),
        },
        card=CardTexts(
            "token-classification",
            "tags every word of a sentence",
            'model.predict([["John", "lives", "in", "Oslo"]])',
            PIPELINE.replace(
                "{call}", 'model("John lives in Oslo", aggregation_strategy="first")  # whole words'
            ),
            SOFTMAX,
        ),
    )

    stride: Annotated[int | None, number(_STRIDE, low=0, integer=True, optional=True)] = None
    decode: Annotated[Literal["constrained", "argmax"], option(_DECODE)] = "constrained"
    crf: Annotated[
        bool | Literal["auto"], Parameter('bool or "auto"', _CRF, _check_bool_or_auto)
    ] = "auto"
    word_shapes: Annotated[
        bool | Literal["auto"], Parameter('bool or "auto"', _WORD_SHAPES, _check_bool_or_auto)
    ] = "auto"
    background_bias: Annotated[
        float | Literal["auto", "cv"],
        number(_BIAS, closed="neither", words=("auto", "cv"), in_folds=0.0),
    ] = 0.0

    def _check_learnable(self, rows: Rows) -> None:
        classes = sorted({tag for row in rows.y for tag in row})
        if not classes:
            raise ValueError(
                f"Found no word to train on; X has {len(rows)} sentences and no words."
            )
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two different tags in y; got one class, "
                f"{classes[0]!r}."
            )
        check_loss_classes(self.loss, len(classes))
        if self.crf not in (False, "auto") and not are_chunk_tags(classes):
            raise ValueError(
                f"The 'crf' parameter of {type(self).__name__} must be False or 'auto' unless the "
                f"tags are chunk tags ('O', 'B-x', 'I-x', ...). Got the tags {list_some(classes)}."
            )

    def _learn(self, rows: Rows) -> None:
        classes = sorted({tag for row in rows.y for tag in row})
        self.classes_ = np.array(classes, dtype=object)  # A numpy str loses trailing NULs.
        self.scheme_ = infer_scheme(rows.y) if are_chunk_tags(classes) else None
        self.stride_ = shared_pieces(self, self.max_length_, self._frame())
        names = _share_of_names(rows) if self.scheme_ is not None else math.nan
        shapes, crf = self.word_shapes, self.crf
        if shapes == "auto":
            shapes = names > _NAMES and self._can_be_told_shapes()
        if crf == "auto":
            crf = names <= _NAMES and _count_entities(rows) <= _FEW_ENTITIES
        self.word_shapes_, self.crf_ = bool(shapes), bool(crf)
        self._learn_splitter(rows.X)
        bias = self.background_bias
        self.background_bias_: float | dict[str, float]
        self.background_bias_ = 0.0 if isinstance(bias, str) else float(bias)
        self.threshold_: float | dict[str, float] = 0.0

    def _can_be_told_shapes(self) -> bool:
        """Whether the network does not see case, and has a table for shapes that is trained."""
        if self.n_frozen_layers or self.peft_config is not None:
            return False
        size = size_of_network(os.fspath(self.model), "AutoModel")
        return not self.tokenizer_.sees_case and size.has_token_types

    def _prepare(self, rows: Rows, rng: np.random.Generator) -> Lesson:
        dataset = self._encode(rows.X, rows.y, rows.weight)
        counts, background = self._count(dataset), self._background()
        labels = self.classes_.tolist()
        lesson = Lesson(dataset, labels, counts, background, binary=False)
        if background is None:
            return lesson
        assert dataset.target is not None
        is_inside = dataset.target != background
        return replace(lesson, group=positives_first(dataset, is_inside))

    def _choose_loss(self, rows: Rows, lesson: Lesson) -> tuple[str, str]:
        if lesson.group is None:
            return super()._choose_loss(rows, lesson)
        if lesson.draw is not None:
            n_with = f"{lesson.n_positive:,} of {len(rows):,} sentences"
            return "dice", f"dice, as entities are rare: {n_with} have one"
        n_entities = _count_entities(rows)
        if n_entities <= _FEW_ENTITIES:
            return "dice", f"dice, as there are few entities: {n_entities:,}"
        return "ce", f"cross-entropy, as there are many entities: {n_entities:,}"

    def _open_epochs(self, lesson: Lesson) -> int:
        epochs = super()._open_epochs(lesson)
        if self.scheme_ is None or lesson.draw is not None or not self.loss_.separable:
            return epochs
        return max(epochs, min(_PASSES, _MOST_STEPS // self._count_steps(lesson)))

    def _validator(self, rows: Rows) -> Callable[[], float]:
        dataset = self._encode(rows.X)
        return lambda: self._score(rows.y, self._predict(dataset))

    def _label(self, rows: Sequence[Any]) -> tuple[list[list[str]], np.ndarray]:
        dataset, decoder = self._encode(rows), self._decoder()
        logits = self._predict_logits(dataset)
        p = decoder.probabilities(logits, dataset.item_offsets)
        # A sentence without words says nothing.
        sure = np.array([row.max(axis=1).min() if len(row) else 0.0 for row in p])
        return decoder.tags(logits, dataset.item_offsets), sure

    def _decide_on(self, rows: Rows, valid: Rows, held_out: tuple[Any, Any] | None) -> None:
        if not isinstance(self.background_bias, str) or self._background() is None:
            return
        if self.background_bias == "auto":
            self._tune_decision(valid)
        else:
            given = (rows.X, rows.y, rows.weight, rows.groups, held_out)
            unseen = partial(out_of_fold_scores, self, *given)
            self._tune_decision(rows, scores=unseen)

    def _predicted(self, logits: np.ndarray, dataset: EncodedDataset) -> np.ndarray:
        return super()._predicted(self._decoder().shifted(logits), dataset)

    def _missed(self, predicted: np.ndarray, target: np.ndarray) -> str | None:
        if self.scheme_ is not None:
            return "found no entity" if self.classes_[predicted].tolist() == ["O"] else None
        only = self.classes_[predicted].tolist()
        return None if len(only) > 1 else f"gave all words the tag {only[0]!r}"

    def predict_proba(self, X: TokenLists) -> ObjectArray[np.ndarray]:
        """Return the class probabilities of every word.

        They are the softmax of the logits (``background_bias`` included) whatever the loss, with
        ``crf`` the shares of the well-formed sequences; set losses give scores, not calibrated
        probabilities.

        Parameters
        ----------
        X : list, Series or object array of list of str

        Returns
        -------
        ndarray of shape (n_sentences,), object
            An array of shape (n_words, n_classes) for each sentence; columns as ``classes_``.
        """
        self._check_is_fitted()
        dataset = self._encode(check_token_lists(X))
        return object_array(
            self._decoder().probabilities(self._predict_logits(dataset), dataset.item_offsets)
        )

    def _score_sentences(self, sentences: Sequence[Sequence[str]], y: Any) -> float:
        return self._score(check_tags(y, sentences), self._tag(sentences))

    def _decision_scores(self, X: TokenLists) -> list[np.ndarray]:
        """Return the logits of each sentence, of shape (n_words, n_classes)."""
        dataset = self._encode(check_token_lists(X))
        return np.split(self._predict_logits(dataset), dataset.item_offsets[1:-1])

    def _tune_decision(self, rows: Rows, goal: Goal = F1, scores: Any = None) -> None:
        """Set ``background_bias_`` or ``threshold_`` to what is best on held-out sentences."""
        if self._background() is None:
            raise TypeError(
                f"The decision of a tagger is the bias of 'O' among chunk tags; the tags of this "
                f"one are {list_some(self.classes_.tolist())}."
            )
        found = self._decision_scores(rows.X) if scores is None else scores()
        logits = np.concatenate([np.empty((0, len(self.classes_)), np.float32), *found])
        offsets = np.cumsum([0, *map(len, rows.X)])
        labels, gold = self._entity_labels(), [get_entities(row) for row in rows.y]
        self.threshold_ = 0.0
        decoder = self._decoder()
        if goal.min_precision is not None:
            # A large bias breaks borders before it drops an entity, so that precision falls.
            scored = decoder.entities(logits, offsets)

            def keep(lowest: Any) -> list[list[Entity]]:
                return [keep_above(row, by_label(lowest, labels)) for row in scored]

            candidates = score_candidates(scored)
            self.threshold_ = choose_decision(gold, keep, candidates, labels, goal)
            return
        biases = decoder.biases(logits)

        def tag(bias: Any) -> list[list[str]]:
            return replace(decoder, bias=bias).tags(logits, offsets)

        if goal.metric is None:
            self.background_bias_ = choose_decision(
                gold, lambda bias: [get_entities(row) for row in tag(bias)], biases, labels, goal
            )
        else:
            self.background_bias_ = max(biases, key=lambda bias: goal.metric(tag(bias)))

    def _tunes_on_validation(self) -> str | None:
        tunes = self.background_bias == "auto"
        return "background_bias='auto'" if tunes else super()._tunes_on_validation()

    def _encode(
        self,
        sentences: Sequence[Sequence[str]],
        tags: Sequence[Sequence[str]] | None = None,
        weight: np.ndarray | None = None,
    ) -> EncodedDataset:
        target = None
        if tags is not None:
            index = {tag: i for i, tag in enumerate(self.classes_.tolist())}
            target = np.array([index[tag] for row in tags for tag in row], dtype=np.int64)
        dataset = self._encode_once(
            (self.stride_, self.word_shapes_, sentences),
            lambda: encode_words(
                sentences,
                self.tokenizer_,
                self.max_length_,
                self.stride_,
                with_shapes=self.word_shapes_,
            ),
        )
        return replace(dataset, target=target, weight=weight)

    def _count(self, dataset: EncodedDataset) -> np.ndarray:
        """Return how many training words each tag has; a weight counts as repetition."""
        assert dataset.target is not None
        weight = np.repeat(dataset.text_weight, np.diff(dataset.item_offsets))
        return np.bincount(dataset.target, weight, minlength=len(self.classes_))

    def _background(self) -> int | None:
        """Return the index of "O" among chunk tags."""
        tags = self.classes_.tolist()
        return None if self.scheme_ is None or "O" not in tags else tags.index("O")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name, others in (("n_frozen_layers", "None or 0"), ("peft_config", "None")):
            value = getattr(self, name)
            is_asked_for = self.word_shapes and self.word_shapes != "auto"
            if is_asked_for and value is not None and value != 0:
                allowed = (
                    f"{others} with word_shapes=True, whose table lies below all layers and is "
                    "trained"
                )
                raise not_allowed(type(self).__name__, name, allowed, value)

    def _chain(self, dataset: EncodedDataset) -> TagChain | None:
        if not self.crf_:
            return None
        assert self.scheme_ is not None
        allowed = allowed_transitions(self.classes_.tolist(), self.scheme_)
        return TagChain(allowed, dataset.item_offsets)

    def _predict_logits(self, dataset: EncodedDataset) -> np.ndarray:
        logits, chain = super()._predict_logits(dataset), self._chain(dataset)
        return logits if chain is None else chain.predict(logits)

    def _module_parameters(self) -> dict[str, Any]:
        has_shapes = getattr(self, "word_shapes_", False)
        return {"n_token_types": 1 + len(SHAPES)} if has_shapes else {}

    def _model_config(self) -> dict[str, Any]:
        return label_config(self.classes_.tolist())

    def _decoder(self) -> TagDecoder:
        scheme = None if self.decode == "argmax" else self.scheme_
        lowest = by_label(self.threshold_, self._entity_labels()) if self.threshold_ else {}
        return TagDecoder(self.classes_, scheme, self._background(), self.background_bias_, lowest)

    def _tag(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        return self._predict(self._encode(sentences))

    def _predict(self, dataset: EncodedDataset) -> list[list[str]]:
        return self._decoder().tags(self._predict_logits(dataset), dataset.item_offsets)

    def _entity_labels(self) -> list[str]:
        if self.scheme_ is None:
            raise ValueError(
                f"Entities need chunk tags ('O', 'B-x', 'I-x', ...); the tags of this tagger are "
                f"{list_some(self.classes_.tolist())}."
            )
        return sorted({tag[2:] for tag in self.classes_.tolist() if tag != "O"})

    def _find_entities(self, sentences: Sequence[Sequence[str]]) -> list[list[Entity]]:
        dataset = self._encode(sentences)
        return self._decoder().entities(self._predict_logits(dataset), dataset.item_offsets)

    def _score(self, y_true: Sequence[Sequence[str]], y_pred: Sequence[Sequence[str]]) -> float:
        if self.scheme_ is None:
            return float(tag_f1_score(y_true, y_pred))
        return float(entity_f1_score(y_true, y_pred))
