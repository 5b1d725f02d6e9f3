"""The Trainer as the guide to token classification has it, by default and as the study trains."""

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
    if task.contender == "trainer_tuned":
        # Counted for trainer_tuned
        model.base_model.embeddings.requires_grad_(False)
        groups = [
            {"params": model.base_model.parameters()},
            {"params": model.classifier.parameters(), "lr": 1e-3},
        ]
        optimizer = torch.optim.AdamW(groups, lr=2e-4, weight_decay=0.01)
        settings = {
            "num_train_epochs": task.epochs,
            "per_device_train_batch_size": 16,
            "warmup_steps": 0.1,
            "train_sampling_strategy": "group_by_length",
        }
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


def predict(trainer, sentences):
    config = trainer.model.config
    unknown = [["O"] * len(words) for words in sentences]
    rows = encode(trainer.processing_class, sentences, unknown, config.label2id)
    # Counted for trainer_tuned
    trainer.args.train_sampling_strategy = "random"  # Else rows come back in another order.
    # Counted
    scores, labels, _ = trainer.predict(rows)
    return [
        [config.id2label[i] for i, label in zip(best, row) if label != -100]
        for best, row in zip(scores.argmax(2), labels)
    ]
