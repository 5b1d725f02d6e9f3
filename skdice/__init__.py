"""scikit-learn estimators that fine-tune transformers with F1-oriented losses on imbalanced text."""
