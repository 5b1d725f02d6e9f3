"""Fitted estimators as directories: what to save of them, and how they come back."""

import inspect
import math
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import check_is_fitted

from ..io._load import read
from ..io._manifest import Manifest, damaged, installed_versions
from ..io._model_card import Run
from ..io._network import check_weights, read_head
from ..io._onnx import export
from ..io._replace import as_path, read_one_version
from ..io._save import Fitted, save
from ..losses import Loss
from ..nn._modules import TextModule, position_limit
from ..nn._net import TextNet
from ..nn._ranks import is_first_process
from ..nn._runtime import resolve_device, seeded
from ..text._tokenizer import WordTokenizer
from ._saved_state import check_saved_state

# Saved in files of their own, or set by scikit-learn for routing and output.
_NOT_STATE = ("net_", "loss_", "tokenizer_", "_metadata_request", "_sklearn_output_config")
_NOT_ON_CARD = ("model", "loss", "device", "checkpoint_dir", "verbose", "callbacks")
_DECISION = ("scheme_", "threshold_", "background_bias_", "null_threshold_")
_TRANSFORMER = "transformer."


class PersistenceMixin:
    """``save_pretrained``, ``from_pretrained`` and ``export_onnx`` of an estimator.

    All that ``fit`` sets on an estimator is saved: it has to be made of numbers, str, arrays,
    tables, lists and dicts.
    """

    _task: str  # a key of skdice.io._model_card.TASKS
    _module_class: type[TextModule]

    get_params: Callable[..., dict[str, Any]]
    net_: TextNet
    tokenizer_: WordTokenizer
    max_length_: int
    history_: pd.DataFrame
    best_epoch_: int
    interrupted_: bool
    _n_training_rows: int

    def save_pretrained(self, directory: str | os.PathLike[str]) -> None:
        """Save the fitted estimator as a directory that transformers can load, too.

        It has the weights (``model.safetensors``), ``config.json`` with the labels, the tokenizer,
        ``skdice.json`` (parameters, classes, thresholds, history, versions and the SHA-256 of the
        other files) and a model card (``README.md``). There is no pickle in it. ``callbacks`` and a
        ``random_state`` that is no int are not saved.

        In a job of several processes the first one saves, and the call does nothing in the others.

        Parameters
        ----------
        directory : str or PathLike
            New, empty, or saved before: that is replaced as a whole when all files are written, so
            that a crash or a full disk leaves the old model.

        Raises
        ------
        NotFittedError
            If there is nothing to save.
        TypeError
            If ``directory`` is no path.
        ValueError
            If ``directory`` has files of something else, or a parameter or label is of a type that
            JSON cannot hold.
        OSError
            If the disk is full, or the file system does not let us.

        See Also
        --------
        from_pretrained : Loads it again.

        Examples
        --------
        >>> tagger.fit(sentences, tags).save_pretrained("tagger")  # doctest: +SKIP
        >>> transformers.pipeline("token-classification", "tagger")  # doctest: +SKIP
        """
        check_is_fitted(self, "net_")
        if is_first_process():
            parameters = self._saved_parameters()
            save(directory, self._fitted(parameters))

    @classmethod
    def from_pretrained(
        cls, directory: str | os.PathLike[str], *, device: str | None = None
    ) -> Self:
        """Load an estimator that :meth:`save_pretrained` saved.

        Everything is read from the directory, and no code in it is run. Predictions are those of
        the saved estimator. ``model`` still names the base model, so that ``clone`` and ``fit``
        start afresh from it.

        Parameters
        ----------
        directory : str or PathLike
        device : str, optional
            The ``device`` of the estimator; by default the one it was saved with.

        Returns
        -------
        estimator
            Fitted.

        Raises
        ------
        TypeError
            If ``directory`` is no path.
        ValueError
            If it is no directory of skdice, or a file in it is missing or has changed, or it was
            saved by a newer skdice or by another class.

        See Also
        --------
        skdice.io.load_pretrained : Loads an estimator of any class.
        """
        return read_one_version(as_path(directory), lambda place: cls._read(place, device))

    def export_onnx(self, path: str | os.PathLike[str]) -> None:
        """Export the network of the fitted estimator as an ONNX file, for use without torch.

        The file has the network alone: :meth:`save_pretrained` saves the tokenizer, and cutting
        long texts and turning logits into answers is up to the program that runs it.

        Its inputs are ``input_ids``, ``attention_mask`` and, if the model reads token types,
        ``token_type_ids``: int64, of shape (batch, length) with any number of rows and of pieces up
        to ``max_length_``. Its outputs are float32, here by estimator:

        - tagger: ``logits`` of shape (batch, length, n_classes), of each piece; a word is tagged
          on its first one.
        - classifiers: ``logits`` of shape (batch, n_classes).
        - extractor: ``start_logits`` and ``end_logits`` of shape (batch, length), of each piece.
        - query tagger: these, and ``match_logits`` of shape (batch, length, length). An entity goes
          from the word of piece i to that of piece j if ``start_logits[i]``, ``end_logits[j]`` and
          ``match_logits[i, j]`` all exceed the threshold; the words are those of the sentence,
          after the query.

        ``metadata_props`` say how to read them: ``estimator``, ``skdice_version``, ``max_length``
        and, as JSON, ``classes`` (of the tagger and the classifiers, and the types of the query
        tagger), ``queries`` (of the query tagger) and ``decision`` (thresholds, as the attributes
        of the same names; "inf" if infinite).

        In a job of several processes the first one writes, and the call does nothing in the others.

        Parameters
        ----------
        path : str or PathLike
            Ends in ``.onnx``. An older file is replaced when the new one is complete. From 1.5 GB
            of weights on, these are in ``<path>.data`` beside it: keep the two together.

        Raises
        ------
        NotFittedError
            If there is nothing to export.
        ImportError
            If onnx or onnxscript is not installed (the extra ``onnx``).
        TypeError
            If ``path`` is no path.
        ValueError
            If ``path`` does not end in ``.onnx`` or is a directory, or if torch cannot export the
            architecture (as of torch 2.13 that is XLNet, of those that are tested).
        FileNotFoundError
            If the directory of the file does not exist.
        RuntimeError
            If onnxruntime is installed and its outputs differ by more than 1e-4 from those of torch
            on padded batches of several lengths.

        Examples
        --------
        >>> classifier.export_onnx("spam.onnx")  # doctest: +SKIP
        >>> session = onnxruntime.InferenceSession("spam.onnx")  # doctest: +SKIP
        >>> inputs = tokenizer(["Win!"], return_tensors="np")  # doctest: +SKIP
        >>> (logits,) = session.run(["logits"], dict(inputs))  # doctest: +SKIP
        """
        check_is_fitted(self, "net_")
        if not is_first_process():
            return
        metadata = {
            "estimator": type(self).__name__,
            "skdice_version": installed_versions()["skdice"],
            "max_length": self.max_length_,
            "decision": {name: _finite(value) for name, value in self._decision_values().items()},
        }
        if classes := self._class_names():
            metadata["classes"] = classes
        if "queries_" in vars(self):
            metadata["queries"] = vars(self)["queries_"]
        export(path, self.net_.module_, max_length=self.max_length_, metadata=metadata)

    # -- what a subclass brings -------------------------------------------------------------------

    def _model_config(self) -> dict[str, Any]:
        """Return the entries of ``config.json`` that tell what the outputs mean."""
        return {}

    def _make_net(self, loss: Any, model: str, n_outputs: int, callbacks: list[Any]) -> TextNet:
        """Return a network that is not initialised yet."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """Raise a ValueError unless all parameters are allowed."""
        raise NotImplementedError

    def _metric_name(self) -> str:
        """Return the name of the validation score."""
        raise NotImplementedError

    # -- saving -----------------------------------------------------------------------------------

    def _saved_parameters(self) -> dict[str, Any]:
        """Return the constructor parameters, without those that cannot be saved."""
        parameters = self.get_params(deep=False)
        left_out = []
        if parameters["callbacks"]:
            left_out.append("callbacks")
        parameters["callbacks"] = None
        if isinstance(parameters["random_state"], np.random.RandomState | np.random.Generator):
            left_out.append("random_state")
            parameters["random_state"] = None
        for name in left_out:
            warnings.warn(
                f"The parameter {name} is not saved ({type(getattr(self, name)).__name__}); it "
                f"will be None in the loaded estimator.",
                UserWarning,
                stacklevel=3,
            )
        parameters["model"] = os.fspath(parameters["model"])
        return parameters

    def _fitted(self, parameters: dict[str, Any]) -> Fitted:
        network = {
            "n_outputs": self.net_.module__n_classes,
            "criterion": self.net_.criterion_,
            "word_prefix": self.tokenizer_._word_prefix,
        }
        # No epoch is the best one if the first was interrupted.
        best = self.history_[self.history_.index == self.best_epoch_].to_dict("records")
        epoch = best[0] if best else {}
        manifest = Manifest(
            estimator=type(self).__name__,
            parameters=parameters,
            state=self._fitted_state(),
            network=network,
            metrics={key: epoch[key] for key in ("train_loss", "valid_score") if key in epoch},
        )
        module = self.net_.module_
        weights = module.state_dict().items()
        return Fitted(
            manifest=manifest,
            transformer=module.transformer,
            head={name: weight for name, weight in weights if not name.startswith(_TRANSFORMER)},
            tokenizer=self.tokenizer_.tokenizer,
            config=self._model_config(),
            max_length=self.max_length_,
            # The only model that transformers gives raw text where skdice gives it words.
            splits_words=self._task == "token-classification",
            takes_token_types=module._takes_types,
            run=self._run(parameters, manifest.metrics),
        )

    def _fitted_state(self) -> dict[str, Any]:
        """Return what ``fit`` set, but the network and the tokenizer."""
        left_out = {*self.get_params(deep=False), *_NOT_STATE}
        return {name: value for name, value in vars(self).items() if name not in left_out}

    def _run(self, parameters: dict[str, Any], metrics: dict[str, float]) -> Run:
        loss = repr(loss_of(self.net_))
        if isinstance(parameters["loss"], str):
            loss = f"{parameters['loss']}: {loss}"
        defaults = inspect.signature(type(self)).parameters
        return Run(
            task=self._task,
            estimator=type(self).__name__,
            model=parameters["model"],
            loss=loss,
            parameters={
                name: value
                for name, value in parameters.items()
                if name not in _NOT_ON_CARD and repr(value) != repr(defaults[name].default)
            },
            n_rows=self._n_training_rows,
            n_epochs=len(self.history_),
            best_epoch=self.best_epoch_,
            interrupted=self.interrupted_,
            metric=self._metric_name(),
            valid_score=metrics.get("valid_score"),
            decision=self._decision_values(),
            classes=self._class_names(),
            is_context_first=self.tokenizer_.pads_left,
        )

    def _decision_values(self) -> dict[str, Any]:
        """Return the fitted attributes that turn logits into predictions."""
        state = vars(self)
        return {name: _plain(state[name]) for name in _DECISION if name in state}

    def _class_names(self) -> list[Any]:
        """Return the classes, or the types of a query tagger; none of an extractor."""
        return list(_plain(getattr(self, "classes_", getattr(self, "labels_", []))))

    # -- loading ----------------------------------------------------------------------------------

    @classmethod
    def _read(cls, place: Path, device: str | None) -> Self:
        """Return what a directory holds, which does not change meanwhile."""
        manifest = read(place)
        if manifest.estimator != cls.__name__:
            raise ValueError(
                f"The directory {str(place)!r} holds a {manifest.estimator}, not a "
                f"{cls.__name__}. Call {manifest.estimator}.from_pretrained, or "
                f"skdice.io.load_pretrained, which loads any class."
            )
        known = inspect.signature(cls).parameters
        unknown = sorted(set(manifest.parameters) - set(known))
        if unknown:
            raise ValueError(
                f"The directory {str(place)!r} was saved with the parameter {unknown[0]!r}, which "
                f"{cls.__name__} does not have. It was saved by skdice "
                f"{manifest.versions.get('skdice')}; install that version or a newer one."
            )
        try:
            check_saved_state(
                cls, cls._task, manifest.network, manifest.state, position_limit(str(place))
            )
            # Where checkpoints go matters to fits alone.
            cls(**{**manifest.parameters, "checkpoint_dir": None})._check_parameters()
        except ValueError as error:
            raise damaged(place, f"what it says of the fit cannot be ({error})") from error
        chosen = {} if device is None else {"device": device}
        estimator = cls(**{**manifest.parameters, **chosen})
        estimator._restore(place, manifest)
        return estimator

    def _restore(self, directory: Path, manifest: Manifest) -> None:
        """Set what ``fit`` had set."""
        network = manifest.network
        device = _usable_device(resolve_device(self.get_params()["device"]), directory)
        tokenizer = WordTokenizer(str(directory))
        # The saved tokenizer may put a space before a text; words are cut as they were in fit.
        tokenizer._word_prefix = network["word_prefix"]
        net = self._make_net(network["criterion"], str(directory), network["n_outputs"], [])
        check_weights(directory, self._module_class._auto_class)
        with seeded(0, device):  # New layers are drawn before their weights are read.
            net.initialize()
        _load_head(net.module_, directory)
        net._drop_training_state()
        vars(self).update(manifest.state, tokenizer_=tokenizer, net_=net, loss_=loss_of(net))


def loss_of(net: TextNet) -> Loss:
    """Return the loss of the parameters, of which the criterion may form several."""
    criterion: Any = net.criterion_
    return getattr(criterion, "loss", criterion)


def _load_head(module: Any, directory: Path) -> None:
    """Load the weights beside the transformer, and check that all weights are those saved.

    Raises
    ------
    ValueError
        If a weight is missing, not finite, of another shape or of another network.
    """
    shown = repr(str(directory))
    head = read_head(directory)
    shapes = {
        name: weight.shape
        for name, weight in module.state_dict().items()
        if not name.startswith(_TRANSFORMER)
    }
    found = {name: weight.shape for name, weight in head.items()}
    unmatched = sorted(name for name, _ in shapes.items() ^ found.items())
    unmatched += module.unmatched_weights
    if unmatched:
        raise ValueError(
            f"The weights in {shown} are not those of its network: {unmatched[0]!r} is missing, "
            f"left over or of another shape ({len(unmatched)} in all). Save the estimator again."
        )
    module.load_state_dict(head, strict=False)
    for name, weight in module.named_parameters():
        if not torch.isfinite(weight).all():
            raise ValueError(
                f"The weights in {shown} are not finite: {name!r} has inf or NaN. Save the "
                f"estimator again."
            )


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _finite(value: Any) -> Any:
    """Return a value that is JSON in every language: infinity as a str."""
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def _usable_device(device: str, directory: Path) -> str:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f"The estimator in {str(directory)!r} is for device={device!r}, which cannot be used "
            f"here ({error}). Pass another one: from_pretrained(directory, device='cpu')."
        ) from error
    return device
