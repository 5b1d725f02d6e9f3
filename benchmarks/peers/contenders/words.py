"""Logistic regression over the words and the character n-grams of texts."""

# Counted
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union


def fit(task):
    features = make_union(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True),
    )
    classifier = LogisticRegression(class_weight="balanced", max_iter=1000)
    return make_pipeline(features, classifier).fit(task.X, task.y)


def predict(classifier, X):
    return classifier.predict(X)
