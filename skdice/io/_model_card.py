"""The model card: what was trained, on how much, how well it does, and how to load it."""

import inspect
import os
import re
from typing import Any

import pandas as pd
from huggingface_hub import EvalResult, ModelCardData

from .._parameters import parameters_of
from ..nn import describe, is_of_peft
from ._manifest import Learned, installed_versions
from ._values import without_numpy

_MOST_CLASSES = 100
_MOST_CHARACTERS = 300

_RANK = (
    "They rank; they are not calibrated probabilities. Losses made for F1 push scores to 0 and 1, "
    "so calibrate on held-out rows before reading them as frequencies."
)
_LOAD = """\
from transformers import pipeline

model = pipeline({tag!r}, model={name!r})"""


def model_card(name: str, kind: type, parameters: dict[str, Any], fitted: Learned) -> str:
    """Return the text of README.md, for a directory with a name and an estimator of some kind."""
    model, task = str(parameters["model"]), fitted.task
    base = f"the local model {_code(os.path.basename(os.path.abspath(model)))}"
    base = _code(model) if _is_hub_id(model) else base
    sections = [
        _header(name, model, fitted),
        f"# {_heading(name)}\n\nA `{kind.__name__}` of skdice: a transformer that "
        f"{task.info.card.summary}, fine-tuned from {base}.",
        f"## Training\n\n{_training(kind, parameters, fitted)}",
    ]
    if len(fitted.choices):
        sections.append(f"## What was chosen\n\n{_choices(fitted.choices)}")
    if classes := task.class_names:
        shown = ", ".join(_code(str(label)) for label in classes[:_MOST_CLASSES])
        more = len(classes) - _MOST_CLASSES
        sections.append(f"## Classes\n\n{shown}" + (f", and {more} more" if more > 0 else ""))
    packages = "\n".join(f"- {name} {found}" for name, found in installed_versions().items())
    sections += [
        f"## Use\n\n{_usage(name, kind, fitted)}",
        f"## What the scores mean\n\n{task.info.card.scores} {_RANK}",
        f"## Versions\n\n{packages}",
    ]
    return "\n\n".join(sections) + "\n"


def _header(name: str, model: str, fitted: Learned) -> str:
    """Return the YAML block that hubs read."""
    tag, metric = fitted.task.info.card.pipeline_tag, fitted.task.metric_name
    data = ModelCardData(
        base_model=model if _is_hub_id(model) else None,
        library_name="skdice",
        pipeline_tag=tag,
        tags=["skdice", "scikit-learn", "transformers", tag, "imbalanced-data"],
    )
    score = _valid_score(fitted)
    if score is not None:
        # Hubs list a result only with a data set, and only the user knows its name.
        result = EvalResult(
            task_type=tag,
            dataset_type="held-out",
            dataset_name="Rows held out of the training data",
            dataset_split="validation",
            metric_type=metric.lower().split()[-1],  # "f1", also of "micro F1"
            metric_name=metric,
            metric_value=score,
        )
        data.model_name, data.eval_results = _line(name), [result]
    return f"---\n{data.to_yaml()}\n---"


def _valid_score(fitted: Learned) -> float | None:
    """Return the score of the epoch whose weights were kept, None if no rows were held out."""
    history = fitted.history
    if "valid_score" not in history or fitted.best_epoch not in history.index:
        return None
    return float(history["valid_score"][fitted.best_epoch])


def _is_hub_id(model: str) -> bool:
    return not os.path.isdir(model) and bool(re.fullmatch(r"[\w.-]+(/[\w.-]+)?", model, re.ASCII))


def _training(kind: type, parameters: dict[str, Any], fitted: Learned) -> str:
    best_epoch, n_epochs, task = fitted.best_epoch, len(fitted.history), fitted.task
    epochs = f"{n_epochs}{'; the fit did not come to its end' if fitted.interrupted else ''}"
    if best_epoch == 0:
        epochs = "interrupted in the first one"
    elif best_epoch != n_epochs:
        epochs += f", of which the weights of epoch {best_epoch} are kept"
    score = _valid_score(fitted)
    rows = f"{fitted.n_rows:,}"
    if fitted.n_unlabeled:
        rows += f", and {fitted.n_unlabeled:,} without labels, which fitted networks labelled"
    if fitted.negative_ratio is not None and n_epochs:
        n_texts = int(fitted.history["n_texts"].iloc[-1])
        rows += f"; an epoch has all texts with positives and others drawn anew, {n_texts:,} texts"
    defaults = inspect.signature(kind).parameters
    changed = {
        key: describe(parameters[key]) if is_of_peft(parameters[key]) else repr(parameters[key])
        for key, part in parameters_of(kind).items()
        if part.on_card and repr(parameters[key]) != repr(defaults[key].default)
    }
    facts = {
        "Loss": _code(repr(fitted.loss)),
        "Precision": fitted.net.precision,
        "Training rows": rows,
        "Epochs": epochs,
        "Learning rate": f"{fitted.net.lr:g}",
        "Validation score": "none: no rows were held out"
        if score is None
        else f"{task.metric_name} {score:.4f} (epoch {best_epoch})",
        **{f"`{key}`": _code(repr(without_numpy(x))) for key, x in task.decision.items()},
        **{f"Parameter `{key}`": _code(part) for key, part in changed.items()},
    }
    lines = [f"| {key} | {value} |" for key, value in facts.items()]
    return "\n".join(["| | |", "|---|---|", *lines])


def _choices(choices: pd.DataFrame) -> str:
    """Return a table of what was taken for parameters that were left open."""
    rows = zip(choices["parameter"], choices["value"], choices["why"])
    lines = [f"| {_code(name)} | {_code(repr(value))} | {why} |" for name, value, why in rows]
    return "\n".join(["| parameter | value | why |", "|---|---|---|", *lines])


def _usage(name: str, kind: type, fitted: Learned) -> str:
    card, n_members = fitted.task.info.card, 1 + len(fitted.net.module_.members)
    own = (
        f"```python\nfrom skdice import {kind.__name__}\n\n"
        f"model = {kind.__name__}.from_pretrained({name!r})\n{card.call}\n```\n\n"
    )
    if card.transformers is None:
        return f"{own}Its head is skdice's own; transformers loads the encoder alone."
    pair = ['"Where does John live?"', '"John lives in Oslo."']
    texts = ", ".join(pair[::-1] if fitted.reader.tokenizer.pads_left else pair)
    load = _LOAD.format(tag=card.pipeline_tag, name=name)
    code = card.transformers.format(name=name, texts=texts, load=load)
    same = "That gives the same logits. "
    if n_members > 1:
        same = f"That gives the logits of one of {n_members} networks. "
    if fitted.task.head.n_token_types is not None:
        same = "That gives worse logits: the network is not told the shape of each word. "
    chain = fitted.task.head.transitions is not None
    return (
        f"{own}Without skdice:\n\n```python\n{code}\n```\n\n{same}"
        f"{'Tags of a sentence that are scored together, thresholds' if chain else 'Thresholds'}, "
        f"biases, well-formed tag sequences and windows over long texts come with skdice only."
    )


def _code(text: str) -> str:
    """Return text as code that can stand in a table."""
    text = _line(text).replace("`", "'").replace("|", "\\|")
    if len(text) > _MOST_CHARACTERS:
        text = text[: _MOST_CHARACTERS - 1] + "…"
    return f"`{text}`"


def _heading(text: str) -> str:
    """Return text in which nothing is HTML or Markdown."""
    return re.sub(r"([\\`*_\[\]<>&#~|$])", r"\\\1", _line(text))


def _line(text: str) -> str:
    return " ".join(text.split())
