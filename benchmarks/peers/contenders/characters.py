"""Logistic regression over what the character n-grams of a pair have in common and what not."""

# Counted
from scipy.sparse import hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression


def compare(vectorizer, pairs):
    a, b = (vectorizer.transform(texts) for texts in zip(*pairs))
    return hstack([abs(a - b), a.multiply(b)])


def fit(task):
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True)
    vectorizer.fit([text for pair in task.X for text in pair])
    classifier = LogisticRegression(class_weight="balanced", max_iter=1000)
    return vectorizer, classifier.fit(compare(vectorizer, task.X), task.y)


def predict(fitted, X):
    vectorizer, classifier = fitted
    return classifier.predict(compare(vectorizer, X))
