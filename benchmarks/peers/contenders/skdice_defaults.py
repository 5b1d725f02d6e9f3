"""DiceTokenTagger with its default settings."""

# User code
from skdice import DiceTokenTagger


def fit(encoder, sentences, tags, epochs, seed):
    tagger = DiceTokenTagger(encoder, random_state=seed)
    return tagger.fit(sentences, tags)


def predict(tagger, sentences):
    return tagger.predict(sentences)


# End of user code

if __name__ == "__main__":
    from _task import run

    run(fit, predict)
