"""spaCy's own network, as ``spacy init config`` and ``spacy train`` make it.

A fifth of the sentences tells when to stop.
"""

# Counted
from pathlib import Path

import spacy
from spacy.cli.init_config import init_config
from spacy.tokens import Doc, DocBin
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import fix_random_seed


def write(vocabulary, sentences, tags, path):
    docs = [Doc(vocabulary, words=words, ents=row) for words, row in zip(sentences, tags)]
    DocBin(docs=docs).to_disk(path)


def fit(task):
    fix_random_seed(task.seed)
    vocabulary, n_dev = spacy.blank("en").vocab, len(task.X) // 5
    write(vocabulary, task.X[n_dev:], task.y[n_dev:], "train.spacy")
    write(vocabulary, task.X[:n_dev], task.y[:n_dev], "dev.spacy")
    config = init_config(lang="en", pipeline=["ner"], optimize="efficiency")
    config["paths"].update(train="train.spacy", dev="dev.spacy")
    config["training"]["seed"] = task.seed
    train(init_nlp(config), output_path=Path())
    return spacy.load("model-best")


def predict(nlp, sentences):
    docs = nlp.pipe(Doc(nlp.vocab, words=words) for words in sentences)
    return [[f"{t.ent_iob_}-{t.ent_type_}" if t.ent_type_ else "O" for t in doc] for doc in docs]
