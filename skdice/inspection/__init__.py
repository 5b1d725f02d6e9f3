"""Tables and pictures about imbalanced data, losses and training."""

from skdice.inspection._imbalance import imbalance_report

__all__ = ["imbalance_report"]
