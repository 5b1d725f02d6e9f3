"""The study: what is drawn, chosen on dev rows, run, gone on with, and shown."""

import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from optuna.trial import FixedTrial

from benchmarks.study import recipe, runs, schedule
from benchmarks.study.corpora import CORPORA, Part, draw, read_corpus, rows_with_ratio
from benchmarks.study.losses import BASELINE, CONTENDERS, FITS, Contender, resample
from benchmarks.study.plan import Cell, Choice, Study, Task, planned_cells
from benchmarks.study.report import report
from benchmarks.study.runs import Run
from benchmarks.study.scores import CellScores
from skdice import DicePairClassifier

from ..corpora import easy_pairs

CELL = Cell("250", "CoNLL03")
QUESTIONS = Cell("250", "SQuAD 1.1")


@pytest.fixture
def make_study(tmp_path):
    results = {}

    def make(contenders, cells=(CELL,), seeds=(0, 1), n_settings=4):
        return Study(cells, contenders, seeds, n_settings, tmp_path / "data", results)

    return make


def write_tuning(study, fit, dev_scores, cell=CELL):
    """Finish the tuning runs of a way to train, one after the other."""
    for number, (own, tuned) in enumerate(dev_scores):
        run = study.resolve(Task(cell, Contender(fit), number, 100))
        study.results[run] = {"dev": {"own": own, "tuned": tuned}}


def write_final(study, name, seed, counts, tuned_counts=None, cell=CELL):
    """Finish a test run: correct, predicted and actual entities of each row."""
    run = study.resolve(Task(cell, CONTENDERS[name], None, seed))
    test = {"own": counts, "tuned": tuned_counts or counts}
    study.results[run] = {"failed": None, "test": test}


class TestDrawing:
    def test_test_rows_are_the_same_for_all_seeds_and_no_others_are(self, data):
        first, second = (draw("CoNLL03", "smoke", seed, data) for seed in (0, 1))
        assert first.test == second.test
        assert first.train != second.train
        assert first.dev != second.dev
        assert [len(part.y) for part in first] == [20, 40, 40]

    @pytest.mark.parametrize("ratio", [5, 20, 80])
    def test_ratio_is_met_by_leaving_positives_out(self, ratio):
        rng = np.random.default_rng(0)
        positives = rng.integers(0, 4, size=4000) * (rng.random(4000) < 0.7)
        negatives = rng.integers(1, 20, size=4000)
        rows = rows_with_ratio(positives, negatives, rng.permutation(4000), 1000, ratio)
        assert len(set(rows.tolist())) == 1000
        assert negatives[rows].sum() / positives[rows].sum() == pytest.approx(ratio, rel=0.05)

    def test_sentences_with_entities_are_repeated_once(self, data):
        train = read_corpus("CoNLL03", data).train
        train.y[0] = ["O"] * len(train.y[0])
        drawn = resample(train, "entities", 0)
        assert len(drawn.y) == 2 * len(train.y) - 1
        assert sum(words == train.X[1] for words in drawn.X) == 2 * train.X.count(train.X[1])

    def test_rare_class_is_drawn_until_it_is_as_frequent(self, data):
        train = read_corpus("CoNLL03", data).train
        train = train._replace(y=[i % 9 == 0 for i in range(len(train.y))])
        drawn = resample(train, "pairs", 0)
        assert sum(drawn.y) == len(drawn.y) / 2
        assert set(map(tuple, drawn.X)) == set(map(tuple, train.X))


class TestChoosing:
    def test_best_dev_score_decides(self, make_study):
        study = make_study(["dice", "dice, tuned"])
        write_tuning(study, "dice", [(0.5, 0.4), (0.6, 0.4), (0.4, 0.4), (0.3, 0.7)])
        own = study.best(CELL, CONTENDERS["dice"])
        assert (own.setting.lr, own.setting.parameters, own.decision) == (4e-4, {}, "own")
        # The loss's own parameter is tried with the rate that was best before.
        tuned = study.best(CELL, CONTENDERS["dice, tuned"])
        assert (tuned.setting.lr, tuned.decision) == (4e-4, "tuned")
        assert tuned.setting.parameters == FITS["dice"].alternatives[0]

    def test_of_equals_the_first_is_taken(self, make_study):
        study = make_study(["ce"])
        write_tuning(study, "ce", [(0.5, 0.5)] * 4)
        best = study.best(CELL, CONTENDERS[BASELINE])
        assert best == Choice(study.settings_of(CELL, "ce")[0], "own")

    def test_nothing_is_chosen_before_all_settings_are_tried(self, make_study):
        study = make_study(["dice"])
        write_tuning(study, "dice", [(0.5, 0.5)] * 3)
        assert study.best(CELL, CONTENDERS["dice"]) is None
        assert study.resolve(Task(CELL, CONTENDERS["dice"], None, 0)) is None
        assert study.resolve(Task(CELL, CONTENDERS["dice"], 3, 100)).lr == 2e-4

    def test_fit_that_stopped_has_lost(self, make_study):
        study = make_study(["ce"], n_settings=2)
        stopped = study.resolve(Task(CELL, Contender("ce"), 0, 100))
        study.results[stopped] = {"failed": "The loss is not finite"}
        second = study.resolve(Task(CELL, Contender("ce"), 1, 100))
        study.results[second] = {"dev": {"own": 0.1, "tuned": 0.1}}
        assert study.best(CELL, CONTENDERS["ce"]).setting.lr == 4e-4

    def test_every_fit_has_as_many_settings_as_the_baseline(self, make_study, data):
        for n in range(1, 6):
            study = make_study(list(CONTENDERS), cells=[CELL, QUESTIONS], n_settings=n)
            for cell in study.cells:
                budget = len(study.settings_of(cell, "ce"))
                fits = {contender.fit for contender in study.contenders_of(cell).values()}
                assert {len(study.settings_of(cell, fit)) for fit in fits} == {budget}

    def test_decision_is_left_out_where_there_is_none(self, make_study):
        study = make_study(["dice", "dice, tuned", "ce, resampled"], cells=[QUESTIONS])
        assert list(study.contenders_of(QUESTIONS)) == [BASELINE, "dice"]

    def test_preset_is_run_as_a_user_calls_it(self, make_study):
        study = make_study(["recommended"], cells=[CELL])
        assert FITS[study.contenders_of(CELL)["recommended"].fit].parameters == {
            "loss": "recommended"
        }

    def test_ratios_are_planned_for_some_corpora(self):
        cells = planned_cells(["250", "ratio-80"], ["CoNLL03", "SMS"])
        assert cells == [CELL, Cell("250", "SMS"), Cell("ratio-80", "CoNLL03")]


class TestCarryingOut:
    @pytest.fixture
    def carry_out(self, monkeypatch, tmp_path):
        """Carry a study out without training; return what was run."""

        def carry_out(study, **options):
            started = []
            out = tmp_path / "results" / "study.jsonl"

            def execute(run, data):
                if run.fit in options.get("broken", ()):
                    raise RuntimeError("out of memory")
                started.append(run)
                assert run not in runs.read(out)
                result = {"failed": None, "dev": {"own": 0.5, "tuned": 0.5}, "fit_seconds": 9}
                return run._asdict() | result

            monkeypatch.setattr(schedule, "ProcessPoolExecutor", ThreadPoolExecutor)
            monkeypatch.setattr(schedule, "execute", execute)
            monkeypatch.setattr(study, "_rate", lambda corpus: 1000.0)
            n_errors = schedule.carry_out(study, out, 1, options.get("budget_minutes"))
            assert runs.read(out) == study.results
            return started, n_errors

        return carry_out

    def test_settings_first_then_each_seed(self, make_study, carry_out):
        started, n_errors = carry_out(make_study(["dice"]))
        assert n_errors == 0
        assert [run.stage for run in started] == ["tune"] * 8 + ["final"] * 4
        assert [run.seed for run in started] == [100] * 8 + [0, 0, 1, 1]

    def test_contenders_share_a_fit(self, make_study, carry_out):
        alone, _ = carry_out(make_study(["ce"]))
        assert len(alone) == 4 + 2

    def test_goes_on_where_it_was(self, make_study, carry_out):
        first, _ = carry_out(make_study(["dice"], seeds=[0]))
        second, _ = carry_out(make_study(["dice"], seeds=[0, 1]))
        assert len(first) == 10
        assert [(run.stage, run.seed) for run in second] == [("final", 1)] * 2
        assert carry_out(make_study(["dice"], seeds=[0, 1])) == ([], 0)

    def test_error_leaves_the_rest_running_and_the_run_open(self, make_study, carry_out, capsys):
        started, n_errors = carry_out(make_study(["dice"]), broken=["dice"])
        assert {run.fit for run in started} == {"ce"}
        # The fourth setting waits for the best rate of the others.
        assert n_errors == 3
        assert "out of memory" in capsys.readouterr().out
        started, n_errors = carry_out(make_study(["dice"]))
        assert (len(started), n_errors) == (6, 0)

    def test_no_run_starts_that_ends_after_the_time(self, make_study, carry_out):
        assert carry_out(make_study(["dice"]), budget_minutes=0.1) == ([], 0)

    def test_plan_counts_what_is_left(self, make_study, carry_out):
        study = make_study(["dice"], seeds=[0])
        before = study.table(jobs=2).loc["total"]
        assert before[["tuning runs", "final runs", "done"]].tolist() == [8, 2, 0]
        carry_out(study)
        after = make_study(["dice"], seeds=[0]).table(jobs=2).loc["total"]
        assert after[["tuning runs", "final runs", "done"]].tolist() == [8, 2, 10]
        assert after["core-hours left"] == 0

    def test_time_is_estimated_from_runs_that_were_timed(self, make_study, data):
        """Dev scores that were restored from a table have no times."""
        task = Task(CELL, CONTENDERS["ce"], 1, 100)
        unknown = make_study(["ce"]).seconds(task)
        write_tuning(make_study(["ce"]), "ce", [(0.5, 0.5)])
        assert make_study(["ce"]).seconds(task) == unknown
        run = make_study(["ce"]).resolve(task)
        timed = {"n_train": 5000, "epochs": 10, "fit_seconds": 1e5}
        make_study(["ce"]).results[run] = timed
        assert make_study(["ce"]).seconds(task) > 10 * unknown


class TestScores:
    # Correct, predicted and actual entities of two sentences: F1 100 %, 50 %.
    ALL, HALF = [[1, 1, 1], [1, 1, 1]], [[1, 1, 1], [0, 1, 1]]

    @pytest.fixture
    def study(self, make_study):
        study = make_study(["dice"])
        for fit in ("ce", "dice"):
            write_tuning(study, fit, [(0.5, 0.5)] * 4)
        return study

    def test_difference_is_over_the_seeds_that_both_have(self, study):
        write_final(study, BASELINE, 0, self.HALF)
        write_final(study, "dice", 0, self.ALL)
        write_final(study, "dice", 1, self.HALF)
        scores = CellScores(study, CELL)
        assert scores.percent("dice", "f1").tolist() == [100, 50]
        difference = scores.difference("dice")
        assert (difference.mean, difference.per_seed) == (50, (50,))
        low, high = difference.interval
        assert low == 0
        assert high == 100

    def test_no_difference_without_the_baseline(self, study):
        write_final(study, "dice", 0, self.ALL)
        assert CellScores(study, CELL).difference("dice") is None

    def test_interval_covers_the_seeds(self, study):
        for seed, (ours, theirs) in enumerate([(self.ALL, self.ALL), ([[1, 2, 1]] * 2, self.ALL)]):
            write_final(study, "dice", seed, ours)
            write_final(study, BASELINE, seed, theirs)
        difference = CellScores(study, CELL).difference("dice")
        assert difference.mean == pytest.approx(-100 / 6)
        assert difference.interval == pytest.approx((-100 / 3, 0))

    def test_decision_that_was_chosen_is_the_one_scored(self, make_study):
        study = make_study(["ce"])
        write_tuning(study, "ce", [(0.5, 0.6)] * 4)
        write_final(study, BASELINE, 0, self.HALF, self.ALL)
        scores = CellScores(study, CELL)
        assert scores.percent("ce", "f1").tolist() == [50]
        assert scores.percent(BASELINE, "f1").tolist() == [100]
        assert scores.difference("ce").mean == -50

    def test_report_says_what_is_missing_and_what_stopped(self, study):
        write_final(study, BASELINE, 0, self.HALF)
        stopped = study.resolve(Task(CELL, CONTENDERS["dice"], None, 0))
        study.results[stopped] = {"failed": "The loss is not finite"}
        lines = report(study).splitlines()
        dice = next(line for line in lines if line.startswith("| dice"))
        assert "missing" in dice
        assert "0, 1 not finite" in dice

    def test_report_of_ratios(self, make_study):
        cell = Cell("ratio-80", "CoNLL03")
        study = make_study(["dice"], cells=[cell])
        for fit, name, counts in [("ce", BASELINE, self.HALF), ("dice", "dice", self.ALL)]:
            write_tuning(study, fit, [(0.5, 0.5)] * 4, cell)
            for seed in (0, 1):
                write_final(study, name, seed, counts, cell=cell)
        table = report(study).split("## Effect of the imbalance ratio")[1]
        assert "80 negatives to a positive" in table
        assert "100.0 ± 0.0, +50.0 [+0.0, +100.0]" in table


class TestRuns:
    @pytest.fixture(autouse=True)
    def small(self, monkeypatch, tiny_bert):
        monkeypatch.setattr(runs, "get_model_path", lambda: tiny_bert)

    @pytest.mark.parametrize("fit", ["ce", "ce-resampled", "dice-annealed", "tversky-ce-K"])
    def test_run_and_its_line(self, fit, data, tmp_path):
        final = Run("final", "smoke", "CoNLL03", fit, 1e-3, (), 0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            result = runs.execute(final, data)
        runs.append(result, tmp_path / "study.jsonl")
        assert runs.read(tmp_path / "study.jsonl") == {final: result}
        assert result["failed"] is None
        truth = draw("CoNLL03", "smoke", 0, data).test.y
        for counts in result["test"].values():
            assert len(counts) == len(truth)
            assert np.array(counts)[:, -1].sum() == sum(
                tag != "O" for tags in truth for tag in tags
            )

    def test_dev_scores_of_both_decisions(self, data):
        run = Run("tune", "smoke", "CoNLL03", "dice", 1e-3, (("gamma", 0.1),), 100)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            result = runs.execute(run, data)
        assert set(result["dev"]) == {"own", "tuned"}
        assert "test" not in result

    def test_pairs(self, tiny_bert):
        X, y = easy_pairs(16)
        classifier = DicePairClassifier(tiny_bert, max_epochs=2, random_state=0, verbose=0)
        part, corpus = Part(X, y), CORPORA["Amazon-Google"]
        classifier.fit(X, y)
        counts = np.array(runs.score_test(classifier, corpus, part, part)["own"])
        assert counts.shape == (16, 3)
        assert counts.sum(0)[-1] == sum(y)
        dev = runs.score_dev(classifier, corpus, part)
        assert dev["own"] == pytest.approx(classifier.score(X, y))


class TestFinishedRuns:
    """Of the runs in the repository STUDY.md shows these figures."""

    def test_report(self, tmp_path):
        cells = planned_cells(["250", "ratio-5"], ["CoNLL03"])
        study = Study(cells, ["dice", "wce"], range(5), 4, tmp_path, runs.read(runs.FINISHED))
        lines = report(study).splitlines()
        assert any("74.6 ± 1.6 | +0.8 [-0.5, +2.1] | 75.6 ± 2.0" in line for line in lines)
        assert any("| wce" in line and "82.7 ± 0.6, -0.7 [-2.1, +0.6]" in line for line in lines)


class TestRecipe:
    @pytest.fixture(autouse=True)
    def small(self, monkeypatch, tiny_bert):
        monkeypatch.setattr(recipe, "get_model_path", lambda: tiny_bert)
        monkeypatch.setattr(recipe, "CORPORA", ("CoNLL03",))
        monkeypatch.setattr(recipe, "REGIME", "smoke")

    def test_folds_are_draws(self, data):
        X, y, folds = recipe.make_folds(data)
        assert [(len(train), len(dev)) for train, dev in folds] == [(20, 40), (20, 40)]
        rows = np.concatenate([np.concatenate(fold) for fold in folds])
        assert rows.tolist() == list(range(len(X))) == list(range(len(y)))

    @pytest.mark.parametrize("kind", ["ce", "dice", "tversky", "dsc"])
    def test_suggestion_is_a_loss_with_what_was_drawn(self, kind):
        drawn = {"kind": kind, "weights": "log", "lr": 2e-4, "gamma": 10.0}
        drawn |= {"average": "macro", "background": None, "ohem_ratio": 3.0, "ce_weight": 0.3}
        drawn |= {"beta": 0.8, "alpha": 0.1, "detach_weight": True}
        suggested = recipe.suggest_recipe(FixedTrial(drawn))
        assert (suggested["lr"], suggested["class_weight"]) == (2e-4, "log")
        parameters = suggested["loss"].get_params()
        shared = ["gamma", "average", "background", "ohem_ratio", "ce_weight"]
        own = {"ce": [], "tversky": ["beta", *shared], "dsc": ["alpha", *shared]}
        assert {name: parameters[name] for name in own.get(kind, shared)} == {
            name: drawn[name] for name in own.get(kind, shared)
        }

    def test_search_goes_on_with_its_journal(self, data, tmp_path, monkeypatch, capsys):
        for n_trials in (1, 2):
            arguments = f"recipe --data {data} --out {tmp_path}/journal --trials {n_trials}"
            monkeypatch.setattr(sys, "argv", [*arguments.split(), "--jobs", "1"])
            recipe.main()
            assert capsys.readouterr().out.count("weights") == n_trials
