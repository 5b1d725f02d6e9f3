"""What memory changes in a step
=============================

The value and the gradient of dice, with memory and without::

    python examples/remember_steps.py

Two of three steps have no entity. Without memory, such a step can only teach the model to find
less. In a step with entities one F1 is shared among all of them, so that each pulls half as hard.
With memory every step is judged by the F1 of about the last ten steps. The script prints the values
and saves the picture.
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import torch

from skdice.losses import DiceLoss, SumsMemory

matplotlib.use("Agg")
import matplotlib.pyplot as plt

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--out", type=Path, default=Path("demo-output"))
arguments = parser.parse_args()

LOSS = DiceLoss()
N_WORDS = 300


def step(n_positives, p_positive=0.8, p_negative=0.05):
    """Return logits and targets of a step of words, of which some are in an entity."""
    target = torch.zeros(N_WORDS, dtype=torch.int64)
    target[:n_positives] = 1
    p = torch.where(target == 1, p_positive, p_negative)
    return p.logit(), target


def value_and_slope(word, p, n_positives, memory):
    """Return the loss of a step and its gradient by the logit of one word, which has score p."""
    logits, target = step(n_positives)
    logits[word] = torch.tensor(p).logit()
    logits.requires_grad_()
    value = LOSS.value(memory(LOSS.sums(logits, target)))
    (gradient,) = torch.autograd.grad(value, logits)
    return value.item(), gradient[word].item()


def remembered():
    """Return a memory of nine steps, three of them with four words in entities."""
    memory = SumsMemory(10)
    for n_positives in (4, 0, 0) * 3:
        memory(LOSS.sums(*step(n_positives)))
    return memory


memories = {"the step alone": lambda: SumsMemory(0), "10 steps": remembered}
rows = {
    (name, f"{n} of {N_WORDS} words in entities"): value_and_slope(-1, 0.05, n, make())
    for name, make in memories.items()
    for n in (4, 0)
}
table = pd.DataFrame(rows, index=["value", "push on a word outside (p = 0.05)"]).T
print(table.to_string(float_format="{:.4f}".format))

scores = np.linspace(0.02, 0.98, 97)
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
panels = [("A word in an entity", 0, [4]), ("A word outside", -1, [4, 0])]
for axis, (title, word, counts) in zip(axes, panels):
    for color, (name, make) in zip(("tab:orange", "tab:blue"), memories.items()):
        for n, line in zip(counts, ("-", "--")):
            slopes = [value_and_slope(word, p, n, make())[1] for p in scores]
            of_step = "step with entities" if n else "step without"
            axis.plot(scores, slopes, line, color=color, label=f"{name}, {of_step}")
    axis.axhline(0, color="0.7", linewidth=0.8)
    axis.set(title=title, xlabel="score p of the word")
    axis.legend(frameon=False)
axes[0].set_ylabel("gradient of the loss by its logit")
arguments.out.mkdir(parents=True, exist_ok=True)
picture = arguments.out / "remember_steps.png"
figure.savefig(picture, dpi=120)
print(f"\nThe picture is in {picture}.")
