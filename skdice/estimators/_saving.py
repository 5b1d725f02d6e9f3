"""Saving and loading as methods of the estimators."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from sklearn.utils.validation import check_is_fitted

from ..fitting import Fitted
from ..io import export, upload
from ..nn import is_first_process
from ._persistence import load_estimator, save_estimator
from ._shared import SharedParameters


class SavedEstimator(SharedParameters):
    """Base of the estimators that are saved, loaded, uploaded and exported."""

    @property
    def fitted(self) -> Fitted:
        """What fit has learned."""
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
        if is_first_process():
            save_estimator(self, directory)

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
            save_estimator(self, place)
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
        loaded: Self = load_estimator(directory, [cls], device=device, revision=revision)
        return loaded

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
        check_is_fitted(self)
        if is_first_process():
            export(path, type(self).__name__, self.fitted)
