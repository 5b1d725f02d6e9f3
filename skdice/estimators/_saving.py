"""Saving and loading of estimators."""

import os
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .._files import read_one_version
from ..fitting import Schedule, Settings, make_net
from ..io import (
    Fitted,
    Manifest,
    export,
    find_saved,
    load_errors,
    load_head,
    read_manifest,
    save,
    subclasses,
    upload,
)
from ..nn import is_first_process, resolve_device, seeded
from ..text import TextReader, WordTokenizer
from ._shared import SharedParameters


class SavedEstimator(SharedParameters):
    """Base of the estimators that are saved, loaded, uploaded and exported."""

    _fitted: Fitted | None = None

    @property
    def fitted(self) -> Fitted:
        """What fit has learned."""
        raise NotImplementedError

    def check_parameters(self) -> None:
        """Raise a ValueError unless all parameters are allowed, also together."""
        raise NotImplementedError

    def save_pretrained(self, directory: str | os.PathLike[str]) -> None:
        """Save the fitted estimator as a directory that transformers can load, too.

        It has the weights (``model.safetensors``), ``config.json`` with the labels, the tokenizer,
        ``skdice.json`` (parameters, what the fit has learned, and the SHA-256 of the other files)
        and a model card (``README.md``). There is no pickle in it. ``callbacks`` and a
        ``random_state`` that is no int are not saved. Adapters of ``peft_config`` are merged into
        the weights.

        Saved are the fit as it was and the parameters as they are set, which the next fit takes. In
        a job of several processes the first one saves, and the call does nothing in the others.

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
            If a parameter is set to what ``fit`` would refuse, ``directory`` has files of something
            else, or a parameter or label is of a type that JSON cannot hold.
        OSError
            If the disk is full, or the file system does not let us.

        Examples
        --------
        >>> tagger.fit(sentences, tags).save_pretrained("tagger")  # doctest: +SKIP
        >>> transformers.pipeline("token-classification", "tagger")  # doctest: +SKIP
        """
        check_is_fitted(self)
        if not is_first_process():
            return
        self.check_parameters()  # They may have been set after the fit.
        parameters: dict[str, Any] = self.get_params(deep=False)
        parameters["model"] = os.fspath(parameters["model"])
        left_out = ["callbacks"] if self.callbacks else []
        if isinstance(self.random_state, np.random.RandomState | np.random.Generator):
            left_out.append("random_state")
        for name in left_out:
            warnings.warn(
                f"The parameter {name} is not saved ({type(parameters[name]).__name__}); it will "
                f"be None in the loaded estimator.",
                stacklevel=2,
            )
            parameters[name] = None
        save(directory, type(self), parameters, self.fitted)

    def push_to_hub(
        self, repo_id: str, *, private: bool | None = None, revision: str | None = None
    ) -> str:
        """Save the fitted estimator to the Hugging Face hub.

        The files of the repository are replaced by those that :meth:`save_pretrained` writes; of
        several processes the first one uploads. ``huggingface_hub`` knows who you are
        (``hf auth login``, ``HF_TOKEN``).

        Parameters
        ----------
        repo_id : str
            ``"name"`` or ``"organisation/name"``; made if there is none yet.
        private : bool, optional
            Whether a new repository is private; by default what its owner has set.
        revision : str, optional
            Branch to write to, made if there is none yet; by default the main one.

        Returns
        -------
        str
            URL of the commit; "" in other processes than the first.

        Raises
        ------
        NotFittedError
            If there is nothing to save.
        huggingface_hub.errors.HfHubHTTPError
            If the hub refuses.
        """
        check_is_fitted(self)
        if not is_first_process():
            return ""
        with TemporaryDirectory() as folder:
            place = Path(folder, repo_id.rpartition("/")[2])
            self.save_pretrained(place)
            return upload(place, repo_id, private=private, revision=revision)

    @classmethod
    def from_pretrained(
        cls,
        directory: str | os.PathLike[str],
        *,
        device: str | None = None,
        revision: str | None = None,
    ) -> Self:
        """Load an estimator that :meth:`save_pretrained` or :meth:`push_to_hub` saved.

        Everything is read from the directory, and no code in it is run. Predictions are those of
        the saved estimator. ``model`` still names the base model, so that ``clone`` and ``fit``
        start afresh from it.

        Parameters
        ----------
        directory : str or PathLike
            Or an id of the hub, ``"organisation/name"``, if there is no such path.
        device : str, optional
            The ``device`` of the estimator; by default the one it was saved with.
        revision : str, optional
            Branch, tag or commit on the hub.

        Returns
        -------
        estimator
            Fitted.

        Raises
        ------
        ImportError
            If it was fitted with ``peft_config``, and peft is not installed.
        TypeError
            If ``directory`` is no path.
        ValueError
            If it is no directory of skdice, or a file in it is missing, has changed or was not
            saved with it, or it was saved in another format or by another class, or the hub does
            not give it.
        """
        return read_one_version(
            find_saved(directory, revision), lambda place: cls._loaded(place, device)
        )

    @classmethod
    def _loaded(cls, place: Path, device: str | None) -> Self:
        manifest, known = read_manifest(place), subclasses(cls)
        name = manifest.estimator
        if name not in known:
            raise ValueError(
                f"The directory {str(place)!r} holds a {name}, not a {cls.__name__}. Call "
                f"{name.rpartition('.')[2]}.from_pretrained, or skdice.estimators.load_pretrained, "
                f"which loads any class that has been imported."
            )
        chosen = {} if device is None else {"device": device}
        with load_errors(place):
            estimator: Self = known[name](**{**manifest.parameters, **chosen})
            # Checkpoints need a random_state, and generators are not saved.
            clone(estimator).set_params(checkpoint_dir=None).check_parameters()
            estimator._fitted = _read_fitted(manifest, place, _usable_device(estimator.device))
        return estimator

    def export_onnx(self, path: str | os.PathLike[str]) -> None:
        """Export the network of the fitted estimator as an ONNX file, for use without torch.

        The file has the network alone: :meth:`save_pretrained` saves the tokenizer, and cutting
        long texts and turning logits into answers is up to the program that runs it.

        Its inputs are ``input_ids``, ``attention_mask`` and, if the model reads token types,
        ``token_type_ids``: int64, of shape (batch, length), with up to ``max_length_`` pieces. Its
        outputs are float32:

        - tagger: ``logits`` of shape (batch, length, n_classes), of each piece; a word is tagged
          on its first one.
        - classifiers: ``logits`` of shape (batch, n_classes). To these, a pair classifier adds
          similarities of the texts, which the file does not have.
        - extractor: ``start_logits`` and ``end_logits`` of shape (batch, length), of each piece.
        - query tagger: these, and ``match_logits`` of shape (batch, length, length). An entity goes
          from the word of piece i to that of piece j if ``start_logits[i]``, ``end_logits[j]`` and
          ``match_logits[i, j]`` all exceed the threshold; the words are those of the sentence,
          after the query.

        ``metadata_props`` say how to read them: ``estimator``, ``skdice_version``, ``max_length``
        and, as JSON, ``classes`` (of the tagger and the classifiers, and the types of the query
        tagger), ``queries`` (of the query tagger), ``decision`` (thresholds, as the attributes of
        the same names; "inf" if infinite) and, of a tagger with ``word_shapes_``, ``word_shapes``:
        the token type of a piece is the place of its word's shape among them, counted from 1; it is
        0 for special tokens, and in sentences without a capital letter; of one with ``crf_``,
        ``crf``: the scheme whose well-formed sequences share the probability, each in proportion to
        exp of the sum of its logits.

        Parameters
        ----------
        path : str or PathLike
            Ends in ``.onnx``. An older file is replaced when the new one is complete. From 1.5 GB
            of weights on, these are in ``<path>.data`` beside it: keep the two together. Of several
            processes the first one writes.

        Raises
        ------
        NotFittedError
            If there is nothing to export.
        ImportError
            If the packages of the extra ``onnx`` are not installed.
        TypeError
            If ``path`` is no path.
        ValueError
            If ``path`` does not end in ``.onnx`` or is a directory, or if torch cannot export the
            architecture (as of torch 2.13 that is XLNet, of those that are tested).
        FileNotFoundError
            If the directory of the file does not exist.
        RuntimeError
            If the outputs of onnxruntime differ by more than 1e-4 from those of torch on padded
            batches of several lengths.

        Examples
        --------
        >>> classifier.export_onnx("spam.onnx")  # doctest: +SKIP
        >>> session = onnxruntime.InferenceSession("spam.onnx")  # doctest: +SKIP
        >>> inputs = tokenizer(["Win!"], return_tensors="np")  # doctest: +SKIP
        >>> (logits,) = session.run(["logits"], dict(inputs))  # doctest: +SKIP
        """
        check_is_fitted(self)
        if is_first_process():
            export(path, type(self).__name__, self.fitted)


def load_pretrained(
    directory: str | os.PathLike[str],
    *,
    device: str | None = None,
    revision: str | None = None,
) -> Any:
    """Load the estimator that a directory holds, of whatever class it is.

    Parameters
    ----------
    directory, device, revision
        As of ``from_pretrained`` of an estimator, such as :meth:`DiceTokenTagger.from_pretrained`.

    Returns
    -------
    estimator
        Fitted, as it was saved.

    Raises
    ------
    ImportError, TypeError, ValueError
        As there; also if the directory has a class that has not been imported.

    Examples
    --------
    >>> from skdice.estimators import load_pretrained
    >>> tagger.save_pretrained("tagger")  # doctest: +SKIP
    >>> load_pretrained("tagger").predict([["John", "lives", "in", "Oslo"]])  # doctest: +SKIP
    array([list(['B-PER', 'O', 'O', 'B-LOC'])], dtype=object)
    """
    return SavedEstimator.from_pretrained(directory, device=device, revision=revision)


def _usable_device(device: str) -> str:
    try:
        usable = resolve_device(device)
        torch.empty(0, device=usable)
    except (RuntimeError, ValueError, AssertionError) as error:
        raise ValueError(
            f"device={device!r} cannot be used here ({error}); pass another one: "
            f"from_pretrained(directory, device='cpu')"
        ) from error
    return usable


def _read_fitted(manifest: Manifest, place: Path, device: str) -> Fitted:
    """Return what was learned, with a network that is made from the fit and its files alone."""
    task, loss, network = manifest.fitted["task"], manifest.fitted["loss"], manifest.network
    tokenizer = WordTokenizer(str(place))
    # The saved tokenizer may put a space before a text; words are cut as they were in the fit.
    tokenizer.word_prefix = network["word_prefix"]
    reader = TextReader(tokenizer, network["max_length"])
    net = make_net(
        task,
        Settings(str(place), device=device),
        reader,
        criterion=task.criterion(loss),
        precision=network["precision"],
        schedule=Schedule(network["max_epochs"], network["lr"], network["lr"]),
    )
    net.predict_precision = network["predict_precision"]
    with seeded(0, device):  # New layers are drawn before their weights are read.
        net.initialize()
    load_head(net.module_, place)
    net.drop_training_state()
    return Fitted(**manifest.fitted, reader=reader, net=net)
