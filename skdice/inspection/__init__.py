"""Tables and pictures about imbalanced data, losses and training."""

from ._imbalance import imbalance_report

__all__ = ["imbalance_report"]
