"""How estimators are saved and loaded."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from types import UnionType
from typing import Any, Literal, Self, Union, get_args, get_origin, get_type_hints

import numpy as np

from .._files import read_one_version
from .._parameters import check_number, check_option
from .._pretrained import is_hub_id
from .._sklearn import BaseEstimator
from ..exceptions import warn
from ..fitting import Fitted, Settings, make_net
from ..io import (
    OF_NET,
    download,
    export,
    load_head,
    opened,
    read_manifest,
    save,
    subclasses,
    upload,
)
from ..nn import PRECISIONS, is_first_process, resolve_device, seeded
from ..tasks import Task
from ..text import TextReader, WordTokenizer

# The strings that a saved fit may contain; a tampered file could hold others.
_OPTIONS = {
    "scheme": (None, "IOB1", "IOB2", "IOBES"),
    "splitter": ("words", "characters"),
    "truncation": ("longest_first", "second", "error"),
    "precision": PRECISIONS,
    "predict_precision": PRECISIONS,
}


class SavedEstimator(BaseEstimator, Settings):
    """Base of the estimators: they are saved as directories, and loaded from them."""

    _fitted: Fitted | None = None

    @property
    def internals(self) -> Any:
        """For other modules of this library only: it may change at any time."""
        raise NotImplementedError

    def save_pretrained(self, directory: str | os.PathLike[str]) -> None:
        """Save the fitted estimator as a directory that transformers can load, too.

        It has the weights (``model.safetensors``), ``config.json`` with the labels, the tokenizer,
        ``skdice.json`` (parameters, what the fit has learned, and the SHA-256 of the other files)
        and a model card (``README.md``). There is no pickle in it. The fit is saved as it was, and
        the parameters as they are set now, for the next fit. Not saved are ``device``,
        ``callbacks``, ``peft_config`` (adapters are merged into the weights) and a ``random_state``
        that is no int. In a job of several processes only the first one saves.

        Parameters
        ----------
        directory : str or PathLike
            New, empty, or saved before. An older model is replaced as a whole when all files are
            written, so that a crash or a full disk leaves it as it was.

        Raises
        ------
        NotFittedError, TypeError, ValueError, OSError
            If there is nothing to save; if ``directory`` is no path, has files of something else or
            lies inside a saved directory; if a parameter or label is of a type that JSON cannot
            hold; if the disk is full, or the directory cannot be written to.

        Examples
        --------
        >>> tagger.fit(sentences, tags).save_pretrained("tagger")  # doctest: +SKIP
        >>> transformers.pipeline("token-classification", "tagger")  # doctest: +SKIP
        """
        fitted = self.internals.fitted
        if not is_first_process():
            return
        parameters: dict[str, Any] = self.get_params(deep=False)
        for name in ("callbacks", "peft_config", "random_state"):
            value = parameters[name]
            if value and not isinstance(value, int | np.integer):
                warn(
                    f"The parameter {name} is not saved ({type(value).__name__}); it will be None "
                    f"in the loaded estimator."
                )
                parameters[name] = None
        parameters["device"] = "auto"
        save(directory, type(self), parameters, fitted)

    def push_to_hub(
        self,
        repo_id: str,
        *,
        private: bool | None = None,
        token: str | None = None,
        commit_message: str = "Upload with skdice",
    ) -> None:
        """Save the fitted estimator, as :meth:`save_pretrained` does, on the Hugging Face hub.

        Parameters
        ----------
        repo_id : str
            ``"user/model"``, or ``"model"`` for a model of your own. It is made if it is new. Other
            files in it stay.
        private : bool, optional
            Whether a new one is private; by default as the user or organisation has set.
        token : str, optional
            By default that of ``hf auth login``.
        commit_message : str

        Raises
        ------
        NotFittedError, ValueError
            If there is nothing to save, ``repo_id`` is no id of the hub, or the hub cannot be
            reached or refuses.
        """
        if not is_hub_id(repo_id):
            raise ValueError(
                f"repo_id must be 'user/model' or 'model', with letters, digits, '-', '_' and '.', "
                f"at most 96 characters; got {repo_id!r:.200}."
            )
        with TemporaryDirectory(prefix="skdice-") as place:
            directory = Path(place, Path(repo_id).name)
            self.save_pretrained(directory)
            if is_first_process():
                upload(directory, repo_id, private, token, commit_message)

    def export_onnx(self, file: str | os.PathLike[str]) -> None:
        """Write what ``runtime="onnx"`` computes as an ONNX file, for other programs as well.

        Predictions of this estimator and its pickles use the file, as long as it is there and
        unchanged, and saving copies it. As ``model.onnx`` in the directory that the estimator is
        saved in, it is used wherever that is loaded. It needs the extra ``onnx``. It is a
        ValueError if torch cannot export the network, the file would have more than 2 GB, or its
        directory has another fit. The how-to "ONNX from another language" says what it takes.

        Parameters
        ----------
        file : str or PathLike
        """
        fitted = self.internals.fitted
        if is_first_process():
            export(file, fitted)

    @classmethod
    def from_pretrained(
        cls,
        directory: str | os.PathLike[str],
        *,
        device: str | None = None,
        revision: str | None = None,
        token: str | None = None,
    ) -> Self:
        """Load an estimator that :meth:`save_pretrained` or :meth:`push_to_hub` saved.

        Everything is read from the files that were saved; files that others have added are ignored,
        and no code is run. Predictions are those of the saved estimator. ``model`` still names the
        base model, so that ``clone`` and ``fit`` start afresh from it.

        Parameters
        ----------
        directory : str or PathLike
            A directory or, where there is none of that name, a model of the hub, ``"user/model"``.
        device : str, optional
            The ``device`` of the estimator; by default a GPU if there is one.
        revision, token : str, optional
            For a model of the hub: its branch, tag or commit, and a token that may read it, by
            default that of ``hf auth login``.

        Returns
        -------
        estimator
            Fitted.

        Raises
        ------
        TypeError, ValueError
            If ``directory`` is no path, or no directory or model of skdice, a file in it is missing
            or has changed, it was saved in another format or by another class, or this machine does
            not have the device.
        """
        device = "auto" if device is None else device
        resolve_device(device)  # It raises an error if the device is not there.
        place = download(directory, revision, token)
        return read_one_version(place, lambda place: cls._loaded(place, device))

    @classmethod
    def _loaded(cls, place: Path, device: str) -> Self:
        manifest, known = read_manifest(place), subclasses(cls)
        name = manifest.get("estimator")
        if isinstance(name, str) and name not in known:
            raise ValueError(
                f"The directory {str(place)!r} holds a {name}, not a {cls.__name__}. Call "
                f"{name.rpartition('.')[2]}.from_pretrained, or skdice.estimators.load_pretrained, "
                f"which loads any class that has been imported."
            )
        try:
            if not isinstance(name, str):
                raise ValueError("skdice.json does not name the class of an estimator")
            with opened(place, manifest) as (files, parameters, learned, network):
                estimator: Self = known[name](**{**parameters, "device": device})
                _check_learned(learned, network)
                estimator._fitted = _read_fitted(files, learned, network, device)
        except MemoryError:
            raise
        except Exception as error:  # Each type of value has errors of its own.
            what = str(error) if isinstance(error, ValueError) else repr(error)
            raise ValueError(
                f"The directory {str(place)!r} cannot be loaded: {what.rstrip('.')}. If it is "
                f"damaged, copy it again from where it was saved, or save the estimator again."
            ) from error
        return estimator


def load_pretrained(directory: str | os.PathLike[str], **options: str | None) -> Any:
    """Load an estimator of any class from a directory or a model of the hub.

    Parameters
    ----------
    directory, **options
        As for ``from_pretrained`` of an estimator, such as :meth:`DiceTokenTagger.from_pretrained`,
        and with the same errors. It is also a ValueError if the class has not been imported.

    Returns
    -------
    estimator
        Fitted, as it was saved.
    """
    return SavedEstimator.from_pretrained(directory, **options)


def _check_learned(learned: dict[str, Any], network: dict[str, Any]) -> None:
    """Raise a ValueError if skdice.json has values that no fit gives."""
    task = learned["task"]
    for made, values in ((Fitted, learned), (type(task), vars(task))):
        hints = get_type_hints(made)
        for name, value in values.items():
            is_union = get_origin(hints[name]) in (Union, UnionType)
            parts = get_args(hints[name]) if is_union else (hints[name],)
            kinds = [get_origin(part) or part for part in parts]
            kinds += [int] * (float in kinds)
            if not {Any, Literal}.intersection(kinds) and not isinstance(value, tuple(kinds)):
                raise ValueError(f"{name} must be of type {hints[name]}; got {value!r:.80}")
    for name in task.info.choosable:
        if getattr(task, name) is None:
            raise ValueError(f"{name} is open, which a fit chooses")
    values = {**vars(task), **network}
    for name in _OPTIONS.keys() & values:
        check_option("skdice.json", name, values[name], _OPTIONS[name])
    for name in ("max_length", "max_epochs"):
        check_number("skdice.json", name, network[name], low=1, integer=True)
    check_number("skdice.json", "lr", network["lr"], low=0)


def _read_fitted(
    place: Path, learned: dict[str, Any], network: dict[str, Any], device: str
) -> Fitted:
    """Return what was learned, with a network that is made from the saved files."""
    device = resolve_device(device)
    tokenizer = WordTokenizer(str(place))
    # The saved tokenizer may put a space before a text; words are cut as they were in the fit.
    tokenizer.word_prefix = network["word_prefix"]
    reader = TextReader(tokenizer, network["max_length"])
    task: Task = learned["task"]
    options = {name: network[name] for name in OF_NET}
    net = make_net(
        task, reader, task.criterion(learned["loss"]), model=place, device=device, **options
    )
    with seeded(0, device):  # New layers are drawn before their weights are read.
        net.initialize()
    load_head(net.module_, place)
    net.module_.exported = network["onnx"]
    return Fitted(**learned, reader=reader, net=net)
