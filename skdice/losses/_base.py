"""The base of all losses: parameters, input checks, weights and the additive-sums protocol."""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias

import torch
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from torch import Tensor, nn
from torch.nn import functional as F

from .._parameters import Parameter, check_parameters, not_allowed, number, option, parametrised

# Of shape (n_classes,); (2,) for one binary column, (n_labels, 2) for several labels.
ClassWeight: TypeAlias = ArrayLike | Tensor | None
# The target of items that take no part.
IGNORE_INDEX = -100
# Replaces logits of -inf (masked classes): their differences and gradients would be NaN.
_LOWEST = -1e30


class Items(NamedTuple):
    """The validated input of a loss, ignored items included with weight zero.

    There are two forms: one softmax over the classes of an item, or independent columns with a
    sigmoid each (one column if binary, one for each label if multi-label).
    """

    logits: Tensor  # (n_items, n_classes), at least float32; zero where ignored
    # Class indices, (n_items,), or 0 and 1 of columns, (n_items, n_classes); zero where ignored.
    target: Tensor
    weight: Tensor  # of each target: its sample weight times its class weight; zero where ignored
    sample_weight: Tensor  # of each target; zero where ignored; means divide by its sum

    @property
    def has_columns(self) -> bool:
        """Whether every class is a column of its own."""
        return self.target.ndim == 2

    @property
    def is_gold(self) -> Tensor:
        """y: whether a cell (item, class) is positive, of the shape of the logits."""
        if self.has_columns:
            return self.target == 1
        gold = torch.zeros_like(self.logits, dtype=torch.bool)
        return gold.scatter(1, self.target.unsqueeze(1), True)

    @property
    def gold_logits(self) -> Tensor:
        """The logit of the gold target against all else, of the shape of the targets."""
        if self.has_columns:
            return torch.where(self.target == 1, self.logits, -self.logits)
        gold = self.target.unsqueeze(1)
        others = self.logits.clamp_min(_LOWEST).scatter(1, gold, -torch.inf).logsumexp(1)
        return self.logits.gather(1, gold).squeeze(1) - others

    @property
    def cross_entropy(self) -> Tensor:
        """-log p_gold, of the shape of the targets."""
        if not self.has_columns:
            return F.cross_entropy(self.logits, self.target, reduction="none")
        target = self.target.to(self.logits.dtype)
        return F.binary_cross_entropy_with_logits(self.logits, target, reduction="none")


@parametrised
class Loss(BaseEstimator, nn.Module):
    """Base class of the losses.

    A loss is a ``torch.nn.Module`` with scikit-learn's ``get_params`` / ``set_params``, so that it
    can be cloned, pickled and searched over (``loss__gamma`` in a grid). Parameters are checked
    when it is called, not when it is made.

    The mean over any set of items can be formed piece by piece: ``sums`` is additive over items,
    and ``value(sums)`` is the loss. So a loss over one optimiser step stays exact when the step is
    cut into micro-batches or spread over processes.

    A subclass implements ``item_losses`` if the loss is a mean over items, and ``cells`` if it is a
    ratio over a set (:class:`SetLoss`).

    Parameters
    ----------
    class_weight
        Weight of the items of each gold class, of shape (n_classes,); (2,) for one binary column,
        (n_classes, 2) if multi-label.
    ignore_index
        Items with this target take no part and get exactly zero gradient.
    reduction
        The mean divides by the number of valid items (with ``sample_weight``: by its sum), not by
        the sum of the class weights as ``torch.nn.CrossEntropyLoss`` does. "none" gives a loss per
        item, set losses at example level only.
    """

    class_weight: Annotated[ClassWeight, Parameter("array-like")] = None
    ignore_index: Annotated[int, number(integer=True)] = IGNORE_INDEX
    reduction: Annotated[Literal["mean", "none"], option()] = "mean"

    # Whether a training step may become a CUDA graph: it never waits for the device, and does the
    # same at every call. A subclass says so itself: class MyLoss(DiceLoss, graphable=True).
    graphable: ClassVar[bool] = False
    # About how many steps the sums are formed over in training.
    memory = 0.0  # type: float | str
    # Whether there is one loss for a batch, or one for each item, whose mean is the loss.
    level = "example"  # type: Literal["batch", "example"]
    # The class weights as they were given, a copy of their values, and on the device.
    _sent_weight = None  # type: tuple[Any, Tensor, Tensor] | None
    get_params: ClassVar[Callable[..., dict[str, Any]]]
    set_params: ClassVar[Callable[..., Any]]

    def __init_subclass__(cls, *, graphable: bool = False, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.graphable = graphable

    def __post_init__(self) -> None:
        nn.Module.__init__(self)

    def forward(
        self, logits: Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Compute the loss.

        Parameters
        ----------
        logits : Tensor of shape (n_items, n_classes), or (n_items,) or (n_items, 1) if binary
            Unnormalised scores: softmax over the classes, sigmoid for one binary column and for
            each label if multi-label.
        target : Tensor of shape (n_items,), or (n_items, n_classes) if multi-label, integers
            Class of each item (0 or 1 if binary), or ``ignore_index``. Multi-label: 0 or 1 for each
            label, or ``ignore_index`` where it is not known.
        sample_weight : Tensor of shape (n_items,), optional
            Weight of each item: 2 counts as repetition, 0 as absence. Multi-label: also of shape
            (n_items, n_classes), the weight of each target.

        Returns
        -------
        Tensor
            A scalar; of shape (n_items,) with ``reduction="none"``, zero for ignored items
            (multi-label losses that are no set losses: (n_items, n_classes)).

        Raises
        ------
        ValueError
            If a parameter, a shape or (on CPU) a target is not allowed.
        """
        if self.reduction == "none":
            self.check_parameters()
            items = self._prepare(logits, target, sample_weight)
            with torch.autocast(logits.device.type, enabled=False):
                weight = self._unit_weight(items.weight, items.sample_weight)
                losses = self.item_losses(items) * weight
            return losses.squeeze(1) if losses.ndim == 2 and losses.shape[1] == 1 else losses
        return self.value(self.sums(logits, target, sample_weight))

    def sums(self, logits: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """Compute the sums that the loss needs; they are additive over items.

        Parameters are those of :meth:`forward`.

        Returns
        -------
        Tensor of shape (n_sums,)
            Add these up over disjoint sets of items and pass the total to :meth:`value`. With
            ``ohem_ratio > 0`` they are those of the items kept among the given ones, and do not add
            up (see ``additive``).
        """
        self.check_parameters()
        items = self._prepare(logits, target, sample_weight)
        with torch.autocast(logits.device.type, enabled=False):
            return self._sums(items)

    def value(self, sums: Tensor) -> Tensor:
        """Turn (added up) ``sums`` into the loss, a scalar tensor."""
        # All weights zero: 0 / 1, so that a scaled gradient stays zero as well.
        return sums[0] / sums[1].masked_fill(sums[1] == 0, 1.0)

    def total_weight(self, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """Return the divisor of the mean over some items, a scalar tensor that is additive.

        Parameters are those of :meth:`forward`; it needs no logits.
        """
        valid = target != self.ignore_index
        weight = valid.float()
        if sample_weight is not None:
            is_of_items = sample_weight.ndim < target.ndim
            weight = weight * (sample_weight.unsqueeze(1) if is_of_items else sample_weight)
        return self._unit_weight(weight, weight).sum()

    @property
    def additive(self) -> bool:
        """Whether ``sums`` of parts add up to the ``sums`` of the whole."""
        return True

    @property
    def separable(self) -> bool:
        """Whether the loss is a weighted mean of item losses, divided by ``sums[1]``."""
        return self.level == "example"

    def _sums(self, items: Items) -> Tensor:
        counts = items.sample_weight
        weight, divisor = (self._unit_weight(given, counts) for given in (items.weight, counts))
        return torch.stack([(self.item_losses(items) * weight).sum(), divisor.sum()])

    def item_losses(self, items: Items) -> Tensor:
        """Return the unweighted loss of each unit: an item, or a cell of the columns."""
        raise NotImplementedError

    def _unit_weight(self, weight: Tensor, counts: Tensor) -> Tensor:
        """Turn weights of targets into weights of the units that :meth:`item_losses` returns.

        ``counts`` is positive for each target that counts.
        """
        return weight

    def check_parameters(self) -> None:
        """Raise a ValueError unless all parameters are allowed."""
        check_parameters(self)

    def _prepare(self, logits: Tensor, target: Tensor, sample_weight: Tensor | None) -> Items:
        owner = type(self).__name__
        if not torch.is_floating_point(logits):
            raise ValueError(f"{owner} takes logits of a float dtype, got {logits.dtype}.")
        if logits.dtype in (torch.float16, torch.bfloat16):
            logits = logits.float()
        shape, target_shape = tuple(logits.shape), tuple(target.shape)
        if logits.ndim == target.ndim == 1:
            logits = logits.unsqueeze(1)
        if target.ndim == 1 and logits.ndim == 2 and logits.shape[1] == 1:
            target = target.unsqueeze(1)
        has_columns = target.ndim == 2
        if logits.ndim != 2 or target.shape != (logits.shape if has_columns else logits.shape[:1]):
            raise ValueError(
                f"{owner} takes logits of shape (n_items, n_classes) with targets of shape "
                f"(n_items,), or (n_items, n_classes) if multi-label, or binary logits of shape "
                f"(n_items,) or (n_items, 1); got logits of shape {shape} with targets of shape "
                f"{target_shape}. Sequences are flattened first: logits.flatten(0, 1), "
                f"target.flatten()."
            )
        n_classes = 2 if has_columns else logits.shape[1]
        if torch.is_floating_point(target) and not has_columns:
            raise ValueError(f"{owner} takes integer targets (int64), got {target.dtype}.")
        valid = target != self.ignore_index
        # Looking at numbers on a device would wait for it.
        is_visible = target.device.type == "cpu" and not torch.compiler.is_compiling()
        if is_visible:
            _check_target(owner, target, valid, n_classes, self.ignore_index)
        target = target.long()
        if not is_visible or not valid.all():
            target = target.masked_fill(~valid, 0)
            logits = logits.masked_fill(~valid if has_columns else ~valid.unsqueeze(1), 0.0)
        if sample_weight is None:
            sample_weight = valid.to(logits.dtype)
        else:
            if sample_weight.shape not in (valid.shape, valid.shape[:1]):
                raise ValueError(
                    f"sample_weight must have shape ({len(logits)},), one weight per item; got "
                    f"{tuple(sample_weight.shape)}."
                )
            if sample_weight.ndim < valid.ndim:
                sample_weight = sample_weight.unsqueeze(1).expand_as(valid)
            # Ignored items may have any weight, even NaN.
            sample_weight = sample_weight.to(logits).masked_fill(~valid, 0.0)
            _check_weights("sample_weight", "item", sample_weight)
        weight = sample_weight
        if self.class_weight is not None:
            weight = weight * self._gold_weight(logits, target)
        return Items(logits, target, weight, sample_weight)

    def _gold_weight(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the class weight of each target, of the shape of target."""
        n_columns = logits.shape[1]
        if target.ndim == 1 or n_columns == 1:
            return self._class_weight(logits, (max(n_columns, 2),))[target]
        weight = self._class_weight(logits, (n_columns, 2))
        return torch.where(target == 1, weight[:, 1], weight[:, 0])

    def _class_weight(self, logits: Tensor, shape: tuple[int, ...]) -> Tensor:
        # The weights stay on the device: sending them again would wait for it.
        is_compiling = torch.compiler.is_compiling()
        if self._sent_weight is not None:
            source, values, weight = self._sent_weight
            is_there = (weight.dtype, weight.device) == (logits.dtype, logits.device)
            is_there = is_there and source is self.class_weight and weight.shape == shape
            # An array on the CPU may have been changed in place. Reading a device would wait.
            is_known = is_compiling or values.device.type != "cpu"
            if is_there and (is_known or torch.equal(values, torch.as_tensor(self.class_weight))):
                return weight
        owner, one = type(self).__name__, "one weight per class"
        meaning = one if len(shape) == 1 else "the weights of 0 and 1 for each label"
        try:
            weight = torch.as_tensor(self.class_weight, dtype=logits.dtype, device=logits.device)
        except (TypeError, ValueError, RuntimeError) as error:
            allowed = f"None or an array of shape {shape}, {meaning}"
            raise not_allowed(owner, "class_weight", allowed, self.class_weight) from error
        what = f"The 'class_weight' parameter of {owner}"
        if weight.shape != shape:
            raise ValueError(
                f"{what} must have shape {shape}, {meaning}; got {tuple(weight.shape)}."
            )
        _check_weights(what, "class", weight)
        if not is_compiling:
            if weight.device.type == "cpu" and not weight.any():
                raise ValueError(f"{what} must have a weight above zero; all of them are zero.")
            values = torch.as_tensor(self.class_weight).detach().clone()
            self._sent_weight = (self.class_weight, values, weight)
        return weight


def against_rest(logits: Tensor) -> Tensor:
    """Return the logit of each class against all others, ``log p - log(1 - p)``.

    If p is near one, ``1 - p`` has no digits left. Only the top class of a row can have such a p.
    Its ``log(1 - p)`` comes from the log-sum-exp of the *other* logits.
    """
    logits = logits.clamp_min(_LOWEST)
    top = logits.argmax(1, keepdim=True)
    is_top = torch.zeros_like(logits, dtype=torch.bool).scatter(1, top, True)
    others = logits.masked_fill(is_top, -torch.inf).logsumexp(1, keepdim=True)
    log_p = logits.log_softmax(1)
    # The top class is left out of exp as well, or its gradient would be 0 times infinity.
    log_rest = torch.log1p(-log_p.masked_fill(is_top, -torch.inf).exp())
    return torch.where(is_top, logits - others, log_p - log_rest)


def accumulator(tensor: Tensor) -> Tensor:
    """Return the tensor in the widest float type of its device, so that long sums are exact."""
    return tensor if tensor.device.type == "mps" else tensor.double()


def _check_weights(what: str, unit: str, weight: Tensor) -> None:
    if weight.device.type != "cpu" or torch.compiler.is_compiling():
        return
    bad = ~(weight.isfinite() & (weight >= 0))
    if bad.any():
        index = tuple(bad.nonzero()[0].tolist())
        raise ValueError(
            f"{what} must be finite and not negative; got {float(weight[index])} for {unit} "
            f"{index[0]}."
        )


def _check_target(
    owner: str, target: Tensor, valid: Tensor, n_classes: int, ignore_index: int
) -> None:
    wrong = valid & ((target < 0) | (target >= n_classes) | (target != target.long()))
    if wrong.any():
        index = tuple(wrong.nonzero()[0].tolist())
        column = f", column {index[1]}" if target.ndim == 2 and target.shape[1] > 1 else ""
        raise ValueError(
            f"{owner} got target {target[index].item()} for item {index[0]}{column}; allowed are "
            f"0..{n_classes - 1} and ignore_index={ignore_index}."
        )
