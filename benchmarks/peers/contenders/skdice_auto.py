"""DiceTokenTagger with the loss that it chooses and the settings of the study."""

# User code
from skdice import DiceTokenTagger


def fit(encoder, sentences, tags, epochs, seed):
    tagger = DiceTokenTagger(
        encoder,
        loss="auto",
        lr=2e-4,
        head_lr=1e-3,
        max_epochs=epochs,
        n_frozen_layers=0,
        random_state=seed,
    )
    return tagger.fit(sentences, tags)


def predict(tagger, sentences):
    return tagger.predict(sentences)


# End of user code

if __name__ == "__main__":
    from _task import run

    run(fit, predict)
