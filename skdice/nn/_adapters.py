"""Adapters of peft: small new weights that are trained beside the frozen ones of a model."""

import copy
import dataclasses
import re
from collections.abc import Iterable
from typing import Any

from torch import nn

from .._extras import not_installed
from .._parameters import not_allowed
from .._pretrained import quiet_transformers

# The files of peft.
ADAPTER_CONFIG = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
# The name that peft gives to the first adapters of a network.
NAME = "default"
# Fields that configurations set themselves.
_OF_PEFT = ("peft_type", "peft_version")
# What needs more of a training loop than gradients, or other networks, or is not weights alone.
_REFUSED = ("ADALORA", "XLORA", "POLY", "SHIRA")


def check_peft_config(owner: str, name: str, value: Any) -> None:
    """Raise a ValueError unless a value is None or describes adapters that can be trained here."""
    if value is None:
        return
    peft = _peft(f"{name}={type(value).__name__}(...)")
    if not isinstance(value, peft.PeftConfig):
        allowed = "None or a configuration of peft, such as peft.LoraConfig(r=8)"
        raise not_allowed(owner, name, allowed, value)
    tuner = peft.mapping.PEFT_TYPE_TO_TUNER_MAPPING.get(value.peft_type)
    is_refused = tuner is None or value.peft_type in _REFUSED
    if is_refused or value.is_prompt_learning or getattr(tuner, "uses_shared_state", False):
        raise ValueError(
            f"The {name!r} parameter of {owner} must be a configuration of adapters that lie "
            f"inside the layers, are weights alone and need gradients alone, such as "
            f"peft.LoraConfig, IA3Config or LoHaConfig. Got a {type(value).__name__} instead."
        )
    if getattr(value, "megatron_config", None) is not None:
        raise ValueError(f"The {name!r} parameter of {owner} must not have a megatron_config.")


def changed(config: Any, **fields: Any) -> Any:
    """Return a configuration with other values of some fields, or raise a ValueError."""
    if config is None:
        raise ValueError(
            f"{'peft_config__' + next(iter(fields))!r} needs a configuration of peft; peft_config "
            f"is None. Pass one, for instance peft_config=LoraConfig() of peft."
        )
    unknown = sorted(set(fields) - set(fields_of(config)))
    if unknown:
        raise ValueError(
            f"{unknown[0]!r} is no field of {type(config).__name__}; these are "
            f"{', '.join(fields_of(config))}."
        )
    return dataclasses.replace(config, **fields)


def fields_of(config: Any) -> dict[str, Any]:
    """Return the fields of a configuration; none of what is no configuration."""
    if not dataclasses.is_dataclass(config) or isinstance(config, type):
        return {}
    return {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}


def is_of_peft(value: Any) -> bool:
    """Whether a value is a configuration of peft, or a part of one."""
    is_own = type(value).__module__.partition(".")[0] == "peft"
    return is_own and dataclasses.is_dataclass(value)


def set_fields(config: Any) -> dict[str, Any]:
    """Return the fields of a configuration that are not as peft sets them."""
    defaults = {
        field.name: field.default
        if field.default_factory is dataclasses.MISSING
        else field.default_factory()
        for field in dataclasses.fields(config)
        if field.name not in _OF_PEFT
    }
    values = {name: getattr(config, name) for name in defaults}
    return {name: value for name, value in values.items() if value != defaults[name]}


def make_config(name: str, fields: dict[str, Any]) -> Any:
    """Return a configuration by the name of its class and what :func:`set_fields` gave."""
    found = getattr(_peft("peft_config"), name, None)
    if not isinstance(found, type) or not dataclasses.is_dataclass(found):
        raise ValueError(f"{name!r} is no configuration of peft")
    return found(**fields)


def describe(config: Any) -> str:
    """Return the fields of a configuration that were set, as code."""
    fields = _with_lists(set_fields(config)).items()
    shown = (f"{key}={part!r}" for key, part in fields)
    return f"{type(config).__name__}({', '.join(shown)})"


def add_adapters(transformer: Any, config: Any, head: Iterable[nn.Parameter]) -> None:
    """Put adapters into a transformer, whose other weights but those of the head are frozen."""
    peft = _peft("peft_config")
    config, head = copy.deepcopy(config), set(head)
    names = _head_modules(transformer, head)
    config.inference_mode = False  # It is set in those that were saved.
    _leave_alone(config, names)
    try:
        with quiet_transformers():
            peft.inject_adapter_in_model(config, transformer, NAME)
    except (ValueError, TypeError, AttributeError, NotImplementedError, ImportError) as error:
        linear = {
            name.rpartition(".")[2]
            for name, part in transformer.named_modules()
            if isinstance(part, nn.Linear) and name not in names
        }
        raise ValueError(
            f"The 'peft_config' parameter does not fit {type(transformer).__name__}. peft says: "
            f"{str(error).rstrip('.')}. target_modules may be 'all-linear', or name some of the "
            f"linear layers {', '.join(sorted(linear))}."
        ) from error
    for parameter in head:
        parameter.requires_grad_(True)


def _head_modules(transformer: nn.Module, head: set[nn.Parameter]) -> list[str]:
    """Return the names of the modules that have parameters of the head."""
    return [
        name
        for name, part in transformer.named_modules()
        if any(weight in head for weight in part.parameters(recurse=False))
    ]


def merge_adapters(transformer: Any) -> None:
    """Add the adapters of a transformer to its weights, and take them out."""
    for name, child in list(transformer.named_children()):
        merged = _merged(child)
        setattr(transformer, name, merged)
        merge_adapters(merged)
    transformer.__dict__.pop("peft_config", None)


def _merged(module: Any) -> Any:
    try:
        if hasattr(module, "unload_and_optionally_merge_module"):  # That are trained whole.
            return _merged(module.unload_and_optionally_merge_module(True, False, None))
        if hasattr(module, "base_layer") and hasattr(module, "merge"):
            module.merge()
            return _merged(module.base_layer)
    except NotImplementedError as error:
        raise ValueError(
            f"The adapters of this fit cannot be merged into the weights: peft has no way to for "
            f"{type(module).__name__}."
        ) from error
    return module


def saved_name(name: str) -> str:
    """Return by which name a file of peft has a weight of a transformer."""
    name = name.replace(f".modules_to_save.{NAME}.", ".")
    name = re.sub(rf"\.{NAME}(?=\.|$)", "", name)
    if name.endswith(".lora_magnitude_vector.weight"):
        name = name.removesuffix(".weight")
    return f"base_model.model.{name}"


def saved_config(transformer: Any, head: set[nn.Parameter], model: str) -> dict[str, Any]:
    """Return ``adapter_config.json``, for adapters of ``model``; the head is trained as a whole."""
    config = copy.copy(transformer.peft_config[NAME])
    whole = [*(config.modules_to_save or []), *_head_modules(transformer, head)]
    fields = {
        **config.to_dict(),
        "base_model_name_or_path": model,
        "inference_mode": True,
        "modules_to_save": whole,
    }
    return _with_lists(fields)


def _with_lists(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: sorted(part) if isinstance(part, set) else part for key, part in fields.items()}


def _leave_alone(config: Any, names: list[str]) -> None:
    """Have a configuration pass over modules that are trained as a whole anyway."""
    fields = fields_of(config)
    given = fields.get("modules_to_save")
    if given:
        kept = [part for part in given if not any(f".{part}." in f".{name}." for name in names)]
        config.modules_to_save = kept or None
    if "exclude_modules" in fields and names:
        excluded = fields["exclude_modules"] or []
        if isinstance(excluded, str):
            config.exclude_modules = "|".join([f"(?:{excluded})", *map(re.escape, names)])
        else:
            config.exclude_modules = {*excluded, *names}


def _peft(what: str) -> Any:
    try:
        import peft
        import peft.mapping
    except ImportError as error:
        raise not_installed(what, "peft", "peft") from error
    return peft
