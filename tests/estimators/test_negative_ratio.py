"""negative_ratio: what an epoch has, what each text counts for, and what is corrected."""

import itertools
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback

from skdice import DicePairClassifier, DiceTextClassifier, DiceTokenTagger
from skdice.losses import DiceLoss, SelfAdjustingDiceLoss, SumsMemory, TverskyLoss
from skdice.tasks import Tagging, TrainingSet
from skdice.text import Draw

from ..corpora import FILLERS, easy_corpus, easy_pairs, easy_texts
from ..io.conftest import CASES, make
from ..nn.toy import make_dataset
from .test_span import easy_questions

FAST = {"max_epochs": 1, "lr": 3e-3, "batch_size": 4, "random_state": 0, "verbose": 0}


def rare_entities(n=48, every=8):
    """Sentences of which one in so many has an entity."""
    X, y = easy_corpus(n)
    others = [[FILLERS[len(word) % 8] for word in row] for row in X]
    words = [X[i] if i % every == 0 else others[i] for i in range(n)]
    return words, [row if i % every == 0 else ["O"] * len(row) for i, row in enumerate(y)]


def rare_rows(case, n=48):
    is_rare = np.arange(n) % 8 == 0
    if case in ("tagger", "queries"):
        return rare_entities(n)
    if case == "questions":
        X, y = easy_questions(n)
        return X, [row if rare else "" for rare, row in zip(is_rare, y)]
    if case == "pairs":
        return easy_pairs(n)[0], is_rare.astype(int)
    X, y = easy_texts(n, n_classes=3)
    if case == "labels":
        return X, np.array([is_rare, np.arange(n) % 16 == 0], dtype=int).T
    return X, np.where(is_rare, "rare", "usual")


class TestWhatAnEpochHas:
    @pytest.mark.parametrize("case, ratio, n_drawn", [
        *((case, 1, 12) for case in CASES),
        *(("tagger", ratio, n) for ratio, n in ((None, 48), (3.0, 24), (100, 48))),
    ])  # fmt: skip
    def test_of_every_estimator(self, case, ratio, n_drawn, tiny_bert):
        estimator = make(case, tiny_bert, negative_ratio=ratio, **FAST)[0].fit(*rare_rows(case))
        assert estimator.history_["n_texts"].tolist() == [n_drawn]
        is_all = ratio is None or ratio == 100
        assert estimator.negative_ratio_ == (None if is_all else ratio)

    def test_every_step_has_positives_and_epochs_differ(self, tiny_bert):
        X, y = rare_entities(160, every=16)
        steps, background = [], 2  # classes_ is B-LOC, B-PER, O.

        class Seen(Callback):
            def on_batch_begin(self, net, batch=None, training=True, **kwargs):
                steps.append(batch)

        parameters = {**FAST, "max_epochs": 2, "callbacks": [Seen()]}
        DiceTokenTagger(tiny_bert, negative_ratio=3, **parameters).fit(X, y)
        assert all(any((part["target"] != background).any() for part in step) for step in steps)
        items = [{int(i) for part in step for i in part["item"]} for step in steps]
        assert len(items) == 20
        assert set.union(*items[:10]) != set.union(*items[10:])

    @pytest.mark.parametrize("loss", ["dice", "ce"])
    def test_weight_zero_is_absence(self, loss, tiny_bert):
        X, y = rare_entities()
        weight = np.repeat([0.0, 1.0], [4, 44])
        tagger = DiceTokenTagger(tiny_bert, negative_ratio=2, loss=loss, **FAST)
        with_zeros = tagger.fit(X, y, sample_weight=weight).net_.module_.state_dict()
        without = tagger.fit(X[4:], y[4:], sample_weight=weight[4:]).net_.module_.state_dict()
        assert all(torch.equal(with_zeros[name], without[name]) for name in without)


class TestSums:
    """Over all draws, sums are those of all texts, and so is the gradient."""

    def training_set(self):
        dataset = make_dataset([4, 3, 5, 6, 3, 4], weighted=True)
        target = np.random.default_rng(1).integers(0, 3, dataset.item_offsets[-1])
        group = np.array([0, 1, 0, 1, 1, 1])
        draw = Draw(group, np.array([2, 4]), np.array([2, 2]))
        return TrainingSet(
            dataset=replace(dataset, target=target), labels=[0, 1, 2], counts=np.ones(3),
            background=0, binary=False, group=group, draw=draw,
        )  # fmt: skip

    @pytest.mark.parametrize("loss", [DiceLoss, TverskyLoss, SelfAdjustingDiceLoss])
    @pytest.mark.parametrize("more", [
        {}, {"average": "macro"}, {"class_weight": [1.0, 2.0, 3.0]}, {"ce_weight": 0.3},
    ], ids=str)  # fmt: skip
    def test_mean_of_all_draws(self, loss, more):
        loss, sampled = loss(background=0, **more), self.training_set()
        data = sampled.dataset
        weighted = Tagging().corrected(sampled, loss).dataset
        target = torch.from_numpy(data.target)
        logits = torch.randn(len(target), 3, dtype=torch.float64, requires_grad=True)

        def sums(dataset, texts):
            items = np.concatenate([np.arange(*dataset.item_offsets[i : i + 2]) for i in texts])
            weight = torch.from_numpy(dataset.weight.astype(np.float64))
            of_items = np.repeat(np.arange(dataset.n_texts), np.diff(dataset.item_offsets))[items]
            return loss.sums(logits[items], target[items], weight[of_items])

        whole = sums(data, range(6))
        parts = [sums(weighted, [0, 2, *pair]) for pair in itertools.combinations([1, 3, 4, 5], 2)]
        torch.testing.assert_close(torch.stack(parts).mean(0), whole, rtol=1e-6, atol=1e-6)

        # A memory that knows the sums of all gives the gradient of the loss over all.
        (expected,) = torch.autograd.grad(loss.value(whole), logits, retain_graph=True)
        found = []
        for part in parts:
            memory = SumsMemory(1e12)
            memory.load_state_dict({"count": 10**12, "mean": whole.detach()})
            (gradient,) = torch.autograd.grad(loss.value(memory(part)), logits, retain_graph=True)
            found.append(gradient)
        torch.testing.assert_close(torch.stack(found).mean(0), expected, rtol=1e-5, atol=1e-8)


class TestCalibration:
    """What is a positive in 1 of 10 cases has that probability, whatever an epoch has.

    Identical inputs have different labels. Other positives bring their texts into every epoch,
    with all the negatives in these.
    """

    PARAMS: ClassVar = {
        "loss": "ce", "lr": 2e-3, "head_lr": 1e-2, "max_epochs": 16, "batch_size": 16,
        "random_state": 0, "verbose": 0,
    }  # fmt: skip

    def sentences(self):
        """One sentence in 8 has a sure entity, and one in 10 of each kind an unsure one."""
        X = [["the", "mary", "anna", "was", "john" if i % 8 == 0 else "in"] for i in range(640)]
        y = [["O"] * 5 for _ in X]
        for i, row in enumerate(y):
            if i // 8 % 10 == 0:
                row[1:3] = ["B-X", "I-X"]
            if i % 8 == 0:
                row[-1] = "B-X"
        return X, y

    @pytest.mark.parametrize(
        "crf, ratio", [(False, 2), pytest.param(True, 0.5, marks=pytest.mark.slow)]
    )
    def test_words(self, crf, ratio, quick_bert):
        X, y = self.sentences()
        tagger = DiceTokenTagger(quick_bert, crf=crf, negative_ratio=ratio, **self.PARAMS)
        for row in tagger.fit(X, y).predict_proba(X[:2]):
            np.testing.assert_allclose(1 - row[1:3, tagger.classes_ == "O"], 0.1, atol=0.025)

    @pytest.mark.parametrize("kind, ratio", [
        ("texts", 2), *(pytest.param(*row, marks=pytest.mark.slow) for row in [
            ("pairs", 0.5), ("labels", 0.5),
        ]),
    ])  # fmt: skip
    def test_rows(self, kind, ratio, quick_bert):
        """The second of two labels is sure."""
        is_sure = np.arange(640) % 8 == 0
        X = ["john was" if sure else "mary was" for sure in is_sure]
        y = np.array([np.arange(640) // 8 % 10 == 0, is_sure]).T.astype(int)
        estimator = DicePairClassifier if kind == "pairs" else DiceTextClassifier
        if kind == "pairs":
            X = [(text, "the") for text in X]
        fitted = estimator(quick_bert, negative_ratio=ratio, **self.PARAMS)
        p = fitted.fit(X, y if kind == "labels" else y[:, 0]).predict_proba(X[:2])
        if kind == "labels":
            np.testing.assert_allclose(p[:, 1], [1, 0], atol=0.02)
        np.testing.assert_allclose(p[:, 0 if kind == "labels" else 1], 0.1, atol=0.03)
