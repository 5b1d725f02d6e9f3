"""The rules of "auto": what a fit takes for parameters that are left open, and why.

A rule is a function from facts to a choice. Facts of the rows (:class:`RowFacts`) are known before
anything is encoded, facts of an epoch (:class:`EpochFacts`) once the texts are encoded. Facts are
complete when they are made, so no rule can be asked too early. Rules know nothing of estimators or
networks. The constants stand here once, each with its evidence.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import softmax

from ..nn import Encoder
from ..tasks import LabelFacts, TaskName
from ..text import capped


class Constant(NamedTuple):
    """A number that a rule goes by, and where its evidence is."""

    value: float
    meaning: str
    evidence: str


_STUDY, _RESULTS = "benchmarks/STUDY.md#", "benchmarks/RESULTS.md#"
_ENCODERS, _FIRST = f"{_RESULTS}other-encoders", f"{_RESULTS}a-first-fit"
_SIXTH = f"{_STUDY}the-sixth-edition"
_SAMPLED, _LENGTH = f"{_RESULTS}sampled-epochs", f"{_STUDY}the-fifth-edition"
_QUERIES = f"{_RESULTS}asking-for-entities-bert-mrc-against-tagging-words"
_MEMORY = f"{_RESULTS}set-losses-that-remember-steps"
_RARE, _SHAPES = f"{_RESULTS}thresholds-of-rare-pairs", f"{_RESULTS}shapes-that-are-left-out"
_REGRESSED = f"{_RESULTS}texts-whose-head-begins-as-a-regression"
CONSTANTS = {
    "many_entities": Constant(5000, "entities from which on dice is taken, and no CRF", _SIXTH),
    "names": Constant(2 / 3, "share of capitalised entities that makes them names", _SHAPES),
    "ratio": Constant(2, "negative texts drawn for each rare positive", _SAMPLED),
    "presentations": Constant(1200, "times that texts with positives are shown", _SAMPLED),
    "queries": Constant(2, "times the presentations, and part of the ratio, for queries", _QUERIES),
    "steps": Constant(200, "optimiser steps that a fit makes at least", _FIRST),
    "fewest_epochs": Constant(3, "epochs at least, and of heads that are regressions", _REGRESSED),
    "most_epochs": Constant(30, "epochs at most, and of few sentences with entities", _LENGTH),
    "few": Constant(250, "sentences with the most epochs", _LENGTH),
    "few_positives": Constant(100, "positives with a low threshold at most", _RARE),
    "lr": Constant(0.46, "learning rate times hidden units times layers", _ENCODERS),
    "new": Constant(5, "times the rate that new weights learn at", "judgement"),
    "again": Constant(3, "part of lr for a fit that has learned nothing", "judgement"),
    "enough_positives": Constant(40, "positives that a remembered set has", _MEMORY),
}
_USUAL_DEPTH = 12  # layers of an encoder that does not say how many it has
_SMALLEST = 384 * 6  # units times layers of the smallest one that was measured, all-MiniLM-L6-v2
_NO_ENTITIES = "Tags without a B- or I- prefix are no entities, so score is accuracy."


@dataclass(frozen=True, eq=False, kw_only=True)
class RowFacts:
    """What is known of the rows, the encoder and the settings of a fit."""

    task: TaskName
    labels: LabelFacts
    encoder: Encoder
    n_rows: int  # with labels
    trains_embeddings: bool  # whether the layers below the first one are trained
    has_adapters: bool
    is_plain: bool  # whether the loss is cross-entropy without class weights, or open


@dataclass(frozen=True, eq=False, kw_only=True)
class EpochFacts:
    """What is known of the texts that an epoch draws."""

    rows: RowFacts  # of the training rows
    n_texts: np.ndarray | None  # of each group, those with positives or of the rarest class first
    n_positive: int  # texts with positives; of classes, those of all but the most frequent one
    ratio: float | None  # what is taken for negative_ratio
    n_steps: int  # of the optimiser
    begins_trained: bool  # whether the head begins as a regression
    has_trained_head: bool  # whether the checkpoint brings a head of this task


class Choice(NamedTuple):
    """What is taken for an open parameter, and why, in a sentence."""

    value: Any
    why: str


def choose_word_shapes(facts: RowFacts) -> Choice:
    """Take word shapes for names, if the encoder does not see case."""
    names, encoder = facts.labels.share_of_names, facts.encoder
    if not facts.labels.has_entities:
        return Choice(False, _NO_ENTITIES)
    if math.isnan(names):
        return Choice(False, "No sentence with an entity has a capital letter.")
    if names <= CONSTANTS["names"].value:
        return Choice(False, f"Only {names:.0%} of entities are capitalised: they are no names.")
    are_names = f"The entities are names, {names:.0%} of them capitalised"
    if encoder.sees_case:
        return Choice(False, f"{are_names}, but the encoder sees case by itself.")
    if not facts.trains_embeddings:
        return Choice(False, f"{are_names}, but the embeddings that tell shapes are frozen.")
    return Choice(True, f"{are_names}, and the encoder does not see case.")


def choose_crf(facts: RowFacts) -> Choice:
    """Score the tags of a sentence together where entities are few and no names."""
    names, n = facts.labels.share_of_names, facts.labels.n_entities
    if not facts.labels.has_entities:
        return Choice(False, _NO_ENTITIES)
    many = int(CONSTANTS["many_entities"].value)
    if math.isnan(names):
        return Choice(False, "They may be names: no sentence with an entity has a capital letter.")
    if names > CONSTANTS["names"].value:
        why = f"The entities are names, {names:.0%} of them capitalised"
        return Choice(False, f"{why}, and a CRF did not raise F1 of names.")
    if n >= many:
        why = f"A CRF was not measured with {many:,} or more entities, and takes time"
        return Choice(False, f"{why}: there are {n:,}.")
    why = f"A CRF raised F1 of few entities that are no names, and there are {n:,}"
    return Choice(True, f"{why}, less than {many:,}.")


def choose_threshold(facts: RowFacts) -> Choice:
    """Take one half; of few rows of a rare class its share, if the loss is plain cross-entropy."""
    share = facts.labels.positive_share
    if share is None:
        return Choice(0.5, "There are not two classes of which one could be rare, so 0.5 is kept.")
    if not facts.is_plain:
        return Choice(0.5, "The loss is not cross-entropy without class weights, so 0.5 is kept.")
    if not 0 < share < 1 / (1 + 2 * CONSTANTS["ratio"].value):
        return Choice(0.5, f"The positive class is not rare: {share:.1%} of the rows.")
    why, n = f"The positive class is rare, {share:.1%} of the rows", share * facts.n_rows
    if n > (few := CONSTANTS["few_positives"].value):
        return Choice(0.5, f"{why}, but these are {n:,.0f}: above {few:.0f} 0.5 is no worse.")
    return Choice(share, f"{why}, and this share is better for F1 than 0.5.")


def choose_null_threshold(facts: RowFacts) -> Choice:
    """Never predict "no answer" if all training questions have one; else begin with 0."""
    if not facts.labels.n_unanswered:
        return Choice(math.inf, "All training questions have an answer, so all questions get one.")
    why = f"{facts.labels.n_unanswered:,} training questions have no answer"
    return Choice(0.0, f"{why}, so one is given only if it is likely enough.")


def choose_negative_ratio(facts: RowFacts, n_texts: np.ndarray | None, n_positive: int) -> Choice:
    """Sample the texts without a positive if there are more than twice as many as are drawn."""
    is_query = facts.task == "query-tagging"
    ratio = CONSTANTS["ratio"].value / (CONSTANTS["queries"].value if is_query else 1)
    if n_texts is None:
        why = "No text is without a positive"
        if facts.task == "tagging" and not facts.labels.has_entities:
            why = "Tags that are no entities have no positives"
        return Choice(None, f"{why}, so an epoch has all texts.")
    label = "a label" if facts.labels.positive_share is None else "the rarer label"
    what = _POSITIVES.get(facts.task, label)
    shown = f"{n_texts[0]:,} texts with and {n_texts[-1]:,} without {what}"
    if len(n_texts) > 2:
        shown = f"{n_positive:,} texts in all but the largest class, {n_texts[-1]:,} in that one"
    if (capped(n_texts, 2 * ratio) < n_texts).any():
        drawn = f"An epoch draws {ratio:g} of the latter for each of the former."
        return Choice(ratio, f"Positives are rare: {shown}. {drawn}")
    return Choice(None, f"Positives are not rare: {shown}. An epoch has all texts.")


def choose_loss(facts: EpochFacts) -> Choice:
    """Take dice where entities are rare or 5,000 and more, and otherwise cross-entropy.

    Whole corpora have as many. Dice was better there than cross-entropy, or level, and behind it or
    level with 250 and 1,000 sentences. Rare entities have few steps, in which dice learns faster.
    """
    rows, labels = facts.rows, facts.rows.labels
    if rows.task == "query-tagging":
        where = "few words start or end an entity of one type"
        return Choice("dice", f"Dice was better than cross-entropy where {where}.")
    if not labels.has_entities or facts.n_texts is None:
        kind = "entities without 'O'" if labels.has_entities else _KINDS[rows.task]
        return Choice("ce", f"No other loss was better in our measurements of {kind}.")
    n, many = labels.n_entities, int(CONSTANTS["many_entities"].value)
    if facts.ratio is not None:
        why = "Dice was better than cross-entropy where entities are rare, or level"
        n_with = f"{facts.n_positive:,} of {facts.n_texts.sum():,} sentences"
        return Choice("dice", f"{why}, and {n_with} have one.")
    if n < many:
        why = f"No other loss was clearly better with less than {many:,} entities"
        return Choice("ce", f"{why}, and there are {n:,}.")
    why = f"Dice was better than cross-entropy, or level, with {many:,} or more entities"
    return Choice("dice", f"{why}, and there are {n:,}.")


def choose_memory(facts: EpochFacts, set_positives: float) -> Choice:
    """Remember the steps that have about 40 positives, at most a quarter of an epoch.

    ``set_positives`` are the positives in the set of a set loss, or in its smallest one. Steps with
    40 positives gained nothing by memory, and some of these fits predicted too many positives.
    """
    n = set_positives
    if not n:
        return Choice(0.0, "There is no positive, so nothing is to be remembered.")
    enough = CONSTANTS["enough_positives"].value
    memory = min(enough * facts.n_steps / n, facts.n_steps / 4)
    if facts.n_steps <= 4:
        return Choice(0.0, f"An epoch has only {facts.n_steps} steps, too few to remember some.")
    if memory <= 1:
        return Choice(0.0, f"A step has enough positives by itself: about {enough:.0f} or more.")
    why = f"A step has about {n / facts.n_steps:.1f} positives, the loss needs about {enough:.0f}"
    why = f"{why}. So it remembers as many steps as have these, at most a quarter of an epoch."
    return Choice(round(memory, 1), why)


def choose_max_epochs(facts: EpochFacts) -> Choice:
    """Show texts with positives about 1,200 times, in at least about 200 steps.

    Over sentences with entities, the epochs fall with the square root of their number, so that
    twice the sentences have 1.4 times the steps.
    """
    fewest, most = int(CONSTANTS["fewest_epochs"].value), int(CONSTANTS["most_epochs"].value)
    if facts.begins_trained:
        why = f"{fewest} epochs, because the head starts from a logistic regression."
        return Choice(fewest, why)
    n_steps, n_positive, rows = facts.n_steps, facts.n_positive, facts.rows
    positives = "texts with positives" if facts.n_texts is not None else "texts"
    times = CONSTANTS["queries"].value if rows.task == "query-tagging" else 1
    shown = times * CONSTANTS["presentations"].value
    wanted, aim = shown / n_positive, f"about {shown:,.0f} presentations"
    if rows.task == "tagging" and rows.labels.has_entities and facts.ratio is None:
        positives = "sentences"
        n_positive = n_positive if facts.n_texts is None else int(facts.n_texts.sum())
        few, wanted = CONSTANTS["few"].value, float(most)
        wanted *= math.sqrt(few / max(n_positive, few))
        aim = f"{most} epochs of {few:.0f} sentences, half of that of four times as many"
    of_steps = math.ceil(CONSTANTS["steps"].value / n_steps)
    epochs = max(min(max(math.ceil(wanted), fewest), most), of_steps)
    least = f"at least {CONSTANTS['steps'].value:.0f} steps"
    aim = f"The aim is {aim}, in {fewest} to {most} epochs, and {least}"
    if epochs > most:
        aim = f"A tiny set takes {least}"
    presented = f"{n_positive:,} {positives} x {epochs} = {n_positive * epochs:,}"
    made = f"{n_steps:,} x {epochs} = {n_steps * epochs:,} steps"
    why = f"{epochs} epochs: {presented} presentations, in {made}. {aim}."
    return Choice(epochs, why)


def too_few_epochs(facts: EpochFacts, given: int, usual: int) -> str | None:
    """Return a warning for less than half of the epochs that "auto" takes, ``usual``, or None.

    A head that begins trained needs fewer, and a set of one step is only tried out.
    """
    is_trained = facts.begins_trained or facts.has_trained_head
    if is_trained or 2 * given >= usual or facts.n_steps == 1:
        return None
    few = f"max_epochs={given} is less than half of what max_epochs='auto' would take here"
    return f"{few}, {usual} epochs. A fit that is too short finds little."


def choose_lr(encoder: Encoder, has_adapters: bool) -> Choice:
    """Take a rate that falls with the width and with the depth of the encoder.

    Encoders that are smaller than all that were measured have the rate of the smallest one.
    """
    size = max(_SMALLEST, encoder.width * (encoder.depth or _USUAL_DEPTH))
    lr = float(f"{CONSTANTS['lr'].value / size:.1e}")
    layers = f"{encoder.depth} layers of " if encoder.depth else ""
    why = f"It suits an encoder of {layers}{encoder.width:,} hidden units"
    if has_adapters:
        times = CONSTANTS["new"].value
        return Choice(lr * times, f"{why}, times {times:.0f} because only adapters are trained.")
    return Choice(lr, f"{why}: the larger an encoder, the lower the rate.")


def choose_head_lr(
    encoder: Encoder, has_adapters: bool, lr: float | None, has_trained_head: bool
) -> Choice:
    """Take the ``lr`` that is given; if it is open, a new head learns at five times the rate."""
    if lr is not None:
        return Choice(lr, "It is the rate that lr gives to the encoder.")
    if has_trained_head:
        why = "The head is trained already, so it learns at the rate of the encoder."
        return Choice(choose_lr(encoder, has_adapters).value, why)
    times = f"{CONSTANTS['new'].value:.0f} times the rate of a whole encoder"
    why = f"The checkpoint has no head for this task, so the head learns at {times}."
    return Choice(choose_lr(encoder, has_adapters=True).value, why)  # That of all new weights.


def must_learn(facts: EpochFacts, max_epochs: int, is_open: bool) -> bool:
    """Tell whether a fit that learned nothing starts again: its rate is open, its head is new."""
    is_trained = facts.begins_trained or facts.has_trained_head
    return is_open and max_epochs > CONSTANTS["fewest_epochs"].value and not is_trained


def choose_rates_again(lr: float, head_lr: float, problem: BaseException) -> tuple[Choice, Choice]:
    """Take a third of the open rates with which a fit learned nothing."""
    why = f"With {lr:g} the fit learned nothing, so it started again with a third. {problem}"
    of_head = "It is a third of the rate of the first try, as lr is."
    times = CONSTANTS["again"].value
    return Choice(lr / times, why), Choice(head_lr / times, of_head)


def is_informed(n_folds: int, gain: float) -> bool:
    """Tell whether the encoder's states raise the log-likelihood of the labels, out of folds."""
    # Akaike's criterion: each of the two parameters that scale their scores gains 1 by chance.
    return not n_folds or gain >= 2


def choose_head(n_folds: int, gain: float) -> Choice:
    """Begin with a logistic regression on the states of texts, if these say something."""
    if not is_informed(n_folds, gain):
        why = "The encoder tells nothing of the texts before training"
        return Choice("random", f"{why}, so a regression is no beginning.")
    if not n_folds:
        why = "A class is in one training text or group, so no folds can show that it is worse."
        return Choice("regression", why)
    why = "A logistic regression on the encoder's mean states predicts training texts that it has"
    return Choice("regression", f"{why} not seen, in {n_folds} folds, better than a guess.")


def choose_similarities(
    n_folds: int, has_groups: bool, gain: float, likelihood: Mapping[float, float]
) -> Choice:
    """Give similarities the share of the logits that predicts held-out training pairs best.

    ``likelihood`` is the log-likelihood of their labels, for each share of the network.
    """
    if not n_folds:
        lack, folds = "A class has a single training pair", "folds"
        if has_groups:
            lack, folds = "A class is in too few groups", "folds that keep groups together"
        return Choice(0.0, f"{lack}, so {folds} cannot show how much similarities are worth.")
    if not is_informed(n_folds, gain):
        both = "so the network and the similarities count equally"
        return Choice(0.5, f"The encoder tells nothing of the pairs before training, {both}.")
    # The mean over all shares, each weighted by the likelihood of the labels with it.
    network = round(float(softmax([*likelihood.values()]) @ [*likelihood]), 2)
    folds = f"{n_folds} folds{' that keep groups together' if has_groups else ''}"
    why = "With this share of the log-odds, training pairs that were held out are predicted best"
    return Choice(round(1 - network, 2), f"{why}, in {folds}.")


def choose_machine(device: str, precision: str) -> dict[str, Choice]:
    """Take a GPU if torch can use one, and train in half precision where that is faster."""
    found, what = "PyTorch finds no GPU that it can use.", "The CPU"
    if device != "cpu":
        found, what = "PyTorch can use this GPU.", "The GPU"
    why = f"{what} trains faster in it. Predictions are made in fp32."
    if precision == "fp32":
        why = f"{what} is not known to train faster in half precision."
    return {"device": Choice(device, found), "precision": Choice(precision, why)}


def choose_cuda_graphs(*, shows_parts: bool, is_fixed: bool) -> Choice:
    """Launch each step on a GPU at once, as a CUDA graph, unless something has to see its parts.

    ``shows_parts`` says whether something does, and ``is_fixed`` whether all steps of one shape
    compute the same. What was measured: benchmarks/RESULTS.md, "On a GPU".
    """
    if shows_parts:
        why = "Several processes, accumulated batches, callbacks and fp16 need the parts of a step."
        return Choice(False, why)
    if not is_fixed:
        parts = "Texts padded on the left, matches, and losses of one's own or with hard examples"
        return Choice(False, f"{parts} cannot be part of a graph.")
    return Choice(True, "A GPU computes a step faster than Python can launch its operators.")


# What the rows of a task are called.
_KINDS = {
    "tagging": "tags that are no entities",
    "questions": "questions",
    "texts": "texts",
    "pairs": "pairs of texts",
}
# What makes a text positive, where this is no label.
_POSITIVES = {
    "tagging": "an entity",
    "query-tagging": "an entity that was asked for",
    "questions": "an answer",
}
# What a task leaves open, chosen before anything is encoded.
TASK_RULES: Mapping[str, Callable[[RowFacts], Choice]] = {
    "word_shapes": choose_word_shapes,
    "crf": choose_crf,
    "threshold": choose_threshold,
    "null_threshold": choose_null_threshold,
}


def table_of(choices: Mapping[str, Choice]) -> pd.DataFrame:
    """Return a row for each parameter that was left open."""
    values = pd.Series([choice.value for choice in choices.values()], dtype=object)
    reasons = [choice.why for choice in choices.values()]
    return pd.DataFrame({"parameter": list(choices), "value": values, "why": reasons})
