"""Token tagging: part-of-speech tags and named entities."""

from typing import Annotated, ClassVar, Literal

import numpy as np

from .._inputs import check_token_lists, object_array
from .._parameters import flag, not_allowed, number, option, parametrised
from .._typing import ObjectArray, TokenLists
from ..tasks import BIASES, Tagging
from ._base import FittedAttribute
from ._words import WordTagger


@parametrised
class DiceTokenTagger(WordTagger[Tagging]):
    """Tag every word of a sentence with a fine-tuned transformer.

    X is a list, Series or object array of sentences, each a list of str; y has a list of tags for
    each, one per word, in any scheme.

    %(containers)s

    Parameters
    ----------
    stride
        Pieces that neighbouring windows share; a quarter of the window by default.
    decode
        "constrained" gives the best sequence that is well-formed in the scheme of the training
        tags; "argmax" the best tag of each word.
    crf
        Whether to put a linear-chain conditional random field (CRF) over the tags of a sentence;
        its transitions are those that the scheme allows. The loss, whichever it is, and
        ``predict_proba`` then use the probability of each tag among all well-formed sequences. For
        chunk tags only. "auto" uses it for less than 5,000 entities that are not names: of those in
        sentences with a capital letter, at most two in three are capitalised. Other programs that
        load a saved model do not apply the CRF.
    word_shapes
        Whether to use word-shape features: each word gets its shape (lower or upper case,
        capitalised, digits, ...) as its token type. So that texts in lower case are tagged as well,
        sentences without a capital letter get none, nor do three in ten others, drawn at random in
        each epoch of training. "auto" uses them if, in the other sentences, more than two in three
        entities are capitalised, and the encoder ignores case ("uncased"). An encoder without a
        table of token types gets one. The table is trained with the head, so ``n_frozen_layers``
        must be None or 0. Other programs that load a saved model do not use the features.
    background_bias
        Added to the logit of "O"; a negative bias finds more entities. "auto" tunes it for the
        score on the validation part. "cv" tunes it on the training rows: five more models are
        fitted, and each predicts the fifth of the rows that it was not trained on. No row is held
        out, and a fit takes about six times as long.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), object
        The tags, sorted.
    scheme_ : str or None
        Scheme of the training tags ("IOB1", "IOB2", "IOBES"), None if they are no chunk tags.
    splitter_ : {"words", "characters"}
        How ``predict_entities`` splits raw texts: as the training sentences were, whose words may
        be single characters.
    background_bias_ : float, or read-only mapping of label to float
        A mapping if :func:`skdice.model_selection.tune_decision` tuned one for each label. It can
        be set; labels that a dict does not name get 0.
    threshold_ : float, or read-only mapping of label to float
        Entities with a lower score are dropped: 0 after ``fit``, other values are tuned. It can be
        set; labels that a dict does not name get 0.
    stride_ : int
    crf_, word_shapes_ : bool
    %(attributes)s

    See Also
    --------
    skdice.metrics.entity_f1_score : What ``score`` computes for chunk tags.

    Notes
    -----
    A word is tagged on its first piece. Sentences longer than the model are cut into overlapping
    windows, and each word is taken from the window in which it is most central. A word that the
    tokenizer drops is read as the unknown token. So every word gets one tag.

    Examples
    --------
    >>> from skdice import DiceTokenTagger
    >>> tagger = DiceTokenTagger(random_state=0)
    >>> tagger.fit(sentences, tags)  # doctest: +SKIP
    >>> tagger.predict([["John", "lives", "in", "Oslo"]])  # doctest: +SKIP
    array([list(['B-PER', 'O', 'O', 'B-LOC'])], dtype=object)
    """

    stride: Annotated[int | None, number(low=0, integer=True, optional=True)] = None
    decode: Annotated[Literal["constrained", "argmax"], option()] = "constrained"
    crf: Annotated[bool | Literal["auto"], flag(words=("auto",))] = "auto"
    word_shapes: Annotated[bool | Literal["auto"], flag(words=("auto",))] = "auto"
    background_bias: Annotated[
        float | Literal["auto", "cv"], number(**BIASES, words=("auto", "cv"))
    ] = 0.0

    _tuned: ClassVar[str | None] = "background_bias"

    classes_ = FittedAttribute[np.ndarray]("task.classes")
    stride_ = FittedAttribute[int]("task.stride")
    crf_ = FittedAttribute[bool]("task.crf")
    word_shapes_ = FittedAttribute[bool]("task.word_shapes")
    background_bias_ = FittedAttribute[float | dict[str, float]]("task.bias")

    def _asked(self) -> Tagging:
        bias = self.background_bias
        return Tagging(
            owner=type(self).__name__,
            tuning="validation" if bias == "auto" else "cv" if bias == "cv" else None,
            stride=self.stride,
            decode=self.decode,
            crf=None if self.crf == "auto" else bool(self.crf),
            word_shapes=None if self.word_shapes == "auto" else bool(self.word_shapes),
            bias=0.0 if isinstance(bias, str) else float(bias),
        )

    def predict_proba(self, X: TokenLists) -> ObjectArray[np.ndarray]:
        """Return the class probabilities of every word.

        They are the softmax of the logits (``background_bias`` included) for any loss; with
        ``crf``, the probabilities among all well-formed sequences. Set losses give scores, not
        calibrated probabilities.

        Parameters
        ----------
        X : list, Series or object array of list of str

        Returns
        -------
        ndarray of shape (n_sentences,), object
            An array of shape (n_words, n_classes) for each sentence; columns as ``classes_``.
        """
        return self._predict_scored(X)[1]

    def _predict_scored(
        self, X: TokenLists
    ) -> tuple[ObjectArray[list[str]], ObjectArray[np.ndarray]]:
        inner = self._ready()
        tags, p = inner.task.predict_scored(check_token_lists(X), inner.network)
        return object_array(tags), object_array(p)

    def check_parameters(self) -> None:
        super().check_parameters()
        if not self.word_shapes or self.word_shapes == "auto":
            return
        why = "with word_shapes=True, whose table lies below all layers and is trained"
        for name, allowed in (("n_frozen_layers", "None or 0"), ("peft_config", "None")):
            value = getattr(self, name)
            if value is not None and value != 0:
                raise not_allowed(type(self).__name__, name, f"{allowed} {why}", value)
