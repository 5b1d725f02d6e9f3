"""What is asked of a text: tasks as frozen values; private to the library."""

from ._answering import Answering, align_answers, check_questions
from ._classifying import Classifying, ClassifyingPairs, ClassifyingTexts
from ._decisions import Decision
from ._goal import Goal, choose_decision
from ._querying import Querying, check_queries, default_query
from ._rows import Rows, TeacherLabels, in_columns, read_fit_rows, split_folds, split_rows
from ._tagging import BIASES, Tagging, WordTask, warn_of_background
from ._targets import check_indicator, check_known_columns
from ._task import LabelFacts, Network, Task, TaskName, TeachableTask, TrainingSet
