"""The networks: pretrained transformers of the transformers library with a task head."""

import inspect
import os
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from ..text import Frame
from ._batching import Batch
from ._loading import HEAD, add_adapters, freeze, load_transformer, replace_token_types
from ._speedups import is_fused

# Token-type dropout: a training step reads this share of the windows without the shapes of words,
# so that the network learns to read text without capitals, too (benchmarks/RESULTS.md).
_TYPE_DROPOUT = 0.3
# Prefix of the names of the transformer's weights in a module.
TRANSFORMER = "transformer."
# What a transformer returns: "logits", "last_hidden_state" and the like.
Output: TypeAlias = Mapping[str, Tensor]


class Frames(NamedTuple):
    """The special pieces around one text and around two, and the piece for padding."""

    one: Frame
    two: Frame
    pad_id: int


class TextModule(nn.Module):
    """A pretrained transformer with a head; gives the logits of the items of a batch.

    ``n_frozen_layers=k`` freezes the embeddings and the first k layers. Adapters (``peft_config``)
    are trained in place of the encoder. With ``n_token_types``, a table of token types of another
    size is replaced by one with this many rows, all equal to its first. An encoder without a table
    gets the ``type_table``, whose rows are added to the embeddings of pieces and begin as 0. Either
    table belongs to the head. In training, some windows are read with type 0 alone.
    """

    auto_class: str  # the class of transformers that loads it
    exported: tuple[str, str] = ("", "")  # an ONNX file of it, and the file's SHA-256
    has_new_head = True  # This is read if transformers has no class for the head.

    def __init__(
        self,
        model: str,
        n_classes: int,
        n_frozen_layers: int | None = None,
        peft_config: Any = None,
        n_token_types: int | None = None,
    ) -> None:
        super().__init__()
        self._n_classes = n_classes
        # The other networks of an ensemble. Logits are the mean over these and this network.
        self.members = nn.ModuleList()
        # ``unmatched_weights`` are in the checkpoint or in the network, but not in both;
        # ``trained_labels`` are the labels of the checkpoint's head, None without a head.
        loaded = load_transformer(self.auto_class, model, n_classes)
        self.transformer, self._new_in_encoder, self.unmatched_weights, self.trained_labels = loaded
        self._has_own_types = n_token_types is not None
        self.type_table: nn.Embedding | None = None
        if n_token_types is not None:
            table = replace_token_types(self.transformer, n_token_types)
            if table is not None:
                self._new_in_encoder |= set(table.parameters())
            else:
                width = self.transformer.get_input_embeddings().embedding_dim
                rows = torch.zeros(n_token_types, width)
                self.type_table = nn.Embedding.from_pretrained(rows, freeze=False)
                self._load_saved_head(model)
        config, reads = self.transformer.config, inspect.signature(self.transformer.forward)
        n_types = getattr(config, "type_vocab_size", None)
        # Some take the argument, but have one type only. Some families have no number of types:
        # XLNet compares the types of two pieces; GPT-2 and XLM would look types up as words.
        has_types = config.model_type == "xlnet" if n_types is None else n_types > 1
        self.takes_types = has_types and "token_type_ids" in reads.parameters
        # The model of peft that wraps the transformer; a tuple hides it from torch's list of parts.
        self._adapted: tuple[Any, ...] = ()
        if peft_config is not None:
            self._adapted = (add_adapters(self.transformer, peft_config, self.head_parameters()),)
        self.dropout = nn.Dropout(getattr(self.transformer.config, "hidden_dropout_prob", 0.1))
        self._frozen: list[nn.Module] = []
        if n_frozen_layers is not None:
            self._frozen = freeze(self.transformer, n_frozen_layers, self.head_parameters())

    def prepare(self, batch: Batch) -> Batch:
        """Add to a batch on the CPU what :meth:`forward` would have to wait for on a GPU."""
        return batch

    def forward(
        self,
        input_ids: Tensor,
        token_type_ids: Tensor,
        row: Tensor,
        column: Tensor,
        attention_mask: Tensor | None = None,
        **others: Tensor,
    ) -> Tensor:
        """Return float32 logits of shape (n_items, n_outputs) of a batch.

        Without a mask, nothing is padded. The ``others`` may have what :meth:`prepare` adds; all
        else in them is ignored.
        """
        types = token_type_ids
        if self._has_own_types and self.training:
            types = types * (torch.rand(len(types), 1, device=types.device) >= _TYPE_DROPOUT)
        output = self._read(self.transformer, input_ids, attention_mask, types)
        texts = {"input_ids": input_ids, **others}
        if attention_mask is not None:
            texts["attention_mask"] = attention_mask
        logits = self._item_logits(output, row, column, texts).float()
        if not self.members:
            return logits
        args = (input_ids, token_type_ids, row, column, attention_mask)
        return self._mean([logits, *(member(*args, **others) for member in self.members)])

    def _read(
        self, network: Any, input_ids: Tensor, attention_mask: Tensor | None, types: Tensor
    ) -> Any:
        """Return the output of the transformer or of its encoder."""
        if attention_mask is None and not is_fused(network):
            attention_mask = torch.ones_like(input_ids)
        if self.type_table is not None:
            embedded = network.get_input_embeddings()(input_ids) + self.type_table(types)
            return network(inputs_embeds=embedded, attention_mask=attention_mask)
        more = {"token_type_ids": types} if self.takes_types else {}
        return network(input_ids=input_ids, attention_mask=attention_mask, **more)

    @property
    def n_outputs(self) -> int:
        """Number of logits of an item."""
        return self._n_classes

    def _mean(self, logits: list[Tensor]) -> Tensor:
        """Merge the logits of several networks into those of one."""
        return torch.stack(logits).mean(0)

    def merge_adapters(self) -> None:
        """Add the adapters to the weights of the transformer, and take them out."""
        for adapted in self._adapted:
            self.transformer = adapted.merge_and_unload()
            vars(self.transformer).pop("peft_config", None)
        self._adapted = ()

    def _load_saved_head(self, model: str) -> None:
        """Load the head of a saved network of this kind, if ``model`` is a directory with one."""
        saved = os.path.join(model, HEAD)
        weights = load_file(saved) if os.path.exists(saved) else {}
        # Of an ensemble the first network is loaded.
        weights = {name: w for name, w in weights.items() if not name.startswith("members.")}
        own = self.state_dict()
        if all(name in own and own[name].shape == w.shape for name, w in weights.items()):
            self.load_state_dict(weights, strict=False)
            self.has_new_head = not weights

    def _item_logits(self, output: Output, row: Tensor, column: Tensor, texts: Batch) -> Tensor:
        """Pick the logits of the items from the output of the transformer, which read ``texts``."""
        raise NotImplementedError

    def train(self, mode: bool = True) -> "TextModule":
        """Set training mode; frozen parts stay without dropout."""
        super().train(mode)
        for part in self._frozen:
            part.eval()
        return self

    def head_parameters(self) -> set[nn.Parameter]:
        """Return the parameters that are not part of the pretrained encoder."""
        encoder = set(self.transformer.base_model.parameters()) - self._new_in_encoder
        named = self.named_parameters()
        return {w for name, w in named if not (w in encoder or name.startswith("members."))}


class TokenModule(TextModule):
    """A transformer with a linear head on each piece; an item is a piece."""

    auto_class = "AutoModelForTokenClassification"

    def _item_logits(self, output: Output, row: Tensor, column: Tensor, texts: Batch) -> Tensor:
        return output["logits"][row, column]


class SequenceModule(TextModule):
    """A transformer with a head on the whole window, as its family has it; an item is a window."""

    auto_class = "AutoModelForSequenceClassification"

    def _item_logits(self, output: Output, row: Tensor, column: Tensor, texts: Batch) -> Tensor:
        return output["logits"][row]


class MeanModule(SequenceModule):
    """A transformer with a linear head on the mean state of the window, see :func:`mean_state`."""

    auto_class = "AutoModel"

    def __init__(self, model: str, n_classes: int, **more: Any) -> None:
        super().__init__(model, n_classes, **more)
        self.head = nn.Linear(self.transformer.config.hidden_size, n_classes)
        self._load_saved_head(model)

    def _item_logits(self, output: Output, row: Tensor, column: Tensor, texts: Batch) -> Tensor:
        mean = mean_state(output, texts.get("attention_mask"))
        logits: Tensor = self.head(self.dropout(mean))[row]
        return logits

    def features(self, batch: Batch) -> Tensor:
        """Return the mean state of each row, (n_rows, hidden_size)."""
        mask = batch.get("attention_mask")
        output = self._read(self.transformer, batch["input_ids"], mask, batch["token_type_ids"])
        return mean_state(output, mask)


class PairModule(SequenceModule):
    """A transformer that reads two texts together and each by itself; an item is a window.

    Its logits are the sum of those of the window and of a comparison: a linear function of |u - v|
    and u * v, where u and v are the mean states of the texts alone (Reimers & Gurevych 2019,
    "Sentence-BERT"). The sum is multiplied by ``share``, since logits from similarities of the
    texts are added to it outside of the network.
    """

    share: Tensor

    def __init__(self, model: str, n_classes: int, *, frames: Frames, **more: Any) -> None:
        super().__init__(model, n_classes, **more)
        self._frames = frames
        self.comparison = nn.Linear(2 * self.transformer.config.hidden_size, n_classes)
        nn.init.normal_(self.comparison.weight, std=0.02)
        nn.init.zeros_(self.comparison.bias)
        self.register_buffer("share", torch.ones(()))
        self._load_saved_head(model)

    def _item_logits(self, output: Output, row: Tensor, column: Tensor, texts: Batch) -> Tensor:
        if "first_ids" not in texts:
            texts = self.prepare(texts)
        compared: Tensor = self.comparison(self.dropout(self.features(texts))).float() * self.share
        return (output["logits"][row] * self.share).float() + compared[row]

    def prepare(self, batch: Batch) -> Batch:
        """Return a batch with each text of each pair alone: its pieces, mask and token types."""
        input_ids, attention_mask = batch["input_ids"], batch["attention_mask"]
        before, between, after = map(len, self._frames.two.special)
        first = attention_mask.argmax(1) + before
        position = torch.arange(input_ids.shape[1], device=input_ids.device)
        # The second text begins after the first separator.
        is_separator = (input_ids == self._frames.two.special[1][0]) & (position >= first[:, None])
        middle = is_separator.long().argmax(1)
        second = middle + between
        end = first - before + attention_mask.sum(1) - after
        alone = self._alone("first", input_ids, first, middle - first)
        return batch | alone | self._alone("second", input_ids, second, end - second)

    def features(self, prepared: Batch) -> Tensor:
        """Return what the two texts of each row have in common, (n_rows, 2 * hidden_size)."""
        encoder, means = self.transformer.base_model, []
        for text in ("first", "second"):
            mask, types = prepared.get(f"{text}_mask"), prepared[f"{text}_types"]
            output = self._read(encoder, prepared[f"{text}_ids"], mask, types)
            means.append(mean_state(output, mask))
        u, v = means
        return torch.cat([(u - v).abs(), u * v], dim=1)

    def _alone(self, text: str, input_ids: Tensor, first: Tensor, length: Tensor) -> Batch:
        """Return pieces, mask and token types, (n_rows, width), of a part of each row as a text."""
        length = length.clamp(min=0)
        frame, width = self._frames.one, input_ids.shape[1]
        # An exported graph has no lengths that depend on its input.
        longest = width if torch.compiler.is_exporting() else int(length.max()) + frame.n_special
        position = torch.arange(longest, device=input_ids.device)
        begin = len(frame.special[0])
        end = begin + length[:, None]
        is_text = (position >= begin) & (position < end)
        source = (first[:, None] + position - begin).clamp(0, width - 1)
        pieces = torch.where(is_text, input_ids.gather(1, source), self._frames.pad_id)
        starts: tuple[int | Tensor, ...] = (0, end)
        for place, tokens in zip(starts, frame.special):
            for i, token in enumerate(tokens):
                pieces = torch.where(position == place + i, token, pieces)
        mask = (position < length[:, None] + frame.n_special).long()
        types = torch.where(is_text, frame.text_types[0], 0)
        return {f"{text}_ids": pieces, f"{text}_mask": mask, f"{text}_types": types}


def mean_state(output: Output, mask: Tensor | None) -> Tensor:
    """Return the mean hidden state of each row, scaled to the norm sqrt(hidden_size)."""
    states = output["last_hidden_state"].float()
    if mask is None:
        mean = states.mean(1)
    else:
        mean = (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
    scaled: Tensor = nn.functional.normalize(mean, dim=1) * mean.shape[1] ** 0.5
    return scaled


class SpanModule(TextModule):
    """A transformer that scores each piece as start and as end of an answer, in two columns."""

    auto_class = "AutoModelForQuestionAnswering"

    def _item_logits(self, output: Output, row: Tensor, column: Tensor, texts: Batch) -> Tensor:
        scores = [output[f"{side}_logits"][row, column] for side in ("start", "end")]
        return torch.stack(scores, dim=1)


class QueryModule(TextModule):
    """A transformer that scores words as starts and ends of entities, and pairs of them as matches.

    An item is a piece; its logits are its scores as start and as end (``n_classes`` is 2), and the
    two vectors of ``match_size`` numbers whose product is the score of a match. So no pair has a
    vector of its own.
    """

    auto_class = "AutoModel"

    def __init__(self, model: str, n_classes: int, *, match_size: int, **more: Any) -> None:
        super().__init__(model, n_classes, **more)
        self._match_size = match_size
        self.head = nn.Linear(self.transformer.config.hidden_size, self.n_outputs)
        self._load_saved_head(model)

    def _item_logits(self, output: Output, row: Tensor, column: Tensor, texts: Batch) -> Tensor:
        logits: Tensor = self.head(self.dropout(output["last_hidden_state"][row, column]))
        return logits

    @property
    def n_outputs(self) -> int:
        return self._n_classes + 2 * self._match_size * (1 + len(self.members))

    def _mean(self, logits: list[Tensor]) -> Tensor:
        """Put vectors behind one another, so that their product is the mean of the products."""
        scores = torch.stack([part[..., :2] for part in logits]).mean(0)
        vectors = [part[..., 2:].chunk(2, dim=-1) for part in logits]
        # The product is divided by the root of their size, which grows as well.
        sides = (torch.cat(side, dim=-1) / len(logits) ** 0.25 for side in zip(*vectors))
        return torch.cat([scores, *sides], dim=-1)


# By the name of the task; texts may have a MeanModule in place of this one, and pairs whose texts
# can be told apart have a PairModule.
MODULES: dict[str, type[TextModule]] = {
    "tagging": TokenModule,
    "query-tagging": QueryModule,
    "questions": SpanModule,
    "pairs": SequenceModule,
    "texts": SequenceModule,
}
