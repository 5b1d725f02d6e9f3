"""The model card: what was trained, on how much, how well it does, and how to load it."""

import inspect
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from huggingface_hub import ModelCardData

from .._digest import installed_versions
from .._parameters import parameters_of
from .._pretrained import is_hub_id
from ..fitting import Fitted
from ..tasks import WordTask

_MOST_CLASSES = 100
_MOST_CHARACTERS = 300

_RANK = (
    "They rank; they are not calibrated probabilities. Losses made for F1 push scores to 0 and 1, "
    "so calibrate on held-out rows before reading them as frequencies."
)
_LEFT_OUT = (
    "That gives the logits of the transformer alone. Other networks of an ensemble, the comparison "
    "and the similarities of pairs, word-shape features, tags of a sentence that are scored "
    "together, thresholds, biases, well-formed tag sequences and windows over long texts come with "
    "skdice only."
)


def model_card(name: str, kind: type, parameters: dict[str, Any], fitted: Fitted) -> str:
    """Return the text of README.md for an estimator of a class in a directory called ``name``."""
    model, task = str(parameters["model"]), fitted.task
    is_of_hub = not os.path.isdir(model) and is_hub_id(model)
    base = _code(model if is_of_hub else os.path.basename(os.path.abspath(model)))
    tag = task.info.pipeline_tag
    header = ModelCardData(
        base_model=model if is_of_hub else None,
        library_name="skdice",
        pipeline_tag=tag,
        tags=["skdice", "scikit-learn", "transformers", tag, "imbalanced-data"],
    )
    what = f"A `{kind.__name__}` of skdice: a transformer that {task.info.summary}, fine-tuned from"
    sections = [
        f"---\n{header.to_yaml()}\n---",
        f"# {' '.join(name.split())}\n\n{what} {'' if is_of_hub else 'the local model '}{base}.",
        f"## Training\n\n{_table(('', ''), _training(kind, parameters, fitted))}",
    ]
    if len(fitted.choices):
        columns = [fitted.choices[name] for name in ("parameter", "value", "why")]
        rows = [(_code(name), _code(repr(value)), why) for name, value, why in zip(*columns)]
        sections.append(f"## What was chosen\n\n{_table(('parameter', 'value', 'why'), rows)}")
    if classes := task.class_names:
        shown = ", ".join(_code(str(label)) for label in classes[:_MOST_CLASSES])
        more = len(classes) - _MOST_CLASSES
        sections.append(f"## Classes\n\n{shown}" + (f", and {more} more" if more > 0 else ""))
    packages = "\n".join(f"- {name} {found}" for name, found in installed_versions().items())
    sections += [
        f"## Use\n\n{_usage(name, kind, fitted)}",
        f"## What the scores mean\n\n{task.info.scores} {_RANK}",
        f"## Versions\n\n{packages}",
    ]
    return "\n\n".join(sections) + "\n"


def _training(kind: type, parameters: dict[str, Any], fitted: Fitted) -> list[tuple[str, str]]:
    """Return rows of a table: facts of the fit, and the parameters that are not the defaults."""
    history, kept = fitted.history, fitted.runs[fitted.runs["is_kept"]]
    score = "none" if fitted.interrupted else "none: no rows were held out"
    if not np.isnan(fitted.score):
        score = f"{fitted.task.metric_name} {fitted.score:.4f}"
    made, best = (" and ".join(map(str, kept[name])) for name in ("epochs", "best_epoch"))
    epochs = made if made == best else f"{made}, of which the weights of epoch {best} are kept"
    if fitted.interrupted:
        epochs = f"{made}; the fit did not come to its end"
    rows = f"{fitted.n_rows:,}"
    if fitted.n_unlabeled:
        rows += f", and {fitted.n_unlabeled:,} without labels, which fitted networks labelled"
    if fitted.negative_ratio is not None and len(history):
        drawn = int(history["n_texts"].iloc[-1])
        rows += f"; an epoch has all texts with positives and others drawn anew, {drawn:,} texts"
    defaults = inspect.signature(kind).parameters
    changed = [
        key
        for key, part in parameters_of(kind).items()
        if part.on_card and repr(parameters[key]) != repr(defaults[key].default)
    ]
    learned = {key: np.asarray(x).tolist() for key, x in fitted.task.decision_attributes.items()}
    if isinstance(fitted.task, WordTask):
        learned["scheme_"] = fitted.task.scheme
    return [
        ("Loss", _code(repr(fitted.loss))),
        ("Precision", fitted.net.precision),
        ("Training rows", rows),
        ("Epochs", epochs),
        ("Learning rate", f"{fitted.net.lr:g}"),
        ("Validation score", score),
        *((f"`{key}`", _code(repr(value))) for key, value in learned.items()),
        *((f"Parameter `{key}`", _code(repr(parameters[key]))) for key in changed),
    ]


def _usage(name: str, kind: type, fitted: Fitted) -> str:
    code = (
        f"from skdice import {kind.__name__}\n\n"
        f"model = {kind.__name__}.from_pretrained({name!r})  # a directory, or a model of the hub\n"
        f"{fitted.task.info.call}"
    )
    alone = "Its head is skdice's own; transformers loads the encoder alone."
    if suffix := fitted.task.head.suffix:
        alone = f"transformers loads it as an `AutoModel{suffix}`. {_LEFT_OUT}"
    return f"```python\n{code}\n```\n\n{alone}"


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    head, *lines = [f"| {' | '.join(line)} |" for line in (header, *rows)]
    return "\n".join([head, "|---" * len(header) + "|", *lines])


def _code(text: str) -> str:
    """Return text as code that can stand in a table."""
    text = " ".join(text.split()).replace("`", "'").replace("|", "\\|")
    if len(text) > _MOST_CHARACTERS:
        text = text[: _MOST_CHARACTERS - 1] + "…"
    return f"`{text}`"
