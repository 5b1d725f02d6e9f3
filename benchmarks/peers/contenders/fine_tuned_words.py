"""flair with the encoder, as its tutorial fine-tunes one."""

# Counted
import flair
from flair.data import Corpus, Sentence
from flair.datasets import FlairDatapointDataset
from flair.embeddings import TransformerWordEmbeddings
from flair.models import SequenceTagger
from flair.trainers import ModelTrainer


def sentences_of(X, y):
    sentences = [Sentence(words) for words in X]
    for sentence, tags in zip(sentences, y):
        start = None
        for i, tag in enumerate([*tags, "O"]):
            if start is not None and not tag.startswith("I-"):
                sentence[start:i].add_label("ner", tags[start][2:])
                start = None
            if tag.startswith("B-"):
                start = i
    return sentences


def fit(task):
    flair.set_seed(task.seed)
    rows = FlairDatapointDataset(sentences_of(task.X, task.y))
    corpus = Corpus(train=rows, sample_missing_splits=False)
    tagger = SequenceTagger(
        hidden_size=256,
        embeddings=TransformerWordEmbeddings(task.encoder, fine_tune=True),
        tag_dictionary=corpus.make_label_dictionary("ner", add_unk=False),
        tag_type="ner",
        use_crf=False,
        use_rnn=False,
        reproject_embeddings=False,
    )
    trainer = ModelTrainer(tagger, corpus)
    trainer.fine_tune("flair", learning_rate=5e-5, mini_batch_size=4, max_epochs=10)
    return tagger


def predict(tagger, X):
    sentences = [Sentence(words) for words in X]
    tagger.predict(sentences)
    tags = [["O"] * len(words) for words in X]
    for row, sentence in zip(tags, sentences):
        for span in sentence.get_spans("ner"):
            start, end = span[0].idx - 1, span[-1].idx
            row[start:end] = [f"B-{span.tag}", *[f"I-{span.tag}"] * (end - start - 1)]
    return tags
