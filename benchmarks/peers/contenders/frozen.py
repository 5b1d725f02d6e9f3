"""Logistic regression over the embeddings of the encoder as it is."""

# Counted
import numpy as np
from sentence_transformers import SentenceTransformer
from sklearn.linear_model import LogisticRegression


def embed(encoder, X):
    if isinstance(X[0], str):
        return encoder.encode(X)
    u, v = (encoder.encode(texts) for texts in zip(*X))
    return np.hstack([abs(u - v), u * v])


def fit(task):
    encoder = SentenceTransformer(task.encoder)
    classifier = LogisticRegression(C=10, class_weight="balanced", max_iter=1000)
    return encoder, classifier.fit(embed(encoder, task.X), task.y)


def predict(fitted, X):
    encoder, classifier = fitted
    return classifier.predict(embed(encoder, X))
