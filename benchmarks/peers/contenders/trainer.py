"""The Trainer as the guide to token classification has it, by default and as the study tuned it.

Tuned, it predicts the best path of tags that the scheme IOB2 allows, as skdice does.
"""

# Counted for trainer_tuned
import numpy as np

# Counted
import torch
from datasets import Dataset
from transformers import (
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)


def encode(tokenizer, sentences, tags, ids):
    # Not counted
    # A word without a piece, as in tweets, would shift the tags of those behind it.
    known = {word: word if tokenizer.tokenize(word) else "." for row in sentences for word in row}
    sentences = [[known[word] for word in row] for row in sentences]
    # Counted
    rows = tokenizer(sentences, is_split_into_words=True, truncation=True)
    rows["labels"] = []
    for i, row in enumerate(tags):
        words = rows.word_ids(i)
        is_first = [
            word is not None and word != before for before, word in zip([None, *words], words)
        ]
        rows["labels"].append(
            [ids[row[word]] if first else -100 for first, word in zip(is_first, words)]
        )
    return Dataset.from_dict(rows)


def fit(task):
    set_seed(task.seed)
    classes = sorted({tag for row in task.y for tag in row})
    ids = {tag: i for i, tag in enumerate(classes)}
    tokenizer = AutoTokenizer.from_pretrained(task.encoder)
    model = AutoModelForTokenClassification.from_pretrained(
        task.encoder, id2label=dict(enumerate(classes)), label2id=ids
    )
    # Not counted
    settings, optimizer = {}, None
    if task.lr:
        # Counted for trainer_tuned
        model.base_model.embeddings.requires_grad_(False)
        groups = [
            {"params": model.base_model.parameters()},
            {"params": model.classifier.parameters(), "lr": 5 * task.lr},
        ]
        optimizer = torch.optim.AdamW(groups, lr=task.lr, weight_decay=0.01)
        settings = {
            "num_train_epochs": task.epochs,
            "per_device_train_batch_size": 16,
            "warmup_steps": 0.1,
            "train_sampling_strategy": "group_by_length",
        }
        # Not counted
        settings |= {"bf16": task.precision == "bf16", "use_cpu": True}
    # Counted
    args = TrainingArguments("trainer", save_strategy="no", seed=task.seed, **settings)
    trainer = Trainer(
        model,
        args,
        DataCollatorForTokenClassification(tokenizer),
        encode(tokenizer, task.X, task.y, ids),
        processing_class=tokenizer,
        optimizers=(optimizer, None),
    )
    trainer.train()
    return trainer


# Counted for trainer_tuned
def best_path(scores, classes):
    is_inside = np.array([tag.startswith("I-") for tag in classes])
    is_new = np.array([[before[2:] != tag[2:] for tag in classes] for before in classes])
    transitions = np.where(is_inside & is_new, -np.inf, 0)
    best, steps = np.where(is_inside, -np.inf, scores[0]), []
    for row in scores[1:]:
        paths = best[:, None] + transitions
        steps.append(paths.argmax(0))
        best = paths.max(0) + row
    path = [best.argmax()]
    for step in reversed(steps):
        path.append(step[path[-1]])
    return [classes[i] for i in reversed(path)]


# Counted
def predict(trainer, sentences):
    config = trainer.model.config
    unknown = [["O"] * len(words) for words in sentences]
    rows = encode(trainer.processing_class, sentences, unknown, config.label2id)
    # Not counted
    is_tuned = trainer.args.train_sampling_strategy == "group_by_length"
    # Counted for trainer_tuned
    trainer.args.train_sampling_strategy = "random"  # Else rows come back in another order.
    # Counted
    scores, labels, _ = trainer.predict(rows)
    of_words = [row[kept != -100] for row, kept in zip(scores, labels)]
    # Not counted
    if is_tuned:
        # Counted for trainer_tuned
        return [best_path(row, list(config.id2label.values())) for row in of_words]
    # Counted for trainer_defaults
    return [[config.id2label[i] for i in row.argmax(1)] for row in of_words]
