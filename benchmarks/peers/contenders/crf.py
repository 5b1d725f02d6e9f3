"""A conditional random field over features of words, as the tutorial of sklearn-crfsuite has it."""

# Counted
from sklearn_crfsuite import CRF


def word_features(words, i):
    features = {"bias": 1.0, "first": i == 0, "last": i == len(words) - 1}
    features |= {"[-3:]": words[i][-3:], "[-2:]": words[i][-2:], "digit": words[i].isdigit()}
    for j in range(max(0, i - 1), min(i + 2, len(words))):
        features[f"{j - i} lower"] = words[j].lower()
        features[f"{j - i} title"] = words[j].istitle()
        features[f"{j - i} upper"] = words[j].isupper()
    return features


def encode(X):
    return [[word_features(words, i) for i in range(len(words))] for words in X]


def fit(task):
    crf = CRF(c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True)
    return crf.fit(encode(task.X), task.y)


def predict(crf, X):
    return crf.predict(encode(X))
