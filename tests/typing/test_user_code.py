import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from ..processes import ROOT, run_python

USER_CODE = Path(__file__).with_name("user_code.py")
OPTIONS = {"mypy": [], "pyright": ["--pythonpath", sys.executable]}


@pytest.mark.slow  # `make test` runs mypy on the package and on this code.
@pytest.mark.parametrize("checker", OPTIONS)
def test_code_of_users(checker, tmp_path):
    if find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed")
    text = (ROOT / "README.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    readme = tmp_path / "readme.py"
    readme.write_text("\n".join(blocks), "utf-8")
    run_python("-m", checker, *OPTIONS[checker], USER_CODE, readme)
