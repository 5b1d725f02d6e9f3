"""What the estimators do with any text, and with what is no text: thousands of cases each.

    python -m benchmarks.any_input --cases 5000

Runs tests/estimators/test_any_input.py and test_bad_input.py on tiny random models, one estimator
after the other. The cases of an estimator are shared out among its properties (predictions,
probabilities, spans, fits, malformed X and y); their tables run besides. Cases are counted from
what hypothesis reports, the ones that it generated but did not run left out; failures are tests
that failed.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

import pandas as pd

from skdice.estimators import __all__ as ESTIMATORS

_TESTS = Path(__file__).parent.parent / "tests" / "estimators"
_RUN = re.compile(r"- (\d+) passing, (\d+) failing, and \d+ invalid")


def run(estimator: str, n_cases: int) -> dict:
    """Run the suite of an estimator in a process of its own and count."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.xml"
        command = [
            *(sys.executable, "-m", "pytest", "-k", estimator),
            *(str(_TESTS / f"test_{kind}_input.py") for kind in ("any", "bad")),
            *("--hypothesis-show-statistics", f"--junitxml={report}", "-p", "no:cacheprovider"),
        ]
        environment = os.environ | {"SKDICE_HYPOTHESIS_EXAMPLES": str(n_cases)}
        result = subprocess.run(command, env=environment, capture_output=True, text=True)
        if result.returncode not in (0, 1):  # Neither all passed nor some failed.
            raise RuntimeError(f"pytest ended with {result.returncode}:\n{result.stdout}")
        suite = ET.parse(report).getroot().find("testsuite")
    if result.returncode:
        print(result.stdout, file=sys.stderr)
    counts = [(int(passed), int(failed)) for passed, failed in _RUN.findall(result.stdout)]
    return {
        "estimator": estimator,
        "properties": len(re.findall(r"^\S+::.*:$", result.stdout, re.MULTILINE)),
        "cases": sum(passed + failed for passed, failed in counts),
        "tests": int(suite.get("tests")),
        "failures": int(suite.get("failures")) + int(suite.get("errors")),
        "seconds": round(float(suite.get("time"))),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=5000, help="of each estimator")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/any_input.csv"))
    parser.add_argument("--estimators", nargs="+", default=ESTIMATORS, choices=ESTIMATORS)
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    for estimator in arguments.estimators:
        rows.append(run(estimator, arguments.cases))
        print(rows[-1], flush=True)
        pd.DataFrame(rows).to_csv(arguments.out, index=False)
    print(pd.DataFrame(rows).to_markdown(index=False))


if __name__ == "__main__":
    main()
