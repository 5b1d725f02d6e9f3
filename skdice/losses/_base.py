"""The base of all losses: parameters, input checks, weights and the additive-sums protocol."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from ._parameters import check_number, check_option


class Items(NamedTuple):
    """The validated input of a loss, ignored items included with weight zero.

    Attributes
    ----------
    logits : Tensor of shape (n_items, n_classes) or, for one binary column, (n_items,)
        At least float32; zero in ignored rows.
    target : Tensor of shape (n_items,), int64
        Zero for ignored items.
    weight : Tensor of shape (n_items,)
        ``sample_weight`` times class weight; zero for ignored items.
    sample_weight : Tensor of shape (n_items,)
        Zero for ignored items; its sum is what means divide by.
    """

    logits: Tensor
    target: Tensor
    weight: Tensor
    sample_weight: Tensor


class Loss(BaseEstimator, nn.Module):
    """Base class of the losses.

    A loss is a ``torch.nn.Module`` with scikit-learn's ``get_params`` / ``set_params``, so that it
    can be cloned, pickled and searched over (``loss__gamma`` in a grid).

    The mean over any set of items can be formed piece by piece: ``sums`` is additive over items,
    and ``value(sums)`` is the loss. So a loss over one optimiser step stays exact when the step is
    cut into micro-batches or spread over processes.
    """

    get_params: Callable[..., dict[str, Any]]
    set_params: Callable[..., Any]
    class_weight: Any
    ignore_index: int
    reduction: str

    def forward(
        self, logits: Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Compute the loss.

        Parameters
        ----------
        logits : Tensor of shape (n_items, n_classes), or (n_items,) or (n_items, 1) if binary
            Unnormalised scores: softmax over the classes, sigmoid for one binary column.
        target : Tensor of shape (n_items,), integers
            Class of each item (0 or 1 if binary), or ``ignore_index``.
        sample_weight : Tensor of shape (n_items,), optional
            Weight of each item: 2 counts as repetition, 0 as absence.

        Returns
        -------
        Tensor
            A scalar; of shape (n_items,) with ``reduction="none"``, zero for ignored items.

        Raises
        ------
        ValueError
            If a parameter, a shape or (on CPU) a target is not allowed.
        """
        if self.reduction == "none":
            self._check_parameters()
            items = self._prepare(logits, target, sample_weight)
            with _autocast_off(logits):
                return self._item_losses(items) * items.weight
        return self.value(self.sums(logits, target, sample_weight))

    def sums(self, logits: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """Compute what the loss needs to know of some items, additive over items.

        Parameters are those of :meth:`forward`.

        Returns
        -------
        Tensor of shape (n_sums,)
            Add these up over disjoint sets of items and pass the total to :meth:`value`. With
            ``ohem_ratio > 0`` they are those of the items kept among the given ones, and do not add
            up (see ``additive``).
        """
        self._check_parameters()
        items = self._prepare(logits, target, sample_weight)
        with _autocast_off(logits):
            return self._sums(items)

    def value(self, sums: Tensor) -> Tensor:
        """Turn (added up) ``sums`` into the loss, a scalar tensor."""
        # All weights zero: 0 / 1, so that a scaled gradient stays zero as well.
        return sums[0] / sums[1].masked_fill(sums[1] == 0, 1.0)

    @property
    def additive(self) -> bool:
        """Whether ``sums`` of parts add up to the ``sums`` of the whole."""
        return True

    @property
    def separable(self) -> bool:
        """Whether the loss is a weighted mean of item losses, divided by ``sums[1]``."""
        return True

    def known_collapse(self) -> str | None:
        """Say why these settings are known to collapse in training, or return None."""
        return None

    def _sums(self, items: Items) -> Tensor:
        losses = self._item_losses(items)
        return torch.stack([(losses * items.weight).sum(), items.sample_weight.sum()])

    def _item_losses(self, items: Items) -> Tensor:
        """Return the unweighted loss of each item, of shape (n_items,)."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        check_option(owner, "reduction", self.reduction, ("mean", "none"))
        check_number(owner, "ignore_index", self.ignore_index, integer=True)

    def _prepare(self, logits: Tensor, target: Tensor, sample_weight: Tensor | None) -> Items:
        owner = type(self).__name__
        if not torch.is_floating_point(logits):
            raise ValueError(f"{owner} takes logits of a float dtype, got {logits.dtype}.")
        if logits.dtype in (torch.float16, torch.bfloat16):
            logits = logits.float()
        if logits.ndim == 2 and logits.shape[1] == 1:
            logits = logits.squeeze(1)
            if target.shape == (len(logits), 1):
                target = target.squeeze(1)
        if logits.ndim not in (1, 2) or target.shape != logits.shape[:1]:
            raise ValueError(
                f"{owner} takes logits of shape (n_items, n_classes) with targets of shape "
                f"(n_items,), or binary logits of shape (n_items,) or (n_items, 1); got logits of "
                f"shape {tuple(logits.shape)} with targets of shape {tuple(target.shape)}. "
                f"Sequences are flattened first: logits.flatten(0, 1), target.flatten()."
            )
        n_classes = 2 if logits.ndim == 1 else logits.shape[1]
        if torch.is_floating_point(target) and logits.ndim == 2:
            raise ValueError(f"{owner} takes integer targets (int64), got {target.dtype}.")
        valid = target != self.ignore_index
        if target.device.type == "cpu" and not torch.compiler.is_compiling():
            _check_targets(owner, target, valid, n_classes, self.ignore_index)
            all_valid = bool(valid.all())
        else:
            all_valid = False  # Not looked at: that would wait for the device.
        target = target.long()
        if not all_valid:
            target = target.masked_fill(~valid, 0)
            mask = ~valid if logits.ndim == 1 else ~valid.unsqueeze(1)
            logits = logits.masked_fill(mask, 0.0)
        sample_weight = self._sample_weight(logits, valid, sample_weight)
        weight = sample_weight
        if self.class_weight is not None:
            weight = weight * self._class_weight(logits, n_classes)[target]
        return Items(logits, target, weight, sample_weight)

    def _sample_weight(self, logits: Tensor, valid: Tensor, sample_weight: Tensor | None) -> Tensor:
        if sample_weight is None:
            return valid.to(logits.dtype)
        if sample_weight.shape != logits.shape[:1]:
            raise ValueError(
                f"sample_weight must have shape ({len(logits)},), one weight per item; got "
                f"{tuple(sample_weight.shape)}."
            )
        weight = sample_weight.to(logits).masked_fill(~valid, 0.0)
        _check_weights("sample_weight", "item", weight)
        return weight

    def _class_weight(self, logits: Tensor, n_classes: int) -> Tensor:
        try:
            weight = torch.as_tensor(self.class_weight, dtype=logits.dtype, device=logits.device)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(
                f"The 'class_weight' parameter of {type(self).__name__} must be None or an array "
                f"of shape ({n_classes},), one weight per class. Got {self.class_weight!r} instead."
            ) from error
        if weight.shape != (n_classes,):
            raise ValueError(
                f"The 'class_weight' parameter of {type(self).__name__} must have shape "
                f"({n_classes},), one weight per class; got {tuple(weight.shape)}."
            )
        _check_weights(f"The 'class_weight' parameter of {type(self).__name__}", "class", weight)
        return weight


def gold_logits(items: Items) -> Tensor:
    """Return the logit of "the gold class against all others", of shape (n_items,).

    With m this logit, p_gold = sigmoid(m), so cross-entropy is softplus(-m), and value and gradient
    stay exact however large m is.
    """
    logits, target = items.logits, items.target
    if logits.ndim == 1:
        return torch.where(target == 1, logits, -logits)
    gold = target.unsqueeze(1)
    # Not -inf: where all other classes are masked by -inf, that would be inf - inf.
    others = logits.scatter(1, gold, torch.finfo(logits.dtype).min).logsumexp(1)
    return logits.gather(1, gold).squeeze(1) - others


def accumulator(tensor: Tensor) -> Tensor:
    """Return the tensor in the widest float type of its device, for long sums."""
    return tensor if tensor.device.type == "mps" else tensor.double()


def _autocast_off(tensor: Tensor) -> torch.autocast:
    return torch.autocast(tensor.device.type, enabled=False)


def _check_weights(what: str, unit: str, weight: Tensor) -> None:
    if weight.device.type != "cpu" or torch.compiler.is_compiling():
        return
    bad = ~(weight.isfinite() & (weight >= 0))
    if bad.any():
        index = int(bad.nonzero()[0])
        raise ValueError(
            f"{what} must be finite and not negative; got {float(weight[index])} for {unit} "
            f"{index}."
        )


def _check_targets(
    owner: str, target: Tensor, valid: Tensor, n_classes: int, ignore_index: int
) -> None:
    wrong = valid & ((target < 0) | (target >= n_classes) | (target != target.long()))
    if wrong.any():
        index = int(wrong.nonzero()[0])
        raise ValueError(
            f"{owner} got target {target[index].item()} for item {index}; allowed are "
            f"0..{n_classes - 1} and ignore_index={ignore_index}."
        )
