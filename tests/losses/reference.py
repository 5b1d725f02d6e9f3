"""The losses as the paper's tables write them, with 80 digits: plain, slow and independent.

Everything is computed cell by cell. OHEM and ``detach_weight`` are not part of it.
"""

import mpmath
from mpmath import mpf

DIGITS = 80


def reference_value(loss, logits, target, sample_weight=None):
    """Return the loss of a batch; logits are numbers (binary) or lists of numbers."""
    with mpmath.workdps(DIGITS):
        return +_value(loss, logits, target, sample_weight)


def reference_gradient(loss, logits, target):
    """Return the numeric derivatives of the loss of one item by its logits, a list."""
    binary = not isinstance(logits, list)
    with mpmath.workdps(DIGITS):
        point = [mpf(z) for z in ([logits] if binary else logits)]
        return [
            mpmath.diff(
                lambda *z: _value(loss, [z[0] if binary else list(z)], [target]),
                tuple(point),
                tuple(int(j == c) for j in range(len(point))),
            )
            for c in range(len(point))
        ]


def _value(loss, logits, target, sample_weight=None):
    params = loss.get_params()
    weight = [1] * len(target) if sample_weight is None else sample_weight
    items = [
        (_probabilities(z), int(y), mpf(w))
        for z, y, w in zip(logits, target, weight, strict=True)
        if y != params["ignore_index"]
    ]
    binary = not isinstance(logits[0], list)
    n_classes = 2 if binary else len(logits[0])
    scored = [1] if binary else [c for c in range(n_classes) if c != params.get("background")]
    class_weight = [1] * n_classes if params["class_weight"] is None else params["class_weight"]

    def mean(item_loss):
        losses = (w * mpf(class_weight[y]) * item_loss(p, y) for p, y, w in items)
        return sum(losses) / sum(w for _, _, w in items)

    def cross_entropy(p, y):
        return -mpmath.log(p[y][0])

    if "level" not in params:
        focusing = mpf(params.get("gamma", 0))
        return mean(lambda p, y: p[y][1] ** focusing * cross_entropy(p, y))
    if params["level"] == "batch":
        weighted = [(p, y, w * mpf(class_weight[y])) for p, y, w in items]
        set_loss = _set_loss(params, scored, weighted)
    else:
        set_loss = mean(lambda p, y: _set_loss(params, scored, [(p, y, 1)]))
    ce_weight = mpf(params["ce_weight"])
    return ce_weight * mean(cross_entropy) + (1 - ce_weight) * set_loss


def _probabilities(z):
    """Return (p, 1 - p) of each class; 1 - p is a sum of its own, so that no digit is lost."""
    powers = [mpmath.exp(mpf(x)) for x in (z if isinstance(z, list) else [0, z])]
    total = sum(powers)
    rest = [sum(powers[:c] + powers[c + 1 :]) for c in range(len(powers))]
    return [(power / total, other / total) for power, other in zip(powers, rest)]


def _set_loss(params, classes, items):
    gamma = mpf(params["gamma"])
    sums = []
    for c in classes:
        cells = [(w, _cell(params, *p[c], int(y == c))) for p, y, w in items]
        sums.append([sum(w * cell[part] for w, cell in cells) for part in (0, 1)])
    if params["average"] == "micro":
        sums = [[sum(part) for part in zip(*sums)]]
    losses = [1 - (n + gamma) / (d + gamma) for n, d in sums]
    return sum(losses) / len(losses) if params["average"] == "macro" else sum(losses)


def _cell(params, p, q, y):
    """Return what a cell with probability p, q = 1 - p and gold y adds to both sums."""
    exponent = 2 if params["square_denominator"] else 1
    if "beta" in params:
        false_positive = mpf(params["alpha"]) * p**exponent * (1 - y)
        false_negative = mpf(params["beta"]) * q**exponent * y
        return p * y, p * y + false_positive + false_negative
    f = q ** mpf(params.get("alpha", 0)) * p
    return 2 * f * y, f**exponent + y**exponent
