"""Token tagging: part-of-speech tags and named entities."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from .._inputs import check_sample_weight, check_tags, check_token_lists, list_some
from .._parameters import check_number, check_option
from ..io._network import label_config
from ..metrics import entity_f1_score, get_entities, tag_f1_score
from ..nn._modules import TokenModule
from ..nn._predicted import predicted_classes
from ..text._decoding import TagDecoder
from ..text._encoding import EncodedDataset, encode_words
from ..text._entities import Entity
from ..text._tags import are_chunk_tags, infer_scheme
from ._documentation import documented
from ._loss import recommended_for_entities
from ._rows import object_array, take
from ._words import WordTagger


@documented
class DiceTokenTagger(WordTagger):
    """Tag every word of a sentence with a fine-tuned transformer.

    Parameters
    ----------
    %(shared_parameters)s
    max_length : int, optional
        Longest window in pieces, special ones included; the model's limit by default. Longer
        sentences are cut into windows, and nothing is lost.
    stride : int, optional
        Pieces that neighbouring windows share; a quarter of the window by default.
    decode : {"constrained", "argmax"}, default="constrained"
        "constrained" gives the best sequence that is well-formed in the scheme of the training
        tags; "argmax" the best tag of each word.
    background_bias : float or "auto", default=0.0
        Added to the logit of "O"; negative finds more entities. "auto" tunes it for the score on
        the validation part.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), object
        The tags, sorted.
    scheme_ : str or None
        Scheme of the training tags ("IOB1", "IOB2", "IOBES"), None if they are no chunk tags.
    background_bias_ : float
    loss_ : Loss
        What was trained with, all parameters set.
    history_ : DataFrame
        A row per epoch: training loss, validation score, learning rate, seconds.
    best_epoch_ : int
        Epoch of the weights that are kept.
    interrupted_ : bool
        Whether ``fit`` ended before its end, by Ctrl-C or an error; predictions then warn.
    max_length_, stride_ : int
    net_ : skorch net

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
    >>> tagger = DiceTokenTagger("bert-base-cased", loss="dsc", random_state=0)
    >>> tagger.fit(sentences, tags)  # doctest: +SKIP
    >>> tagger.predict([["John", "lives", "in", "Oslo"]])  # doctest: +SKIP
    array([list(['B-PER', 'O', 'O', 'B-LOC'])], dtype=object)
    """

    _module_class = TokenModule
    _task = "token-classification"

    def __init__(
        self,
        model: Any = "bert-base-cased",
        *,
        loss: Any = "dsc",
        alpha: float | None = None,
        beta: float | None = None,
        gamma: float | None = None,
        memory: float | None = None,
        ce_weight: float | None = None,
        class_weight: Any = None,
        K: float | None = None,
        max_epochs: int = 3,
        batch_size: int = 16,
        batch_tokens: int | None = None,
        lr: float = 5e-5,
        head_lr: float | None = None,
        weight_decay: float = 0.01,
        warmup: float = 0.1,
        schedule: str = "linear",
        clip_norm: float | None = 1.0,
        accumulate: int = 1,
        max_length: int | None = None,
        stride: int | None = None,
        n_frozen_layers: int | None = None,
        validation_fraction: float | None = None,
        patience: int | None = None,
        precision: str = "auto",
        device: str = "auto",
        random_state: Any = None,
        checkpoint_dir: Any = None,
        verbose: int = 1,
        callbacks: Any = None,
        decode: str = "constrained",
        background_bias: Any = 0.0,
    ) -> None:
        self.model = model
        self.loss = loss
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.memory = memory
        self.ce_weight = ce_weight
        self.class_weight = class_weight
        self.K = K
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.batch_tokens = batch_tokens
        self.lr = lr
        self.head_lr = head_lr
        self.weight_decay = weight_decay
        self.warmup = warmup
        self.schedule = schedule
        self.clip_norm = clip_norm
        self.accumulate = accumulate
        self.max_length = max_length
        self.stride = stride
        self.n_frozen_layers = n_frozen_layers
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.precision = precision
        self.device = device
        self.random_state = random_state
        self.checkpoint_dir = checkpoint_dir
        self.verbose = verbose
        self.callbacks = callbacks
        self.decode = decode
        self.background_bias = background_bias

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "DiceTokenTagger":
        """Fine-tune the model.

        Parameters
        ----------
        X : list, Series or object array of list of str
            Sentences as words.
        y : the same of list of str
            One tag per word, in any scheme.
        sample_weight : array-like of shape (n_sentences,), optional
            Weight of each sentence; 2 counts as repetition, 0 as absence.

        Returns
        -------
        DiceTokenTagger
            self

        Raises
        ------
        ValueError
            If parameters or data are not allowed, or the loss stops being finite; the message says
            what was got, what is allowed, and which row.
        """
        self._check_parameters()
        sentences = check_token_lists(X)
        tags = check_tags(y, sentences)
        weight = check_sample_weight(sample_weight, len(sentences))
        if weight is not None:
            # Weight 0 is absence, from the classes and the validation part too.
            used = np.flatnonzero(weight)
            sentences, tags, weight = take(sentences, used), take(tags, used), weight[used]
        classes = sorted({tag for row in tags for tag in row})
        if not classes:
            raise ValueError(
                f"Found no word to train on; X has {len(sentences)} sentences and no words."
            )
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two different tags in y; got one class, "
                f"{classes[0]!r}."
            )
        seed = self._draw_seed()
        rng = np.random.default_rng(seed)
        self._load_tokenizer()
        self._set_stride()
        self.classes_ = np.array(classes, dtype=object)  # A numpy str loses trailing NULs.
        self.scheme_ = infer_scheme(tags) if are_chunk_tags(classes) else None
        self.background_bias_ = 0.0 if self.background_bias == "auto" else self.background_bias

        train, valid = self._split(len(sentences), rng)
        dataset = self._encode(
            take(sentences, train), take(tags, train), None if weight is None else weight[train]
        )
        if dataset.n_items == 0:
            raise ValueError("Found no word to train on: the training sentences have no words.")
        validate = None
        valid_sentences, valid_tags = take(sentences, valid), take(tags, valid)
        if len(valid):
            valid_set = self._encode(valid_sentences)

            def validate() -> float:
                return self._score(valid_tags, self._predict(valid_set))

        counts, background, recommended = self._count(dataset), self._background(), "ce"
        if background is not None:
            n_outside = counts[background]
            n_inside = counts.sum() - n_outside
            n_entities = sum(len(get_entities(tags[row])) for row in train)
            recommended = recommended_for_entities(n_entities, n_outside, n_inside)
        loss = self._make_loss(
            classes,
            counts,
            background,
            binary=False,
            n_steps=self._count_steps(dataset),
            recommended=recommended,
        )
        held_out = (valid_sentences, valid_tags)
        self._train(dataset, loss, len(classes), seed, rng, validate, held_out)
        if self.background_bias == "auto":
            self._tune_bias(valid_set, lambda predicted: self._score(valid_tags, predicted))
        self.interrupted_ = False
        return self

    def _predicted(self, logits: Tensor, target: Tensor) -> Tensor:
        background = self._background()
        if background is not None and self.background_bias_:
            logits = logits.clone()
            logits[:, background] += self.background_bias_
        return predicted_classes(logits, target)

    def _missed(self, predicted: np.ndarray, target: np.ndarray) -> str | None:
        if self.scheme_ is not None:
            return "found no entity" if self.classes_[predicted].tolist() == ["O"] else None
        only = self.classes_[predicted].tolist()
        return None if len(only) > 1 else f"gave all words the tag {only[0]!r}"

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the class probabilities of every word.

        They are the softmax of the logits (``background_bias`` included) whatever the loss; set
        losses give scores, not calibrated probabilities.

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

    def score(self, X: Any, y: Any) -> float:
        """Score predictions: entity-level micro F1 for chunk tags, otherwise micro F1 over tags.

        Parameters
        ----------
        X : list, Series or object array of list of str
        y : the same of list of str
            Tags that never occurred in training count as missed.

        Returns
        -------
        float
            In [0, 1].
        """
        self._check_is_fitted()
        sentences = check_token_lists(X)
        return self._score(check_tags(y, sentences), self._tag(sentences))

    def _tune_decision(self, X: Any, y: Any, metric: Any, sample_weight: Any) -> None:
        """Set ``background_bias_`` to what is best on held-out sentences."""
        if sample_weight is not None:
            raise ValueError("sample_weight must be None for a tagger: it is scored by entities.")
        if self._background() is None:
            raise TypeError(
                f"The decision of a tagger is the bias of 'O' among chunk tags; the tags of this "
                f"one are {list_some(self.classes_.tolist())}."
            )
        sentences = check_token_lists(X)
        tags = check_tags(y, sentences)
        score = self._score if metric is None else metric
        self._tune_bias(self._encode(sentences), lambda predicted: float(score(tags, predicted)))

    def _tune_bias(
        self, dataset: EncodedDataset, score: Callable[[list[list[str]]], float]
    ) -> None:
        decoder = replace(self._decoder(), bias=0.0)
        logits = self._predict_logits(dataset)
        self.background_bias_ = decoder.tune_bias(logits, dataset.item_offsets, score)

    def _more_parameters(self) -> None:
        owner = type(self).__name__
        check_option(owner, "decode", self.decode, ("constrained", "argmax"))
        if self.background_bias != "auto":
            check_number(owner, "background_bias", self.background_bias, closed="neither")
        elif self.validation_fraction is None:
            raise ValueError(
                "background_bias='auto' needs validation_fraction (a float in (0, 1)): it is tuned "
                "on that part. Got validation_fraction=None."
            )

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
            (self.stride_, sentences),
            lambda: encode_words(sentences, self.tokenizer_, self.max_length_, self.stride_),
        )
        return replace(dataset, target=target, weight=weight)

    def _count(self, dataset: EncodedDataset) -> np.ndarray:
        """Return how many training words each tag has; a weight counts as repetition."""
        assert dataset.target is not None
        weight = None
        if dataset.weight is not None:
            weight = np.repeat(dataset.weight, np.diff(dataset.item_offsets)).astype(np.float64)
        return np.bincount(dataset.target, weight, minlength=len(self.classes_))

    def _background(self) -> int | None:
        """Return the index of "O" among chunk tags."""
        tags = self.classes_.tolist()
        return None if self.scheme_ is None or "O" not in tags else tags.index("O")

    def _model_config(self) -> dict[str, Any]:
        return label_config(self.classes_.tolist())

    def _decoder(self) -> TagDecoder:
        scheme = None if self.decode == "argmax" else self.scheme_
        return TagDecoder(self.classes_, scheme, self._background(), self.background_bias_)

    def _tag(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        return self._predict(self._encode(sentences))

    def _predict(self, dataset: EncodedDataset) -> list[list[str]]:
        return self._decoder().tags(self._predict_logits(dataset), dataset.item_offsets)

    def _find_entities(self, sentences: Sequence[Sequence[str]]) -> list[list[Entity]]:
        if self.scheme_ is None:
            raise ValueError(
                f"Entities need chunk tags ('O', 'B-x', 'I-x', ...); the tags of this tagger are "
                f"{list_some(self.classes_.tolist())}."
            )
        dataset = self._encode(sentences)
        return self._decoder().entities(self._predict_logits(dataset), dataset.item_offsets)

    def _score(self, y_true: Sequence[Sequence[str]], y_pred: Sequence[Sequence[str]]) -> float:
        if self.scheme_ is None:
            return float(tag_f1_score(y_true, y_pred))
        return float(entity_f1_score(y_true, y_pred))
