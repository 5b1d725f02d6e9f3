"""SetFit as its readme has it; it takes no pairs, so these are joined."""

# Counted
from datasets import Dataset
from setfit import SetFitModel, Trainer, TrainingArguments


def join(X):
    return [text if isinstance(text, str) else " [SEP] ".join(text) for text in X]


def fit(task):
    model = SetFitModel.from_pretrained(task.encoder)
    args = TrainingArguments(
        batch_size=16, num_epochs=1, num_iterations=20, save_strategy="no", seed=task.seed
    )
    rows = Dataset.from_dict({"text": join(task.X), "label": task.y})
    Trainer(model, args, train_dataset=rows).train()
    return model


def predict(model, X):
    return model.predict(join(X), as_numpy=True)
