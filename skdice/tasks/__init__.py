"""What is asked of a text: tasks as frozen values; private to the library."""

from ._answering import Answering, align_answers, check_questions
from ._classifying import Classifying, ClassifyingPairs, ClassifyingTexts
from ._goal import F1, Goal, choose_decision, tune_thresholds
from ._querying import Querying, check_queries, default_query
from ._rows import Rows, TeacherLabels, in_columns, read_fit_rows, split_folds, split_rows, take
from ._tagging import BIASES, Tagging, WordTask, warn_of_background
from ._targets import check_entities, check_indicator, check_known_columns, find_overlap
from ._task import (
    CardTexts,
    HeadSpec,
    LabelFacts,
    Logits,
    Task,
    TaskInfo,
    TaskName,
    TeachableTask,
    TrainingSet,
    correct_draw,
    positives_first,
)
