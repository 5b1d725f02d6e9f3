"""What users write, for type checkers: nothing here is run."""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from typing import Any, assert_type

import numpy as np
import pandas as pd

from skdice import (
    DicePairClassifier,
    DiceQueryTagger,
    DiceSearchCV,
    DiceSpanExtractor,
    DiceTextClassifier,
    DiceTokenTagger,
)
from skdice.losses import DiceLoss, Loss

SENTENCES = [["Anna", "left"]]
TAGS = [["B-PER", "O"]]
PAIRS = [("Is it cold?", "Is it warm?")]


def methods_return_the_estimator() -> None:
    tagger = DiceTokenTagger("x", loss=DiceLoss(gamma=1.0), class_weight={"O": 0.1})
    assert_type(tagger.fit(SENTENCES, TAGS), DiceTokenTagger)
    assert_type(tagger.set_params(loss="dice"), DiceTokenTagger)
    assert_type(tagger.set_fit_request(sample_weight=True), DiceTokenTagger)
    assert_type(DiceTokenTagger.from_pretrained("x"), DiceTokenTagger)
    assert_type(DiceQueryTagger("x").fit(SENTENCES, TAGS), DiceQueryTagger)
    assert_type(DicePairClassifier("x").fit(PAIRS, [0]), DicePairClassifier)
    assert_type(DiceTextClassifier("x").fit(["a"], ["spam"]), DiceTextClassifier)
    assert_type(DiceTextClassifier("x").set_score_request(sample_weight=True), DiceTextClassifier)
    assert_type(DiceSpanExtractor("x").fit(PAIRS, ["cold"]), DiceSpanExtractor)
    assert_type(DiceSearchCV(tagger).fit(SENTENCES, TAGS), DiceSearchCV)


def results_have_types(tagger: DiceTokenTagger, table: pd.DataFrame) -> np.ndarray:
    assert_type(tagger.score(SENTENCES, TAGS), float)
    assert_type(tagger.get_params(), dict[str, Any])
    assert_type(tagger.history_, pd.DataFrame)
    assert_type(tagger.loss_, Loss)
    assert_type(tagger.predict(SENTENCES)[0], list[str])
    assert_type(tagger.predict(SENTENCES)[:1].tolist(), list[list[str]])
    for entities in tagger.predict_entities(["Anna left"]):
        assert_type(entities[0].label, str)
    assert_type(DiceSpanExtractor("x").predict_spans(PAIRS)[0][0].score, float)
    return DicePairClassifier("x").fit(table[["a", "b"]], table["y"]).predict(PAIRS)


def what_does_not_exist_is_an_error(tagger: DiceTokenTagger) -> None:
    DiceTokenTagger("x", schedul="linear")  # type: ignore[call-arg]
    DiceQueryTagger("x", schedul="linear")  # type: ignore[call-arg]
    DicePairClassifier("x", schedul="linear")  # type: ignore[call-arg]
    DiceTextClassifier("x", schedul="linear")  # type: ignore[call-arg]
    DiceSpanExtractor("x", schedul="linear")  # type: ignore[call-arg]
    DiceTokenTagger("x", lr="high")  # type: ignore[arg-type]
    DiceTokenTagger("x", loss="diec")  # type: ignore[arg-type]
    DiceTokenTagger("x", decode="argmin")  # type: ignore[arg-type]
    DiceTokenTagger("x", "ce")  # type: ignore[call-arg]
    DiceSearchCV(tagger, n_trial=3)  # type: ignore[call-arg]
    tagger.predcit(SENTENCES)  # type: ignore[attr-defined]
