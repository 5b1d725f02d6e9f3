"""The cosine of character n-grams; as many pairs are matches as in the training rows."""

# Counted
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer


def cosine(vectorizer, pairs):
    a, b = (vectorizer.transform(texts) for texts in zip(*pairs))
    return np.asarray(a.multiply(b).sum(axis=1)).ravel()


def fit(task):
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True)
    vectorizer.fit([text for pair in task.X for text in pair])
    return vectorizer, np.quantile(cosine(vectorizer, task.X), 1 - np.mean(task.y))


def predict(fitted, X):
    vectorizer, threshold = fitted
    return (cosine(vectorizer, X) > threshold).astype(int).tolist()
