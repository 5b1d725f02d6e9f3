"""AutoGluon's MultiModalPredictor with its presets; it pads to 512 pieces, so time is limited."""

# Counted
import json
import time

import pandas as pd
from autogluon.multimodal import MultiModalPredictor


def to_frame(sentences, tags=None):
    rows = []
    for i, words in enumerate(sentences):
        starts, offset = [], 0
        for word in words:
            starts.append(offset)
            offset += len(word) + 1
        entities = []
        for start, word, tag in zip(starts, words, tags[i] if tags else []):
            end = start + len(word)
            if tag.startswith("I-"):
                entities[-1]["end"] = end
            elif tag != "O":
                entities.append({"entity_group": tag[2:], "start": start, "end": end})
        rows.append({"text": " ".join(words), "entities": json.dumps(entities)})
    return pd.DataFrame(rows)


def fit(task):
    predictor = MultiModalPredictor(problem_type="ner", label="entities", path=f"ag{time.time()}")
    predictor.fit(
        to_frame(task.X, task.y),
        hyperparameters={
            "model.ner_text.checkpoint_name": task.encoder,
            "env.accelerator": "cpu",
            "env.num_workers": 0,
        },
        time_limit=1200,
        seed=task.seed,
    )
    return predictor


def predict(predictor, sentences):
    return predictor.predict(to_frame(sentences).drop(columns="entities"), as_pandas=False)


# Not counted
def to_tags(found, sentences):
    tags = []
    for words, entities in zip(sentences, found):
        row, offset = [], 0
        spans = [(e["start"], e["end"], e["entity_group"]) for e in entities]
        for word in words:
            inside = [s for s in spans if s[0] < offset + len(word) and offset < s[1]]
            tag = "O"
            if inside:
                start, _, label = inside[0]
                tag = f"B-{label}" if start >= offset else f"I-{label}"
            row.append(tag)
            offset += len(word) + 1
        tags.append(row)
    return tags
