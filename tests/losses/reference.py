"""The losses as the paper's tables write them: plain, slow and independent."""

import torch
from torch.nn import functional as F


def plain_loss(loss, logits, target, sample_weight=None):
    """Return the loss of a batch, of which autograd gives the gradient.

    Logits are those of a softmax (n_items, n_classes), of one binary column (n_items,) or, with
    targets of two dimensions, of several labels.
    """
    has_columns = logits.ndim == 1 or target.ndim == 2
    z, target = (x.unsqueeze(1) if x.ndim == 1 else x for x in (logits, target))
    known = target != loss.ignore_index
    y = target.masked_fill(~known, 0)
    if has_columns:
        p, gold = z.sigmoid(), y == 1
        entropy = -F.logsigmoid(torch.where(gold, z, -z))
    else:
        p, gold = z.softmax(1), F.one_hot(y.squeeze(1), z.shape[1]).bool()
        entropy = -z.log_softmax(1).gather(1, y)
    weight = torch.ones(len(z), 1).to(z) if sample_weight is None else sample_weight.unsqueeze(1)
    items = torch.where(known, weight, 0.0).to(z)
    weighted = items * gold_weight(loss, y, z)
    if not hasattr(loss, "average"):
        p_gold = torch.where(gold, p, 1 - p) if has_columns else p.gather(1, y)
        losses = (1 - p_gold) ** getattr(loss, "gamma", 0) * entropy
        return (weighted * losses).sum() / items.sum()
    is_scored = torch.tensor([c != loss.background for c in range(z.shape[1])])
    if has_columns and z.shape[1] == 1:  # It is the positive class.
        is_scored[:] = True
    takes_part = known & is_scored
    if loss.ohem_ratio:
        takes_part = hardest(loss, p, gold, takes_part)
    terms = [torch.where(takes_part, term, 0.0) for term in cells(loss, p, gold.to(p))]
    if loss.level == "batch":
        pooled = [(weighted * term).sum(0, keepdim=True) for term in terms]
        ratio = averaged(loss, *pooled, is_scored).sum()
        entropy = (weighted * entropy).sum() / items.sum()
        return loss.ce_weight * entropy + (1 - loss.ce_weight) * ratio
    n_known = known.sum(1).clamp_min(1)
    ratio = averaged(loss, *terms, takes_part)
    entropy = (known * entropy).sum(1) / n_known
    values = loss.ce_weight * entropy + (1 - loss.ce_weight) * ratio
    return (weighted.sum(1) / n_known * values).sum() / items.amax(1).sum()


def gold_weight(loss, y, z):
    if loss.class_weight is None:
        return torch.ones_like(y).to(z)
    weight = torch.as_tensor(loss.class_weight, dtype=z.dtype)
    return weight[y] if weight.ndim == 1 else torch.where(y == 1, weight[:, 1], weight[:, 0])


def cells(loss, p, gold):
    """Return what each cell adds to numerator and denominator."""
    power = 2 if loss.square_denominator else 1
    if hasattr(loss, "beta"):
        wrong = loss.alpha * p**power * (1 - gold) + loss.beta * (1 - p) ** power * gold
        return p * gold, p * gold + wrong
    easy = (1 - p) ** getattr(loss, "alpha", 0.0)
    f = (easy.detach() if getattr(loss, "detach_weight", False) else easy) * p
    return 2 * f * gold, f**power + gold


def averaged(loss, numerator, denominator, takes_part):
    """Return one loss per row of sums, over the columns that take part."""
    if loss.average == "micro":
        numerator, denominator = (x.sum(1, keepdim=True) for x in (numerator, denominator))
        takes_part = takes_part.any(-1, keepdim=True)
    losses = (1 - (numerator + loss.gamma) / (denominator + loss.gamma)) * takes_part
    total = losses.sum(1)
    return total / takes_part.sum(-1).clamp_min(1) if loss.average == "macro" else total


def hardest(loss, p, gold, units):
    """Return the units that OHEM keeps: positives, and the negatives of highest p."""
    kept = units & gold
    every = range(p.shape[1])
    for group in [every] if loss.average == "micro" else [[c] for c in every]:
        here = [(i, c) for i, c in units.nonzero().tolist() if c in group]
        negatives = [(i, c) for i, c in here if not gold[i, c]]
        k = max(1, round(loss.ohem_ratio * (len(here) - len(negatives))))
        for i, c in sorted(negatives, key=lambda unit: (-p[unit].item(), unit))[:k]:
            kept[i, c] = True
    return kept
