"""The rules of "auto": what a fit takes for parameters that are left open, and why.

A rule is a function from the facts of a fit to a choice. Rules know nothing of estimators or
networks. The constants stand here once, each with its evidence.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..nn import Encoder


class Constant(NamedTuple):
    """A number that a rule goes by, and where its evidence is."""

    value: float
    meaning: str
    evidence: str


STUDY, RESULTS = "benchmarks/STUDY.md", "benchmarks/RESULTS.md"
CONSTANTS = {
    "sparse": Constant(15, "words outside entities for each word inside that are many", RESULTS),
    "shallow": Constant(6, "layers of an encoder up to which it is shallow", RESULTS),
    "few_entities": Constant(800, "entities up to which dice and the CRF are taken", STUDY),
    "names": Constant(
        2 / 3, "share of capitalised entities from which on entities are names", RESULTS
    ),
    "rare": Constant(
        4, "texts without a positive for each one with, above which it is rare", STUDY
    ),
    "ratio": Constant(2, "negative texts for each positive one where positives are rare", STUDY),
    "query_ratio": Constant(1, "the same for sentences with queries", STUDY),
    "presentations": Constant(1200, "times that texts with positives are shown in a fit", STUDY),
    "query_presentations": Constant(2400, "the same for sentences with queries", STUDY),
    "steps": Constant(200, "optimiser steps that a fit makes at least", RESULTS),
    "fewest_epochs": Constant(3, "epochs at least", RESULTS),
    "most_epochs": Constant(30, "epochs at most", RESULTS),
    "fewest_steps": Constant(150, "steps of a fit on a tiny set, in more epochs", RESULTS),
    "passes": Constant(8, "passes of cross-entropy over many sentences", RESULTS),
    "most_steps": Constant(512, "steps up to which these passes are made", RESULTS),
    "pair_epochs": Constant(4, "epochs of pairs, whose head begins trained", RESULTS),
    "lr": Constant(1e-4, "learning rate of an encoder of 12 layers of 384 hidden units", RESULTS),
    "width": Constant(384, "hidden units of that encoder; the rate falls with the width", RESULTS),
    "depth": Constant(12, "layers of that encoder; the rate falls with the depth", RESULTS),
    "deberta": Constant(0.45, "share of that rate for DeBERTa, as its authors publish it", RESULTS),
    "lowest_lr": Constant(1e-5, "learning rate at least", RESULTS),
    "highest_lr": Constant(5e-4, "learning rate at most", RESULTS),
    "new": Constant(5, "times the rate that new weights learn at", RESULTS),
    "enough_positives": Constant(40, "positives that a remembered set has", RESULTS),
    "most_memory": Constant(10, "steps that are remembered at most", RESULTS),
}


def constant(name: str) -> float:
    """Return the number that a rule goes by."""
    return CONSTANTS[name].value


@dataclass(frozen=True, eq=False, kw_only=True)
class Facts:
    """What the rules go by, all of it known before training.

    Attributes
    ----------
    task : {"tagging", "querying", "answering", "texts", "pairs"}
    encoder : Encoder
    n_rows : int
        Labelled training rows.
    trains_embeddings : bool
        Whether the layers below the first one are trained.
    has_adapters : bool
    has_entities : bool
        Whether the tags of a tagger are chunk tags.
    n_entities : int
    density : float
        Words outside entities for each word inside.
    share_of_names : float
        Share of entities that are capitalised, in sentences with a capital letter.
    n_unanswered : int
        Questions without an answer.
    positive_share : float or None
        Share of the positive one of two classes.
    is_plain : bool
        Whether the loss is cross-entropy without class weights, or open.
    compares : bool
        Whether a network reads each of two texts by itself as well.
    has_trained_head : bool
        Whether the checkpoint brings a head of this task.
    n_unlabeled : int
        Rows without labels that are learned from.
    n_texts : ndarray or None
        Texts of each group, those with positives first (of classes: the rarest first).
    n_positive : int
        Texts with positives.
    ratio : float or None
        What is taken for ``negative_ratio``.
    n_steps : int
        Optimiser steps of an epoch.
    is_mean : bool
        Whether the loss is a mean over items, as cross-entropy is.
    set_positives : float
        Positives in the set of a set loss, or in its smallest one.
    lr : float or None
        The learning rate, if it is given.
    """

    task: str
    encoder: Encoder
    n_rows: int
    trains_embeddings: bool = True
    has_adapters: bool = False
    has_entities: bool = False
    n_entities: int = 0
    density: float = 0.0
    share_of_names: float = math.nan
    n_unanswered: int = 0
    positive_share: float | None = None
    is_plain: bool = True
    compares: bool = False
    has_trained_head: bool = False
    n_unlabeled: int = 0
    n_texts: np.ndarray | None = None
    n_positive: int = 0
    ratio: float | None = None
    n_steps: int = 0
    is_mean: bool = True
    set_positives: float = 0.0
    lr: float | None = None


class Choice(NamedTuple):
    """What is taken for an open parameter, and why, in a sentence."""

    value: Any
    why: str


def choose_word_shapes(facts: Facts) -> Choice:
    """Take word shapes for names, if the encoder does not see case and has a table for them."""
    names, encoder = facts.share_of_names, facts.encoder
    if not facts.has_entities:
        return Choice(False, "The tags are no chunk tags.")
    if not names > constant("names"):
        share = "No entity" if math.isnan(names) else f"A share of {names:.2f} of the entities"
        return Choice(False, f"{share} is capitalised, so they are no names.")
    is_name = f"A share of {names:.2f} of the entities is capitalised"
    if encoder.sees_case:
        return Choice(False, f"{is_name}, and the encoder sees case by itself.")
    if not encoder.has_token_types:
        return Choice(False, f"{is_name}, but the encoder has no table of token types for shapes.")
    if not facts.trains_embeddings:
        return Choice(False, f"{is_name}, but the embeddings are frozen.")
    return Choice(True, f"{is_name}, and the encoder does not see case.")


def choose_crf(facts: Facts) -> Choice:
    """Score the tags of a sentence together where entities are few and no names."""
    names, n = facts.share_of_names, facts.n_entities
    if not facts.has_entities:
        return Choice(False, "The tags are no chunk tags.")
    if not names <= constant("names"):
        return Choice(False, "Names gained nothing by it.")
    if n > constant("few_entities"):
        return Choice(False, f"There are many entities: {n:,}.")
    return Choice(True, f"There are few entities, {n:,}, and they are no names.")


def choose_threshold(facts: Facts) -> Choice:
    """Take one half or, where a class is rare and cross-entropy is plain, its share of the rows."""
    share = facts.positive_share
    if share is None:
        return Choice(0.5, "The most probable class is predicted.")
    if not facts.is_plain:
        return Choice(0.5, "The loss weighs the classes.")
    if 0 < share < 1 / (1 + constant("rare")):
        return Choice(share, f"The positive class is rare: a share of {share:.3f} of the rows.")
    return Choice(0.5, f"The positive class is not rare: a share of {share:.3f} of the rows.")


def choose_null_threshold(facts: Facts) -> Choice:
    """Never predict "no answer" if all training questions have one; else begin with 0."""
    if not facts.n_unanswered:
        return Choice(math.inf, "All training questions have an answer.")
    return Choice(0.0, f"{facts.n_unanswered:,} training questions have no answer.")


def choose_negative_ratio(facts: Facts) -> Choice:
    """Sample the texts without a positive if there are more than four times as many of them."""
    is_query = facts.task == "querying"
    rare = constant("query_ratio" if is_query else "rare")
    ratio = constant("query_ratio" if is_query else "ratio")
    n_texts = facts.n_texts
    if n_texts is None:
        return Choice(None, "No text is without a positive, or the tags have no background.")
    shown = " and ".join(f"{n:,}" for n in n_texts.tolist())
    if len(n_texts) > 2:
        shown = f"{facts.n_positive:,} in all but the largest class"
    if (capped(n_texts, rare) < n_texts).any():
        return Choice(ratio, f"Positives are rare (texts with and without one: {shown}).")
    return Choice(None, f"Positives are not rare (texts with and without one: {shown}).")


def choose_loss(facts: Facts) -> Choice:
    """Take dice for queries, and for entities that are rare or few; else cross-entropy.

    With a shallow encoder, dice is behind cross-entropy where few words are inside entities.
    """
    if facts.task == "querying":
        return Choice("dice", "Few words start or end an entity of one type.")
    if not facts.has_entities or facts.n_texts is None:
        return Choice("ce", "No other loss was better on such rows.")
    if facts.ratio is not None:
        n_with = f"{facts.n_positive:,} of {facts.n_rows:,} sentences"
        return Choice("dice", f"Entities are rare: {n_with} have one.")
    if facts.n_unlabeled > facts.n_rows:
        n = f"{facts.n_unlabeled:,}"
        return Choice("ce", f"The {n} rows without labels add many entities.")
    if facts.n_entities > constant("few_entities"):
        return Choice("ce", f"There are many entities: {facts.n_entities:,}.")
    few, depth = f"There are few entities: {facts.n_entities:,}", facts.encoder.depth
    is_shallow = depth is not None and depth <= constant("shallow")
    if is_shallow and facts.density > constant("sparse"):
        around = f"{facts.density:.0f} words outside entities for each word inside"
        return Choice("ce", f"{few}, but with {around} an encoder of {depth} layers gains nothing.")
    return Choice("dice", f"{few}.")


def choose_memory(facts: Facts) -> Choice:
    """Remember as many steps as have about 40 positives, at most 10 or a quarter of an epoch.

    A step that has so many positives by itself gained nothing by memory, and some fits became too
    eager: their F1 was that of a network that knew less.
    """
    n = facts.set_positives
    if not n:
        return Choice(0.0, "There is no positive.")
    enough = constant("enough_positives")
    memory = min(enough * facts.n_steps / n, constant("most_memory"), facts.n_steps / 4)
    if memory <= 1:
        return Choice(0.0, "A step has enough positives by itself.")
    return Choice(round(memory, 1), f"A step has about {n / facts.n_steps:.1f} positives.")


def choose_max_epochs(facts: Facts) -> Choice:
    """Show texts with positives about 1,200 times, in at least about 200 steps."""
    if facts.compares:
        n = int(constant("pair_epochs"))
        return Choice(n, "The head of pairs begins trained.")
    name = "query_presentations" if facts.task == "querying" else "presentations"
    n_steps, shown = facts.n_steps, constant(name)
    wanted = math.ceil(max(constant("steps") / n_steps, shown / facts.n_positive))
    epochs = min(max(wanted, constant("fewest_epochs")), constant("most_epochs"))
    epochs = max(epochs, math.ceil(constant("fewest_steps") / n_steps))
    why = f"{facts.n_positive:,} texts have positives; an epoch has {n_steps:,} steps."
    if facts.has_entities and facts.ratio is None and facts.is_mean:
        passes = min(constant("passes"), constant("most_steps") // n_steps)
        if passes > epochs:
            return Choice(int(passes), f"{why} Cross-entropy gains by more passes.")
    return Choice(int(epochs), why)


def choose_lr(facts: Facts) -> Choice:
    """Take a rate that falls with the width and with the depth of the encoder."""
    encoder = facts.encoder
    lr = constant("lr") * constant("width") / encoder.width
    if encoder.depth:
        lr *= constant("depth") / encoder.depth
    if encoder.family.startswith("deberta"):
        lr *= constant("deberta")
    lr = float(f"{min(max(lr, constant('lowest_lr')), constant('highest_lr')):.1e}")
    layers = f"{encoder.depth} layers of " if encoder.depth else ""
    why = f"The encoder has {layers}{encoder.width:,} hidden units"
    if facts.has_adapters:
        return Choice(lr * constant("new"), f"{why}, and adapters learn faster.")
    return Choice(lr, f"{why}.")


def choose_head_lr(facts: Facts) -> Choice:
    """Take five times the rate of the encoder for a new head if that is open too, else the same."""
    if facts.lr is not None:
        return Choice(facts.lr, "It is that of lr.")
    if facts.has_trained_head:
        return Choice(choose_lr(facts).value, "The model brings a head that is trained already.")
    plain = choose_lr(facts).value / (constant("new") if facts.has_adapters else 1)
    return Choice(constant("new") * plain, "A new head has more to learn than the encoder.")


RULES: Mapping[str, Callable[[Facts], Choice]] = {
    "word_shapes": choose_word_shapes,
    "crf": choose_crf,
    "threshold": choose_threshold,
    "null_threshold": choose_null_threshold,
    "negative_ratio": choose_negative_ratio,
    "loss": choose_loss,
    "memory": choose_memory,
    "max_epochs": choose_max_epochs,
    "lr": choose_lr,
    "head_lr": choose_head_lr,
}


@dataclass
class Choices:
    """What was chosen so far in a fit."""

    made: dict[str, Choice] = field(default_factory=dict)

    def choose(self, name: str, facts: Facts) -> Any:
        """Choose an open parameter by its rule, and return the value."""
        self.made[name] = RULES[name](facts)
        return self.made[name].value

    def note(self, name: str, value: Any, why: str) -> None:
        """Note what was taken for a parameter in another way."""
        self.made[name] = Choice(value, why)

    def table(self) -> pd.DataFrame:
        """Return a row for each parameter that was left open."""
        values = pd.Series([choice.value for choice in self.made.values()], dtype=object)
        reasons = [choice.why for choice in self.made.values()]
        return pd.DataFrame({"parameter": list(self.made), "value": values, "why": reasons})


def capped(n_texts: np.ndarray, ratio: float) -> np.ndarray:
    """Return how many texts of each group an epoch has: at most ratio times all before it."""
    n_drawn = n_texts.copy()
    for i in range(1, len(n_texts)):
        if before := n_drawn[:i].sum():
            n_drawn[i] = min(n_texts[i], max(1, round(ratio * before)))
    return n_drawn
