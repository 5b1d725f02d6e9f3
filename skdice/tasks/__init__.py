"""What is asked of a text: tasks as frozen values; private to the library."""

from ._answering import Answering
from ._classifying import Classifying, ClassifyingPairs, ClassifyingTexts
from ._default_queries import check_queries
from ._goal import F1, Goal
from ._querying import Querying
from ._questions import check_questions
from ._rows import Rows, object_array, read_fit_rows, split_rows, take
from ._tagging import Tagging, WordTask
from ._targets import check_known_columns, check_labels, is_indicator
from ._task import CardTexts, Lesson, Logits, Task
