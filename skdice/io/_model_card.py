"""The model card: what was trained, on how much, how well it does, and how to load it."""

import os
import re
from dataclasses import dataclass
from typing import Any

import pandas as pd
from huggingface_hub import EvalResult, ModelCardData

from .._configuration import MODEL_CONFIG
from ..nn import describe, is_of_peft
from ..tasks import CardTexts
from ._manifest import Manifest

_MOST_CLASSES = 100
_MOST_CHARACTERS = 300


_RANK = (
    "They rank; they are not calibrated probabilities. Losses made for F1 push scores to 0 and 1, "
    "so calibrate on held-out rows before reading them as frequencies."
)
_ADAPTERS = (
    " It has adapters and a head alone: what loads it needs that model too, and the package `peft`."
)

_LOAD = """\
from transformers import pipeline

model = pipeline({tag!r}, model={name!r})"""
_LOAD_ADAPTERS = """\
from transformers import AutoConfig, {auto_class}, AutoTokenizer, pipeline

config = AutoConfig.from_pretrained({config!r})
network = {auto_class}.from_pretrained({name!r}, config=config)
tokenizer = AutoTokenizer.from_pretrained({name!r})
model = pipeline({tag!r}, model=network, tokenizer=tokenizer)"""
_AUTO_CLASSES = {
    "token-classification": "AutoModelForTokenClassification",
    "text-classification": "AutoModelForSequenceClassification",
}


@dataclass(frozen=True)
class Run:
    """What a model card tells of a fit."""

    texts: CardTexts
    manifest: Manifest
    parameters: dict[str, Any]  # of the constructor, those that are not the default ones
    metric: str
    decision: dict[str, Any]  # what was learned or tuned besides the weights
    classes: list[Any]
    n_members: int = 1
    is_context_first: bool = False

    @property
    def model(self) -> str:
        """Hub id or directory of the base model."""
        return str(self.manifest.parameters["model"])


def model_card(run: Run, name: str) -> str:
    """Return the text of README.md, of a directory with a name."""
    base = f"the local model {_code(os.path.basename(os.path.abspath(run.model)))}"
    base = _code(run.model) if _is_hub_id(run.model) else base
    sections = [
        _header(run, name),
        f"# {_heading(name)}\n\nA `{run.manifest.estimator}` of skdice: a transformer that "
        f"{run.texts.summary}, fine-tuned from {base}."
        f"{_ADAPTERS if run.manifest.has_adapters else ''}",
        f"## Training\n\n{_training(run)}",
    ]
    choices = run.manifest.state["choices_"]
    if len(choices):
        sections.append(f"## What was chosen\n\n{_choices(choices)}")
    if run.classes:
        shown = ", ".join(_code(str(label)) for label in run.classes[:_MOST_CLASSES])
        more = len(run.classes) - _MOST_CLASSES
        sections.append(f"## Classes\n\n{shown}" + (f", and {more} more" if more > 0 else ""))
    packages = "\n".join(f"- {name} {found}" for name, found in run.manifest.versions.items())
    sections += [
        f"## Use\n\n{_usage(run, name)}",
        f"## What the scores mean\n\n{run.texts.scores} {_RANK}",
        f"## Versions\n\n{packages}",
    ]
    return "\n\n".join(sections) + "\n"


def _header(run: Run, name: str) -> str:
    """Return the YAML block that hubs read."""
    task = run.texts
    data = ModelCardData(
        base_model=run.model if _is_hub_id(run.model) else None,
        library_name="skdice",
        pipeline_tag=task.pipeline_tag,
        tags=["skdice", "scikit-learn", "transformers", task.pipeline_tag, "imbalanced-data"],
    )
    score = run.manifest.metrics.get("valid_score")
    if score is not None:
        # Hubs list a result only with a data set, and only the user knows its name.
        result = EvalResult(
            task_type=task.pipeline_tag,
            dataset_type="held-out",
            dataset_name="Rows held out of the training data",
            dataset_split="validation",
            metric_type=run.metric.lower().split()[-1],  # "f1", also of "micro F1"
            metric_name=run.metric,
            metric_value=score,
        )
        data.model_name, data.eval_results = _line(name), [result]
    return f"---\n{data.to_yaml()}\n---"


def loss_of(criterion: Any) -> Any:
    """Return the loss of the parameters, of which a criterion may form several."""
    return getattr(criterion, "loss", criterion)


def _is_hub_id(model: str) -> bool:
    return not os.path.isdir(model) and bool(re.fullmatch(r"[\w.-]+(/[\w.-]+)?", model, re.ASCII))


def _training(run: Run) -> str:
    state, network = run.manifest.state, run.manifest.network
    best_epoch, n_epochs = state["best_epoch_"], len(state["history_"])
    epochs = f"{n_epochs}{'; the fit did not come to its end' if state['interrupted_'] else ''}"
    if best_epoch == 0:
        epochs = "interrupted in the first one"
    elif best_epoch != n_epochs:
        epochs += f", of which the weights of epoch {best_epoch} are kept"
    score = "none: no rows were held out"
    if "valid_score" in run.manifest.metrics:
        score = f"{run.metric} {run.manifest.metrics['valid_score']:.4f} (epoch {best_epoch})"
    loss = repr(loss_of(network["criterion"]))
    if isinstance(run.manifest.parameters["loss"], str):
        loss = f"{run.manifest.parameters['loss']}: {loss}"
    shown = {
        key: describe(part) if is_of_peft(part) else repr(part)
        for key, part in run.parameters.items()
    }
    facts = {
        "Loss": _code(loss),
        "Precision": network["precision"],
        "Training rows": f"{state['_n_training_rows']:,}{_unlabeled(state)}{_of_epoch(state)}",
        "Epochs": epochs,
        "Learning rate": f"{state['lr_']:g}",
        "Validation score": score,
        **{f"`{key}`": _code(repr(value)) for key, value in run.decision.items()},
        **{f"Parameter `{key}`": _code(part) for key, part in shown.items()},
    }
    rows = [f"| {key} | {value} |" for key, value in facts.items()]
    return "\n".join(["| | |", "|---|---|", *rows])


def _choices(choices: pd.DataFrame) -> str:
    """Return a table of what was taken for parameters that were left open."""
    rows = zip(choices["parameter"], choices["value"], choices["why"])
    lines = [f"| {_code(name)} | {_code(repr(value))} | {why} |" for name, value, why in rows]
    return "\n".join(["| parameter | value | why |", "|---|---|---|", *lines])


def _unlabeled(state: dict[str, Any]) -> str:
    n_rows = state["_n_unlabeled_rows"]
    return (
        f", and {n_rows:,} without labels, which networks fitted on these labelled"
        if n_rows
        else ""
    )


def _of_epoch(state: dict[str, Any]) -> str:
    if state["negative_ratio_"] is None or not len(state["history_"]):
        return ""
    n_texts = int(state["history_"]["n_texts"].iloc[-1])
    return f"; an epoch has all texts with positives and others drawn anew, {n_texts:,} texts"


def _usage(run: Run, name: str) -> str:
    task, estimator = run.texts, run.manifest.estimator
    learned = run.manifest.state["_learned_task"]
    own = (
        f"```python\nfrom skdice import {estimator}\n\n"
        f"model = {estimator}.from_pretrained({name!r})\n{task.call}\n```\n\n"
    )
    if task.transformers is None:
        return f"{own}Its head is skdice's own; transformers loads the encoder alone."
    pair = ['"Where does John live?"', '"John lives in Oslo."']
    texts = ", ".join(pair[::-1] if run.is_context_first else pair)
    tag = task.pipeline_tag
    load = (_LOAD_ADAPTERS if run.manifest.has_adapters else _LOAD).format(
        tag=tag, name=name, config=f"{name}/{MODEL_CONFIG}", auto_class=_AUTO_CLASSES.get(tag)
    )
    code = task.transformers.format(tag=tag, name=name, texts=texts, load=load)
    same = "That gives the same logits. "
    if run.n_members > 1:
        same = f"That gives the logits of one of {run.n_members} networks. "
    if learned.get("word_shapes"):
        same = "That gives worse logits: the network is not told the shape of each word. "
    chain = "Tags of a sentence that are scored together, thresholds"
    return (
        f"{own}Without skdice:\n\n```python\n{code}\n```\n\n{same}"
        f"{chain if learned.get('crf') else 'Thresholds'}, "
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
