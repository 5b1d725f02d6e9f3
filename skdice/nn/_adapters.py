"""Adapters of peft: small new weights that are trained in place of those of an encoder.

After training they are merged into its weights, so that a fitted network is as any other.
"""

import copy
import warnings
from typing import Any

from torch import nn

from .._extras import not_installed
from .._parameters import not_allowed
from .._pretrained import quiet_transformers

# They lie inside the layers, need gradients alone, and can be merged.
_KINDS = ("LORA", "IA3", "LOHA", "LOKR", "OFT", "LN_TUNING")


def check_peft_config(owner: str, name: str, value: Any) -> None:
    """Raise a ValueError unless a value is None or describes adapters that can be trained here."""
    if value is None:
        return
    peft = _peft(f"{name}={type(value).__name__}(...)")
    if not isinstance(value, peft.PeftConfig) or value.peft_type not in _KINDS:
        allowed = (
            "None or a configuration of peft for adapters that can be merged into the layers, "
            "such as peft.LoraConfig(r=8), IA3Config or LoHaConfig"
        )
        raise not_allowed(owner, name, allowed, value)


def add_adapters(transformer: Any, config: Any, head: set[nn.Parameter]) -> Any:
    """Put adapters into a transformer, whose other weights but those of the head are frozen.

    Returned is a model of peft, whose ``merge_and_unload`` takes them out again.
    """
    config = copy.deepcopy(config)
    # The head is ours; those that were saved are set for predictions.
    config.task_type, config.inference_mode = None, False
    try:
        with quiet_transformers(), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # peft asks for old names.
            adapted = _peft("peft_config").get_peft_model(transformer, config)
    except (ValueError, TypeError, AttributeError, NotImplementedError, ImportError) as error:
        parts = transformer.named_modules()
        linear = {name.rpartition(".")[2] for name, part in parts if isinstance(part, nn.Linear)}
        raise ValueError(
            f"The 'peft_config' parameter does not fit {type(transformer).__name__}. peft says: "
            f"{str(error).rstrip('.')}. target_modules may be 'all-linear', or name some of the "
            f"linear layers {', '.join(sorted(linear))}."
        ) from error
    for parameter in head:
        parameter.requires_grad_(True)
    return adapted


def _peft(what: str) -> Any:
    try:
        import peft
    except ImportError as error:
        raise not_installed(what, "peft", "peft") from error
    return peft
