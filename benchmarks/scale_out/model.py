"""Jobs that are too large to be measured here, reckoned from their parts.

A step of training takes its arithmetic, or what the host takes to start it if that is longer, and
then the exchange of the gradient, which does not overlap with it. The exchange is a ring: each
device sends and receives 2 (n - 1) / n times the gradient, through the slowest link of the ring;
every collective waits besides, longer with more devices. Prediction has no exchange: its rate is
that of one worker times the workers, until what feeds them is slower.
"""

import math
from typing import NamedTuple

import pandas as pd


class Encoder(NamedTuple):
    """An encoder.

    Attributes
    ----------
    name : str
    n_layers : int
    n_weights : float
        Of its layers; every piece is multiplied with all of them.
    n_embedded : float
        Of its embedding matrix; only rows that occur are trained and sent, here all of them.
    """

    name: str
    n_layers: int
    n_weights: float
    n_embedded: float


class Hardware(NamedTuple):
    """The machines, in seconds and units per second. What is not marked as measured is assumed."""

    flops: float = 989e12  # bf16, dense, of an H200 by its data sheet.
    utilisation: float = 0.35
    gpus_of_node: int = 8
    inside: float = 360e9  # Bytes, a ring over NVLink: 80 % of the 450 GB/s of each direction.
    between: float = 40e9  # Bytes for each GPU: 80 % of a 400 Gbit/s adapter.
    latency: float = 15e-6  # Of a collective, for each doubling of the devices.
    host: float = 4.1e-3  # Of a batch; measured (benchmarks.scale_out, "Steps without arithmetic").
    host_of_layer: float = 1.71e-3  # Measured, too.


class Step(NamedTuple):
    """How a step is cut.

    Attributes
    ----------
    texts : int
        Of one batch on one GPU, of 128 pieces each.
    batches : int
        Of one step (``accumulate``); set losses run the forward passes of a cut step twice.
    gradient_bytes : int
        Of one weight.
    overlaps : bool
        Whether the exchange runs beside the backward pass, two thirds of the arithmetic.
    """

    texts: int
    batches: int = 1
    gradient_bytes: int = 4
    overlaps: bool = False


class Seconds(NamedTuple):
    """What a step takes."""

    arithmetic: float
    host: float
    exchange: float

    @property
    def of_step(self) -> float:
        return max(self.arithmetic, self.host) + self.exchange


PIECES = 128  # of a text
N_COLLECTIVES = 4  # The sums of the loss, and the gradient in buckets of 64 MiB.
ENCODERS = (
    Encoder("MiniLM-L6", 6, 10.8e6, 11.9e6),
    Encoder("BERT-base", 12, 86e6, 23.8e6),
    Encoder("BERT-large", 24, 303e6, 31.8e6),
)
HARDWARE = Hardware()
N_GPUS = (8, 64, 512)
STEPS = {
    "16 texts a GPU": Step(16),
    "128 texts a GPU": Step(128),
    "128 texts, accumulate=4": Step(128, batches=4),
    "128 texts, gradient in bf16 (not built)": Step(128, gradient_bytes=2),
    "128 texts, exchange overlaps (not built)": Step(128, overlaps=True),
}
# Words per second, measured (RESULTS.md, "Prediction").
RATES = {"2 cores, fp32": 4_855, "2 cores, bf16": 7_572}
N_WORDS = 1e9


def seconds(encoder: Encoder, step: Step, n_gpus: int, hardware: Hardware = HARDWARE) -> Seconds:
    """Return what a step takes."""
    is_cut = step.batches > 1
    forwards_and_backwards = 4 if is_cut else 3  # In forward passes; a backward pass is two.
    pieces = step.texts * step.batches * PIECES
    flops = 2 * forwards_and_backwards * encoder.n_weights * pieces
    arithmetic = flops / (hardware.flops * hardware.utilisation)
    host = hardware.host + hardware.host_of_layer * encoder.n_layers
    host *= step.batches * forwards_and_backwards / 3
    if n_gpus == 1:
        return Seconds(arithmetic, host, 0.0)
    link = hardware.inside if n_gpus <= hardware.gpus_of_node else hardware.between
    n_bytes = (encoder.n_weights + encoder.n_embedded) * step.gradient_bytes
    exchange = 2 * (n_gpus - 1) / n_gpus * n_bytes / link
    if step.overlaps:
        of_last_batch = max(arithmetic, host) / step.batches
        exchange = max(0.0, exchange - 2 / forwards_and_backwards * of_last_batch)
    exchange += N_COLLECTIVES * hardware.latency * math.log2(n_gpus)
    return Seconds(arithmetic, host, exchange)


def tables() -> dict[str, pd.DataFrame]:
    """Return the tables of SCALING.md that are reckoned, by their titles."""
    return {
        "Training: rate of n GPUs, as a share of n times that of one": _training(),
        "Prediction of 10^9 words": _prediction(),
    }


def _training() -> pd.DataFrame:
    rows = []
    for encoder in ENCODERS:
        for name, step in STEPS.items():
            alone, of_64 = seconds(encoder, step, 1), seconds(encoder, step, 64)
            row = {"encoder": encoder.name, "step": name}
            for n_gpus in N_GPUS:
                share = alone.of_step / seconds(encoder, step, n_gpus).of_step
                row[f"{n_gpus} GPUs"] = f"{share:.0%}"
            for part, value in zip(Seconds._fields, of_64):
                row[f"{part}, ms (64 GPUs)"] = f"{1000 * value:.1f}"
            rows.append(row)
    return pd.DataFrame(rows)


def _prediction() -> pd.DataFrame:
    rows = []
    for worker, rate in RATES.items():
        hours = N_WORDS / rate / 3600
        row = {"worker": worker, "words/s": f"{rate:,}", "hours of one": f"{hours:.0f}"}
        for n in (8, 64, 512):
            row[f"hours of {n}"] = f"{hours / n:.2g}"
        rows.append(row)
    return pd.DataFrame(rows)
