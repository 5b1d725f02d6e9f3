"""Jobs that are too large to be measured here, reckoned from their parts.

A step of training takes the arithmetic of its pieces and then the exchange of the gradient, which
does not overlap with it. The exchange is a ring: each device sends and receives 2 (n - 1) / n times
the gradient, through the slowest link of the ring. Every collective waits besides, longer with more
devices. Prediction has no exchange: its rate is that of one worker times the workers, until what
feeds them is slower.
"""

import math
from typing import NamedTuple

import pandas as pd


class Encoder(NamedTuple):
    """An encoder.

    Attributes
    ----------
    name : str
    n_layers_weights : float
        Weights that every piece is multiplied with.
    n_embedded : float
        Weights of the embedding matrix; only rows that occur are trained and sent.
    share_embedded : float
        Of the rows, those that occur in a large corpus.
    """

    name: str
    n_layers_weights: float
    n_embedded: float
    share_embedded: float = 1.0

    @property
    def n_trained(self) -> float:
        return self.n_layers_weights + self.share_embedded * self.n_embedded


class Hardware(NamedTuple):
    """What is assumed of the machines; rates in units per second."""

    flops: float = 989e12  # bf16, dense, of an H200 by its data sheet.
    utilisation: float = 0.35  # Assumed for windows of some 128 pieces.
    gpus_of_node: int = 8
    inside: float = 360e9  # Bytes, a ring over NVLink: 80 % of the 450 GB/s of each direction.
    between: float = 40e9  # Bytes for each GPU: 80 % of a 400 Gbit/s adapter.
    latency: float = 15e-6  # Seconds of a collective, for each doubling of the devices.


class Step(NamedTuple):
    """How a step is cut.

    Attributes
    ----------
    pieces : float
        Of one batch on one GPU.
    batches : int
        Of one step (``accumulate``).
    gradient_bytes : int
        Of one weight.
    overlap : bool
        Whether the exchange runs beside the backward pass, two thirds of the arithmetic.
    collectives : int
        Waits of a step: the finite check, the sums of the loss and the gradient's buckets.
    passes : float
        Forward passes more than plain training: set losses replay the batches of a cut step.
    """

    pieces: float = 16 * 128
    batches: int = 1
    gradient_bytes: int = 4
    overlap: bool = False
    collectives: int = 4
    passes: float = 0.0


ENCODERS = (
    Encoder("MiniLM-L6 (384)", 10.8e6, 11.9e6),
    Encoder("BERT-base", 86e6, 23.8e6),
    Encoder("BERT-large", 303e6, 31.8e6),
)
HARDWARE = Hardware()
N_GPUS = (1, 8, 64, 512)
WAYS = {
    "as it is, 16 texts a GPU": Step(),
    "64 texts a GPU": Step(pieces=64 * 128),
    "64 texts, accumulate=4": Step(pieces=64 * 128, batches=4, passes=1.0),
    "64 texts, gradient in bf16": Step(pieces=64 * 128, gradient_bytes=2),
    "64 texts, exchange overlaps": Step(pieces=64 * 128, overlap=True),
}
# Words per second of a worker, measured with two cores (fp32); of a GPU assumed, see SCALING.md.
CORES_WORDS = 4_855
N_WORDS = 1e9


def seconds(
    encoder: Encoder, step: Step, n_gpus: int, hardware: Hardware = HARDWARE
) -> tuple[float, float]:
    """Return the seconds of a step's arithmetic, and those that its exchange adds."""
    flops = (6 + 2 * step.passes) * encoder.n_layers_weights * step.pieces * step.batches
    arithmetic = flops / (hardware.flops * hardware.utilisation)
    if n_gpus == 1:
        return arithmetic, 0.0
    link = hardware.inside if n_gpus <= hardware.gpus_of_node else hardware.between
    n_bytes = 2 * (n_gpus - 1) / n_gpus * encoder.n_trained * step.gradient_bytes
    exchange = n_bytes / link
    if step.overlap:
        last_backward = 4 / (6 + 2 * step.passes) / step.batches * arithmetic
        exchange = max(0.0, exchange - last_backward)
    return arithmetic, exchange + step.collectives * hardware.latency * math.log2(n_gpus)


def tables() -> dict[str, pd.DataFrame]:
    """Return the tables of SCALING.md that are reckoned, by their titles."""
    efficiency = []
    for encoder in ENCODERS:
        for way, step in WAYS.items():
            row = {"encoder": encoder.name, "step": way}
            for n_gpus in N_GPUS[1:]:
                arithmetic, exchange = seconds(encoder, step, n_gpus)
                row[f"{n_gpus} GPUs"] = f"{arithmetic / (arithmetic + exchange):.0%}"
            row["ms of arithmetic"] = f"{1000 * seconds(encoder, step, 1)[0]:.1f}"
            row["ms of exchange, 64 GPUs"] = f"{1000 * seconds(encoder, step, 64)[1]:.1f}"
            efficiency.append(row)
    return {"Training: share of the time that is arithmetic": pd.DataFrame(efficiency)}
