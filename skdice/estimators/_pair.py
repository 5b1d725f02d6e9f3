"""Classification of pairs of texts: paraphrases, duplicates, records of one thing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from .._inputs import check_pairs
from .._parameters import option, parametrised
from ..io import SOFTMAX, CardTexts
from ..nn import Batcher, Frames, PairModule, TextNet, autocast
from ..text import EncodedDataset
from ._classifier import CLASSIFIER_STATE, TextClassifier, count_labelled
from ._lesson import Lesson
from ._rows import Task
from ._targets import check_labels

_TRUNCATION = """
Longer pairs lose the end of the longer text ("longest_first") or of the second one, with a warning
that counts them, or are an error.
"""
# A head that begins trained takes few epochs (benchmarks/RESULTS.md).
_EPOCHS = 4
# Of the regression that it begins with; and of each class it takes so many rows at most.
_C, _MOST_ROWS = 0.003, 2000


def _read_labels(y: Any, rows: Sequence[Any]) -> tuple[np.ndarray, None]:
    return check_labels(y, len(rows)), None


@parametrised
class DicePairClassifier(TextClassifier):
    """Classify pairs of texts with a fine-tuned transformer.

    It reads both texts together and, where its tokenizer puts a token between them, each by itself.
    What it says of these before any training is where the fit begins, as a logistic regression.

    X is a list, Series or object array of 2-tuples of str, a table of two columns or an (n, 2)
    object array; y has a label for each pair. ``score`` is F1: of ``pos_label`` if there are two
    classes, else the macro average.

    %(containers)s

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    %(attributes)s

    See Also
    --------
    skdice.DiceTextClassifier : The same for single texts.
    skdice.datasets.read_pairs : Reads MRPC, QQP and entity resolution pairs.

    Notes
    -----
    A set loss of two classes is a soft F1 of the positive one over the texts of a step.
    ``VotingClassifier``, ``StackingClassifier`` and ``BaggingClassifier`` encode y as 0, 1, ...
    before they fit: leave ``pos_label`` None inside them.

    Examples
    --------
    >>> from skdice import DicePairClassifier
    >>> classifier = DicePairClassifier(random_state=0)
    >>> classifier.fit(pairs, labels)  # doctest: +SKIP
    >>> classifier.predict([("Is it cold?", "Is it warm?")])  # doctest: +SKIP
    array([0])
    """

    _module_class = PairModule
    _task = Task(
        row="pair",
        reads_two_texts=True,
        is_classifier=True,
        read_X=check_pairs,
        read_y=_read_labels,
        find_measure=lambda y: "pairs",
        count_rows=count_labelled,
        state=CLASSIFIER_STATE,
        card=CardTexts(
            "text-classification",
            "classifies pairs of texts",
            'model.predict([("Is it cold?", "Is it warm?")])',
            None,
            f"{SOFTMAX} transformers alone would leave out the comparison of the two texts.",
        ),
    )

    truncation: Annotated[Literal["longest_first", "second", "error"], option(_TRUNCATION)] = (
        "longest_first"
    )

    def _metric(
        self, y_true: np.ndarray, y_pred: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> float:
        labels = [self.classes_[self._positive()]] if len(self.classes_) == 2 else None
        options = {"labels": labels, "average": "macro", "zero_division": 0.0}
        return float(f1_score(y_true, y_pred, sample_weight=sample_weight, **options))

    # -- the comparison of the two texts ----------------------------------------------------------

    @property
    def _compares(self) -> bool:
        """Whether it can be seen where the second text begins."""
        return bool(self.tokenizer_.pair_frame.special[1])

    def _module_parameters(self) -> dict[str, Any]:
        tokenizer = self.tokenizer_
        frames = Frames(tokenizer.frame, tokenizer.pair_frame, tokenizer.pad_id)
        return {"frames": frames} if self._compares else {}

    def _open_epochs(self, lesson: Lesson) -> int:
        return _EPOCHS if self._compares else super()._open_epochs(lesson)

    def _batcher(
        self, dataset: EncodedDataset, pads: bool = True, windows_per_text: int | None = None
    ) -> Batcher:
        batcher = super()._batcher(dataset, pads, windows_per_text)
        # Pairs of one length may have texts of several.
        return batcher if pads else replace(batcher, batch_size=1)

    def _begin(self, net: TextNet, dataset: EncodedDataset) -> None:
        """Have the comparison begin as a logistic regression (Kumar et al. 2022, "LP-FT")."""
        module = net.module_
        assert isinstance(module, PairModule)
        assert dataset.target is not None
        if not (self._compares and module.has_new_head):
            return
        order = np.random.default_rng(0).permutation(dataset.n_texts)
        by_class = (order[dataset.target[order] == c] for c in range(len(self.classes_)))
        rows = np.sort(np.concatenate([part[:_MOST_ROWS] for part in by_class]))
        target, weight = dataset.target[rows], dataset.text_weight[rows]
        share = np.bincount(target, weight, len(self.classes_)) / weight.sum()
        features = self._compared(net, dataset.take(rows))
        # Without rows of a class there is nothing to tell; training says what is not finite.
        if not (share.all() and np.isfinite(features).all()):
            return
        has_weight = weight > 0
        regression = LogisticRegression(C=_C, max_iter=1000).fit(
            features[has_weight],
            target[has_weight],
            (weight / share[target])[has_weight] / len(share),
        )
        slope, start = regression.coef_, regression.intercept_
        if len(slope) == 1:  # Of two classes the log-odds.
            slope, start = np.concatenate([-slope, slope]) / 2, np.append(-start, start) / 2
        with torch.no_grad():
            module.comparison.weight.copy_(torch.from_numpy(slope))
            module.comparison.bias.copy_(torch.from_numpy(start + np.log(share)))

    def _compared(self, net: TextNet, dataset: EncodedDataset) -> np.ndarray:
        """Return what the texts of each pair have in common, before anything is learned."""
        module = net.module_.eval()
        rows: list[Any] = [None] * dataset.n_texts
        with torch.inference_mode(), autocast(net.precision, net.device):
            for windows, batch in self._batcher(dataset, net.pads).by_length():
                found = module.compare(net.send(batch))
                for window, row in zip(windows, found.float().cpu().numpy()):
                    rows[window] = row
        return np.stack(rows)
