"""The networks: pretrained transformers of the transformers library with a task head."""

import copy
import functools
import inspect
import json
import os
import warnings
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from .._digest import weights_digest
from .._pretrained import loading, quiet_transformers
from ._adapters import (
    ADAPTER_CONFIG,
    add_adapters,
    merge_adapters,
    names_of_peft,
    saved_config,
    saved_name,
)
from ._lower_layers import LowerLayers, forward_replaced
from ._probe import unchanged

# The weights beside the encoder, where transformers has no class for them.
HEAD = "head.safetensors"
# What the names of the weights of the transformer of a module start with.
TRANSFORMER = "transformer."

_PROBE_LENGTH = 4
# What families call the dropout of the weights of attention.
_ATTENTION_DROPOUT = ("attention_probs_dropout_prob", "attention_dropout", "attn_pdrop")


class TextModule(nn.Module):
    """A pretrained transformer with a head; gives the logits of the items of a batch.

    Parameters
    ----------
    model : str
        Hub id or directory.
    n_classes : int
    n_frozen_layers : int or None
        None trains everything; k freezes the embeddings and the first k layers.
    attention_dropout : float or None
        Of the weights of attention, in training; None is what the configuration says.
    peft_config : peft.PeftConfig or None
        Of adapters, which are then trained in place of the encoder.
    config : str or None
        File with a configuration that takes the place of that of the model.
    n_token_types : int or None
        Rows of the table of token types. If the model has another number, all begin as its first
        one, and are trained with the head. None leaves the table as it is.

    Attributes
    ----------
    base_digest : str
        Of the weights that the adapters are for; "" without adapters.
    unmatched_weights : list of str
        Names of the weights of the transformer that it does not have from the checkpoint, or that
        only the checkpoint has.
    trained_labels : list of str or None
        What the outputs of the checkpoint's head mean; None if it has none, or does not say.
    """

    _auto_class: str  # of transformers
    # Whether frozen_states can stand for the frozen layers; None if that was not tried yet.
    replays_states: bool | None = None
    # Whether the frozen layers have dropout in training that could not be turned off.
    has_random_frozen_part = False

    def __init__(
        self,
        model: str,
        n_classes: int,
        n_frozen_layers: int | None = None,
        attention_dropout: float | None = None,
        peft_config: Any = None,
        config: str | None = None,
        n_token_types: int | None = None,
    ) -> None:
        import transformers

        super().__init__()
        self._n_classes = n_classes
        # Others of its kind, whose outputs count as much as its own.
        self.members = nn.ModuleList()
        auto_class = getattr(transformers, self._auto_class)
        self.transformer, self._new_in_encoder, self.unmatched_weights, self.trained_labels = _load(
            auto_class, model, n_classes, attention_dropout, config
        )
        if n_token_types is not None:
            self._new_in_encoder += _replace_token_types(self.transformer, n_token_types)
        self._takes_types = _takes_token_types(self.transformer)
        self._n_frozen_layers = n_frozen_layers or 0
        self._frozen: list[str] = []
        self._lower: LowerLayers | None = None
        if n_frozen_layers is not None:
            self._freeze(n_frozen_layers)
        self.base_digest = ""
        self._base_names: frozenset[str] = frozenset()
        if peft_config is not None:
            self._add_adapters(peft_config)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor,
        row: Tensor,
        column: Tensor,
        states: Tensor | None = None,
    ) -> Tensor:
        """Return float32 logits of shape (n_items, n_outputs).

        With ``states``, what :meth:`frozen_states` gave, the frozen layers are not run.
        """
        inputs = self._inputs(input_ids, attention_mask, token_type_ids)
        with nullcontext() if states is None else self._lower_layers().replaced(states):
            output = self.transformer(**inputs)
        logits = self._item_logits(output, row, column).float()
        if not self.members:
            return logits
        args = (input_ids, attention_mask, token_type_ids, row, column, states)
        return self._mean([logits, *(member(*args) for member in self.members)])

    @property
    def n_outputs(self) -> int:
        """Number of logits of an item."""
        return self._n_classes

    def join(self, members: Iterable["TextModule"]) -> None:
        """Take others in, so that the outputs are the means over all."""
        self.members.extend(list(members))  # They may be copies of this one.

    def merge(self, members: Iterable["TextModule"]) -> None:
        """Take the mean of the own weights and those of others that began with the same ones."""
        own, *others = (module.state_dict() for module in (self, *members))
        # All of them before the first is set: tied weights have several names.
        means = {
            name: torch.stack([weight, *(state[name] for state in others)]).mean(0)
            for name, weight in own.items()
            if weight.is_floating_point()
        }
        with torch.no_grad():
            for name, mean in means.items():
                own[name].copy_(mean)

    def _mean(self, logits: list[Tensor]) -> Tensor:
        """Return the logits of several networks as those of one."""
        return torch.stack(logits).mean(0)

    def merged(self) -> "TextModule":
        """Return a copy, of the members too, with the adapters merged into the weights.

        Raises
        ------
        ValueError
            If adapters of their kind cannot be merged.
        """
        whole = copy.deepcopy(self)
        for module in (whole, *whole.members):
            assert isinstance(module, TextModule)
            if module.base_digest:
                merge_adapters(module.transformer)
                module.base_digest, module._base_names = "", frozenset()
        return whole

    def _add_adapters(self, peft_config: Any) -> None:
        """Put adapters into the encoder, which is frozen, and leave its weights out of the state.

        What the base model gives need not be kept for each epoch, sent, or saved.
        """
        head = TextModule.head_parameters(self)
        named = self.transformer.state_dict(keep_vars=True)
        base = {name: weight for name, weight in named.items() if weight not in head}
        self.base_digest = weights_digest(base.items())
        add_adapters(self.transformer, peft_config, head)
        if weights_digest(base.items()) != self.base_digest:
            raise ValueError(
                "The 'peft_config' parameter must leave the weights of the base model as they are, "
                "so that its adapters can be saved without them: take another init_lora_weights."
            )
        self._new_in_encoder = [
            name for name, weight in self.transformer.named_parameters() if weight in head
        ]
        frozen = {weight for weight in base.values() if not weight.requires_grad}
        self._base_names = frozenset(
            name for name, weight in self.state_dict(keep_vars=True).items() if weight in frozen
        )
        self._check_is_saved()
        self.register_state_dict_post_hook(_leave_out_base)
        self.register_load_state_dict_post_hook(_do_not_miss_base)

    def _check_is_saved(self) -> None:
        """Raise a ValueError if some of the adapters is no part of the state."""
        known = {saved_name(name) for name in self.transformer.state_dict()}
        if not names_of_peft(self.transformer) <= known:
            raise ValueError(
                "The 'peft_config' parameter must be of adapters that are weights alone, so that "
                "they can be saved. Take another kind, such as peft.LoraConfig."
            )

    def saved_names(self) -> dict[str, str]:
        """Return how peft's files name the weights of the transformer that were trained."""
        return {
            name: saved_name(name.removeprefix(TRANSFORMER))
            for name in self.state_dict()
            if name.startswith(TRANSFORMER)
        }

    def adapter_config(self, model: str) -> dict[str, Any]:
        """Return what a file of peft says of the adapters; their base model goes by this name."""
        return saved_config(self.transformer, TextModule.head_parameters(self), model)

    def frozen_states(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor, **_: Tensor
    ) -> Tensor:
        """Return the output of the frozen layers, of shape (n_windows, length, size)."""
        return self._lower_layers().run(self._inputs(input_ids, attention_mask, token_type_ids))

    def _inputs(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor
    ) -> dict[str, Tensor]:
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        return inputs | {"token_type_ids": token_type_ids} if self._takes_types else inputs

    def _lower_layers(self) -> LowerLayers:
        if self._lower is None:
            n_layers = self._n_frozen_layers
            self._lower = LowerLayers(self.transformer, _layers(self.transformer), n_layers)
        return self._lower

    def _item_logits(self, output: Any, row: Tensor, column: Tensor) -> Tensor:
        """Pick the logits of the items from the output of the transformer."""
        raise NotImplementedError

    def train(self, mode: bool = True) -> "TextModule":
        """Set training mode; frozen parts stay without dropout."""
        super().train(mode)
        for name in self._frozen:
            self.get_submodule(name).eval()
        return self

    def head_parameters(self) -> set[nn.Parameter]:
        """Return the parameters that are not part of the pretrained encoder."""
        named = dict(self.transformer.named_parameters())
        encoder = set(self.transformer.base_model.parameters())
        return set(named.values()) - encoder | {named[name] for name in self._new_in_encoder}

    def get_input_embeddings(self) -> nn.Module:
        """Return the embedding of the pieces."""
        embeddings: nn.Module = self.transformer.get_input_embeddings()
        return embeddings

    def _freeze(self, n_layers: int) -> None:
        with quiet_transformers():
            self._freeze_below(_layers(self.transformer), n_layers)

    def _freeze_below(self, layers: nn.ModuleList, n_layers: int) -> None:
        if n_layers > len(layers):
            raise ValueError(
                f"The 'n_frozen_layers' parameter must be None or an int in the range [0, "
                f"{len(layers)}], the layers of this model. Got {n_layers} instead."
            )
        with unchanged(self):
            modules, reached = self._trace_below(layers, n_layers)
        parameters = _parameters_behind(reached)
        for layer in layers[:n_layers]:
            modules.append(layer)
            parameters.update(layer.parameters())
        for parameter in parameters - self.head_parameters():
            parameter.requires_grad_(False)
        names = {module: name for name, module in self.named_modules()}
        self._frozen = [names[module] for module in dict.fromkeys(modules) if module in names]
        self.has_random_frozen_part = self._draws_below(layers, n_layers)
        if self.has_random_frozen_part:
            warnings.warn(
                f"{type(self.transformer).__name__} applies dropout below layer {n_layers} in a "
                f"way that cannot be turned off there alone: its n_frozen_layers={n_layers} frozen "
                f"layers get no gradient, but are trained upon with that dropout.",
                UserWarning,
                stacklevel=2,
            )

    def _draws_below(self, layers: nn.ModuleList, n_layers: int) -> bool:
        """Whether what is below a layer gives something else each time in training."""
        with unchanged(self):
            self.train()
            first, second = (self._trace_below(layers, n_layers)[1] for _ in range(2))
        return not all(torch.equal(a, b) for a, b in zip(first, second))

    def _trace_below(
        self, layers: nn.ModuleList, n_layers: int
    ) -> tuple[list[nn.Module], list[Tensor]]:
        """Return what makes up the model below a layer, found by running it on a probe.

        Embeddings have many forms: with a projection, or relative ones that every layer reads.

        Returns
        -------
        modules : list of nn.Module
            What has run when layer ``n_layers`` starts (or the last one ends). A dropout that the
            model also uses further up is among them.
        reached : list of Tensor
            The inputs of that layer (or the outputs of the last one).
        """
        modules: list[nn.Module] = []
        order: list[nn.Module] = []
        reached: list[Any] = []

        def note_module(module: nn.Module, args: Any, output: Any) -> None:
            if not reached:
                modules.append(module)

        def noting(layer: nn.Module, forward: Callable[..., Any]) -> Callable[..., Any]:
            def run(*args: Any, **kwargs: Any) -> Any:
                order.append(layer)
                if n_layers < len(layers) and layer is layers[n_layers]:
                    reached.extend([*args, *kwargs.values()])
                output = forward(*args, **kwargs)
                if n_layers == len(layers) and layer is layers[-1]:
                    reached.extend(output if isinstance(output, tuple) else [output])
                return output

            return run

        hooks = [part.register_forward_hook(note_module) for part in self.transformer.modules()]
        try:
            with torch.enable_grad(), forward_replaced(list(layers), noting):
                self._run_probe()
        except (RuntimeError, IndexError, ValueError) as error:
            reason = f"could not be told apart on {_PROBE_LENGTH} pieces of text ({error})"
            raise ValueError(_without_layers(self.transformer, reason)) from error
        finally:
            for handle in hooks:
                handle.remove()
        if order != list(layers):
            raise ValueError(_without_layers(self.transformer, "do not run one after the other"))
        return modules, _tensors(reached)

    def _run_probe(self) -> None:
        """Run the network on a text of a few pieces that any vocabulary has."""
        config: Any = self.transformer.config
        ids = torch.zeros(1, _PROBE_LENGTH, dtype=torch.int64)
        end = getattr(config, "eos_token_id", None)
        # The heads of BART and T5 look for it.
        if isinstance(end, int) and 0 <= end < config.vocab_size:
            ids[0, -1] = end
        here = torch.zeros(1, dtype=torch.int64)
        self(ids, torch.ones_like(ids), torch.zeros_like(ids), here, here)


class TokenModule(TextModule):
    """A transformer with a linear head on each piece; an item is a piece."""

    _auto_class = "AutoModelForTokenClassification"

    def _item_logits(self, output: Any, row: Tensor, column: Tensor) -> Tensor:
        logits: Tensor = output.logits[row, column]
        return logits


class SequenceModule(TextModule):
    """A transformer with a head on the whole window, as its family has it; an item is a window."""

    _auto_class = "AutoModelForSequenceClassification"

    def _item_logits(self, output: Any, row: Tensor, column: Tensor) -> Tensor:
        logits: Tensor = output.logits[row]
        return logits


class SpanModule(TextModule):
    """A transformer that scores each piece as start and as end of an answer; an item is a piece.

    ``n_classes`` is 2: the columns of the logits are start and end.
    """

    _auto_class = "AutoModelForQuestionAnswering"

    def _item_logits(self, output: Any, row: Tensor, column: Tensor) -> Tensor:
        start, end = output.start_logits[row, column], output.end_logits[row, column]
        return torch.stack([start, end], dim=1)


class QueryModule(TextModule):
    """A transformer that scores words as starts and ends of entities, and pairs of them as matches.

    An item is a piece; its logits are its scores as start and as end, and the vectors whose product
    is the score of a match (``n_classes`` numbers in all). So no pair has a vector of its own.
    """

    _auto_class = "AutoModel"

    def __init__(
        self,
        model: str,
        n_classes: int,
        n_frozen_layers: int | None = None,
        attention_dropout: float | None = None,
        peft_config: Any = None,
        config: str | None = None,
        n_token_types: int | None = None,
    ) -> None:
        super().__init__(
            model, n_classes, None, attention_dropout, peft_config, config, n_token_types
        )
        sizes: Any = self.transformer.config
        self.dropout = nn.Dropout(getattr(sizes, "hidden_dropout_prob", 0.1))
        self.head = nn.Linear(sizes.hidden_size, n_classes)
        self._go_on_from(os.path.join(model, HEAD))
        if n_frozen_layers is not None:
            self._n_frozen_layers = n_frozen_layers
            self._freeze(n_frozen_layers)

    def _go_on_from(self, path: str) -> None:
        """Take the head of a network that was saved, if this one is alike."""
        weights = load_file(path) if os.path.exists(path) else {}
        # Those of one network that was saved, if it was saved with others.
        weights = {name: w for name, w in weights.items() if not name.startswith("members.")}
        own = self.state_dict()
        if weights and all(
            name in own and own[name].shape == weights[name].shape for name in weights
        ):
            self.load_state_dict(weights, strict=False)

    def head_parameters(self) -> set[nn.Parameter]:
        """Return the parameters that are not part of the pretrained encoder."""
        return super().head_parameters() | set(self.head.parameters())

    def _item_logits(self, output: Any, row: Tensor, column: Tensor) -> Tensor:
        logits: Tensor = self.head(self.dropout(output.last_hidden_state[row, column]))
        return logits

    @property
    def n_outputs(self) -> int:
        """Number of logits of an item."""
        return 2 + (self._n_classes - 2) * (1 + len(self.members))

    def _mean(self, logits: list[Tensor]) -> Tensor:
        """Return the logits of several networks as those of one.

        Vectors are put behind one another, so that their product is the mean of the products.
        """
        scores = torch.stack([part[..., :2] for part in logits]).mean(0)
        vectors = [part[..., 2:].chunk(2, dim=-1) for part in logits]
        # The product is divided by the root of their size, which grows as well.
        sides = (torch.cat(side, dim=-1) / len(logits) ** 0.25 for side in zip(*vectors))
        return torch.cat([scores, *sides], dim=-1)


def _leave_out_base(module: TextModule, state: dict[str, Any], prefix: str, _metadata: Any) -> None:
    """Take the frozen weights of the base model out of a state."""
    for name in module._base_names:
        state.pop(prefix + name, None)


def _do_not_miss_base(module: TextModule, keys: Any) -> None:
    """Have a state without the frozen weights of the base model be complete."""
    known = set(module._base_names)
    for i, member in enumerate(module.members):
        assert isinstance(member, TextModule)
        known |= {f"members.{i}.{name}" for name in member._base_names}
    keys.missing_keys[:] = [name for name in keys.missing_keys if name not in known]


class Size(NamedTuple):
    """How large the network of a ``config.json`` is.

    Attributes
    ----------
    n_parameters : int
    n_layers : int or None
        None if it does not say.
    n_positions : int or None
        Special tokens included; None if unlimited. Models of the RoBERTa family count positions
        from ``padding_idx + 1`` on.
    """

    n_parameters: int
    n_layers: int | None
    n_positions: int | None


def position_limit(model: str) -> int | None:
    """Return how many positions a model has."""
    return size_of_network(model, "AutoModel").n_positions


def size_of_network(model: str, auto_class: str, config_file: str | None = None) -> Size:
    """Return the size of the network that a class of transformers makes; nothing is allocated.

    A file with a configuration takes the place of that of the model.
    """
    from transformers import AutoConfig

    if config_file is None:
        _check_is_model(model)
    with loading(model):
        config = AutoConfig.from_pretrained(config_file or model)
        config_class: Any = type(config)
        return _size(auto_class, config_class, config.to_json_string(use_diff=False))


def hidden_size(model: str) -> int:
    """Return how many numbers an encoder has for each piece."""
    from transformers import AutoConfig

    _check_is_model(model)
    with loading(model):
        return int(AutoConfig.from_pretrained(model).get_text_config().hidden_size)


@functools.lru_cache
def _size(auto_class: str, config_class: Any, settings: str) -> Size:
    import transformers

    config = config_class.from_dict(json.loads(settings))
    with torch.device("meta"):
        network = getattr(transformers, auto_class).from_config(config)
    limits = [_n_positions(part, name) for name, part in network.named_modules()]
    limits.append(getattr(config, "max_position_embeddings", None))
    return Size(
        sum(parameter.numel() for parameter in network.parameters()),
        getattr(config, "num_hidden_layers", None),
        # Tables may have rows that are not used, and configurations count those before the first.
        min((n for n in limits if isinstance(n, int) and n > 0), default=None),
    )


def _n_positions(module: Any, name: str) -> int | None:
    """Return how many positions a module has embeddings for, None if it has none."""
    weight = getattr(module, "weight", None)
    if not name.endswith("position_embeddings") or not isinstance(weight, Tensor):
        return None
    padding = getattr(module, "padding_idx", None)
    return len(weight) - (0 if padding is None else padding + 1)


def _load(
    auto_class: Any,
    model: str,
    n_labels: int,
    attention_dropout: float | None,
    config_file: str | None,
) -> tuple[Any, list[str], list[str], list[str] | None]:
    """Load a model in float32; its head may be new, its encoder must be in the checkpoint.

    A pooler, which some families count as encoder, belongs to the head if it is new.

    Returns
    -------
    transformer : transformers.PreTrainedModel
    new_in_encoder : list of str
        Names of the new parameters of its ``base_model``.
    unmatched : list of str
        Names of all weights that the checkpoint or the model has alone, or in another shape.
    trained_labels : list of str or None
        What the outputs of the checkpoint's head mean, if it has one.
    """
    from transformers import AutoConfig

    _check_is_model(model)
    with loading(model):
        config = AutoConfig.from_pretrained(config_file or model)
        trained = config.architectures or []
        labels = [str(name) for name in config.id2label.values()]
        config.num_labels = n_labels
        if attention_dropout is not None:
            _set_attention_dropout(config, attention_dropout)
        transformer, info = auto_class.from_pretrained(
            model,
            config=config,
            dtype=torch.float32,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    encoder = set(transformer.base_model.parameters())
    head = {name for name, weight in transformer.named_parameters() if weight not in encoder}
    mismatched = {key[0] if isinstance(key, tuple) else key for key in info["mismatched_keys"]}
    new_in_encoder = sorted((set(info["missing_keys"]) | mismatched) - head)
    absent = [name for name in new_in_encoder if "pooler" not in name.split(".")]
    if absent:
        raise ValueError(
            f"The checkpoint {model!r} has no weights of the right shape for {len(absent)} "
            f"parameters of {type(transformer).__name__}'s encoder, among them {absent[0]!r}."
        )
    unmatched = set(info["missing_keys"]) | mismatched | set(info["unexpected_keys"])
    are_told = labels != [f"LABEL_{i}" for i in range(len(labels))]
    is_trained = are_told and type(transformer).__name__ in trained
    return transformer, new_in_encoder, sorted(unmatched), labels if is_trained else None


def _check_is_model(model: str) -> None:
    if os.path.exists(os.path.join(model, ADAPTER_CONFIG)):
        raise ValueError(
            f"The directory {model!r} has adapters of another model, not a model. Save the "
            f"estimator with save_pretrained(directory, merged=True) to go on from it, or with "
            f"peft merge_and_unload()."
        )


def _set_attention_dropout(config: Any, value: float) -> None:
    names = [name for name in _ATTENTION_DROPOUT if hasattr(config, name)]
    if not names:
        raise ValueError(
            f"The 'attention_dropout' parameter must be None for {config.model_type!r}: its "
            f"configuration has no dropout of attention. Got {value!r} instead."
        )
    setattr(config, names[0], value)


def _replace_token_types(transformer: Any, n_types: int) -> list[str]:
    """Give the table of token types so many rows, each its first one; return its name."""
    tables = {
        name: table
        for name, table in transformer.named_modules()
        if name.endswith("token_type_embeddings") and isinstance(table, nn.Embedding)
    }
    if len(tables) != 1:
        raise ValueError(
            f"The 'word_shapes' parameter must be False for {type(transformer).__name__}: it has "
            f"no table of token types that could tell the shapes apart."
        )
    ((name, table),) = tables.items()
    if table.num_embeddings == n_types:
        return [f"{name}.weight"]
    with torch.no_grad():
        rows = table.weight[:1].repeat(n_types, 1)
    parent, _, attribute = name.rpartition(".")
    new = nn.Embedding.from_pretrained(rows, freeze=False)
    setattr(transformer.get_submodule(parent), attribute, new)
    transformer.config.type_vocab_size = n_types
    return [f"{name}.weight"]


def _takes_token_types(transformer: Any) -> bool:
    """Whether the model reads token types.

    Some have the argument and one type only; GPT-2 and XLM look them up among the words.
    """
    config: Any = transformer.config
    has_argument = "token_type_ids" in inspect.signature(transformer.forward).parameters
    n_types = getattr(config, "type_vocab_size", None)
    if not has_argument:
        return False
    if n_types is not None:  # They are looked up in a table of their own.
        return bool(n_types > 1)
    looked_up: list[Tensor] = []
    ids = torch.ones(1, _PROBE_LENGTH, dtype=torch.int64)
    types = torch.zeros_like(ids)
    with unchanged(transformer), torch.no_grad(), quiet_transformers():
        try:
            words = transformer.get_input_embeddings()
            words.register_forward_pre_hook(lambda _, args: looked_up.append(args[0]))
            transformer.eval()(input_ids=ids, attention_mask=ids, token_type_ids=types)
        except Exception:
            pass  # It may want longer texts; check_scores says so if it takes none.
    return not any(bool((ids == 0).all()) for ids in looked_up)


def _tensors(values: Any) -> list[Tensor]:
    """Return the tensors among values, which may be nested."""
    if isinstance(values, Tensor):
        return [values]
    parts = values.values() if isinstance(values, dict) else values
    if isinstance(values, dict | list | tuple):
        return [tensor for part in parts for tensor in _tensors(part)]
    return []


def _parameters_behind(tensors: list[Tensor]) -> set[nn.Parameter]:
    """Return the parameters that tensors were computed from, without computing gradients."""
    nodes = [tensor.grad_fn for tensor in tensors]
    seen, parameters = set(), set()
    while nodes:
        node: Any = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            parameters.add(node.variable)
        nodes += [before for before, _ in node.next_functions]
    return parameters


def _layers(transformer: Any) -> nn.ModuleList:
    """Return the encoder layers, in order."""
    n_layers = getattr(transformer.config, "num_hidden_layers", None)
    for parent in transformer.modules():
        lists = [part for part in parent.children() if isinstance(part, nn.ModuleList)]
        found = [part for part in lists if len(part) == n_layers]
        if len(found) == 1:
            return found[0]
        if found:
            raise ValueError(_without_layers(transformer, "lie in parts in several lists"))
    raise ValueError(_without_layers(transformer, "were not found"))


def _without_layers(transformer: nn.Module, reason: str) -> str:
    return (
        f"The 'n_frozen_layers' parameter must be None for {type(transformer).__name__}: its "
        f"layers {reason}."
    )
