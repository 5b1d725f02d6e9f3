"""How hard each loss pushes
=========================

The derivative of each loss with respect to the score p of one word, as in the paper's Figure 1::

    python examples/draw_losses.py

On the left the word is in an entity, so a loss should push p up (a negative derivative). On the
right it is not, and a loss should push p down. Where the derivative is near zero, the loss hardly
pushes at all. The derivative of ``"dsc-paper"`` changes its sign: this loss pulls a word of an
entity back to p = 0.5, and pushes a confident false positive further up. That is why it collapses.
"""

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from skdice.inspection import LossDerivativeDisplay
from skdice.losses import TverskyLoss

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder of the picture")
arguments = parser.parse_args()

losses = {
    "ce": "ce",
    "focal": "focal",
    "dice": "dice",
    "tversky (0.3, 0.7)": TverskyLoss(alpha=0.3, beta=0.7),
    "dsc": "dsc",
    "dsc-paper": "dsc-paper",
}
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for ax, target in zip(axes, (1, 0)):
    LossDerivativeDisplay.from_losses(losses, target=target, ax=ax)
axes[0].set_title("A word in an entity")
axes[1].set_title("A word outside")

arguments.out.mkdir(parents=True, exist_ok=True)
picture = arguments.out / "draw_losses.png"
figure.savefig(picture, dpi=120)
print(f"The picture is in {picture}.")
