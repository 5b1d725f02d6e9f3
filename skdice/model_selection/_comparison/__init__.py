"""Fair comparison of losses."""

from ._compare import compare_losses
from ._loss_comparison import LossComparison, ScoredRun

__all__ = ["LossComparison", "ScoredRun", "compare_losses"]
