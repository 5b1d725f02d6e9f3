"""SpanMarker with the learning rates, epochs and batches that skdice takes."""

# Counted
import torch
from datasets import Dataset
from span_marker import SpanMarkerModel, Trainer
from transformers import TrainingArguments, set_seed


def fit(task):
    set_seed(task.seed)
    classes = sorted({tag for row in task.y for tag in row})
    ids = {tag: i for i, tag in enumerate(classes)}
    rows = Dataset.from_dict(
        {"tokens": task.X, "ner_tags": [[ids[tag] for tag in row] for row in task.y]}
    )
    model = SpanMarkerModel.from_pretrained(
        task.encoder,
        labels=classes,
        model_max_length=128,
        marker_max_length=64,
        entity_max_length=8,
    )
    groups = [
        {"params": model.encoder.parameters()},
        {"params": model.classifier.parameters(), "lr": 1e-3},
    ]
    optimizer = torch.optim.AdamW(groups, lr=2e-4, weight_decay=0.01)
    args = TrainingArguments(
        "span_marker",
        num_train_epochs=13,
        per_device_train_batch_size=16,
        warmup_ratio=0.1,
        save_strategy="no",
        seed=task.seed,
    )
    trainer = Trainer(model, args, train_dataset=rows, optimizers=(optimizer, None))
    trainer.train()
    return model


def predict(model, sentences):
    return model.predict(sentences)


# Not counted
def to_tags(entities, sentences):
    tags = [["O"] * len(words) for words in sentences]
    for row, found in zip(tags, entities):
        for entity in found:
            start, end = entity["word_start_index"], entity["word_end_index"]
            row[start:end] = [f"B-{entity['label']}", *[f"I-{entity['label']}"] * (end - start - 1)]
    return tags
