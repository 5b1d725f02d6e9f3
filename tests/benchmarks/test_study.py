"""The study: what is drawn, planned, chosen on dev rows, run, gone on with, and shown."""

from concurrent.futures import Future

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.study import __main__ as study
from benchmarks.study import plan, runs
from benchmarks.study.corpora import (
    CORPORA,
    N_TEST,
    Part,
    Regime,
    count_positives,
    draw,
    rarity_weights,
    read_corpus,
    rows_with_ratio,
)
from benchmarks.study.report import differences, forest_plot, interval, mean_interval, report
from benchmarks.study.runs import (
    CONTENDERS,
    Run,
    execute,
    remember_logits,
    repeat_positives,
    score,
)
from skdice import DicePairClassifier, DiceTokenTagger
from skdice.metrics import tag_f1_score
from skdice.model_selection import tune_decision

from ..corpora import easy_corpus, easy_pairs

COLUMNS = [*Run._fields, "own", "tuned"]


def table(*rows):
    return pd.DataFrame(rows, columns=COLUMNS)


def tuned_on(corpus, loss, draw, scores):
    return [
        (corpus, "250", loss, lr, epochs, draw, 0, score, score)
        for (lr, epochs), score in zip(plan.SETTINGS, scores)
    ]


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

    @pytest.mark.parametrize("ratio", [2, 5, 80])
    def test_weights_make_positives_as_rare(self, ratio):
        y = [tags if i % 3 else ["O"] * len(tags) for i, tags in enumerate(easy_corpus(60)[1])]
        weights = rarity_weights(CORPORA["CoNLL03"], y, ratio)
        positives, negatives = count_positives(CORPORA["CoNLL03"], y)
        assert weights @ negatives / (weights @ positives) == pytest.approx(
            max(ratio, negatives.sum() / positives.sum())
        )
        assert set(weights[positives == 0]) == {1.0}

    def test_sentences_with_entities_are_repeated_once(self):
        X, y = easy_corpus(30)
        y[0] = ["O"] * len(y[0])
        repeated = repeat_positives(Part(X, y))
        assert len(repeated.y) == 59
        assert sum(words == X[1] for words in repeated.X) == 2 * X.count(X[1])


class TestPlan:
    def test_all_settings_on_one_draw_and_the_best_on_the_others(self):
        assert {run.draw for run in plan.tuning(table())} == {plan.TUNING_DRAWS[0]}
        done = table(*tuned_on("CoNLL03", "ce", 300, [1, 6, 2, 5, 3, 4]))
        more = [run for run in plan.tuning(done) if run.draw != 300]
        assert {(run.corpus, run.contender) for run in more} == {("CoNLL03", "ce")}
        best = [plan.SETTINGS[i] for i in (1, 3)]
        assert [(run.lr, run.epochs) for run in more] == [*best, *best]

    def test_the_best_mean_is_chosen_when_all_draws_are_done(self):
        rows = tuned_on("CoNLL03", "ce", 300, [1, 6, 2, 5, 3, 4])
        assert plan.best_setting(table(*rows), "CoNLL03", "ce") is None
        for number in (301, 302):
            rows += [
                row for row in tuned_on("CoNLL03", "ce", number, [0, 1, 0, 9, 0, 2]) if row[-1]
            ]
        assert plan.best_setting(table(*rows), "CoNLL03", "ce") == plan.SETTINGS[3]

    def test_nothing_is_run_with_a_setting_that_is_not_chosen_yet(self):
        runs_of_a = plan.few_rows(table())
        assert all(CONTENDERS[run.contender].as_called for run in runs_of_a)
        assert runs_of_a

    def test_draws_that_choose_are_not_those_of_the_tables(self):
        for name, part in plan.PARTS.items():
            is_final = {run.draw >= runs.FIRST_FINAL_DRAW for run in part(table())}
            assert is_final <= {name != "tuning"}

    def test_all_contenders_of_the_plan_exist(self):
        for part in plan.PARTS.values():
            assert {run.contender for run in part(table())} <= set(CONTENDERS)


class TestCarryingOut:
    @pytest.fixture
    def carry_out(self, monkeypatch, tmp_path):
        """Run a part of four runs, of which the last is known when the others are done."""
        order = []

        def part(done):
            known = [Run("CoNLL03", "250", "ce", 1e-4, 12, draw, 0) for draw in (1, 2, 3)]
            last = Run("CoNLL03", "250", "wce", 1e-4, 12, 4, 0)
            return [*known, last] if len(done) >= 3 else known

        class Pool:
            def __init__(self, jobs):
                pass

            def __enter__(self):
                return self

            def __exit__(self, *args):
                pass

            def submit(self, function, run, data, precision):
                order.append(run)
                done = Future()
                done.set_result(run._asdict() | {"own": 1.0, "tuned": 2.0, "precision": precision})
                return done

        monkeypatch.setattr(study, "PARTS", {"A": part})
        monkeypatch.setattr(study, "ProcessPoolExecutor", Pool)

        def carry_out(minutes=60.0):
            del order[:]
            study.carry_out(["A"], tmp_path, tmp_path / "scores.csv", 2, minutes)
            return order

        return carry_out

    def test_what_depends_on_others_comes_after_them(self, carry_out, tmp_path):
        assert [run.draw for run in carry_out()] == [1, 2, 3, 4]
        assert len(study.read(tmp_path / "scores.csv")) == 4

    def test_goes_on_where_it_was(self, carry_out, tmp_path):
        carry_out()
        file = tmp_path / "scores.csv"
        study.read(file).iloc[[0, 2, 3]].to_csv(file, index=False)
        assert [run.draw for run in carry_out()] == [2]
        assert carry_out() == []

    def test_a_file_has_one_precision(self, carry_out, tmp_path, monkeypatch):
        monkeypatch.setattr(study, "resolve_precision", lambda *args: "bf16")
        carry_out()
        file = tmp_path / "scores.csv"
        study.read(file).head(1).to_csv(file, index=False)
        monkeypatch.setattr(study, "resolve_precision", lambda *args: "fp32")
        carry_out()
        assert study.read(file)["precision"].tolist() == ["bf16"] * 4

    def test_no_run_starts_after_the_time(self, carry_out):
        assert carry_out(minutes=-1.0) == []


class TestReport:
    def test_intervals_are_those_of_scipy(self):
        values = np.array([1.0, 2.5, 0.5, 3.0])
        expected = stats.ttest_1samp(values, 0).confidence_interval()
        assert interval(values) == pytest.approx(tuple(expected))
        assert mean_interval([values]) == pytest.approx((values.mean(), *expected))
        # Of two groups as spread as each other, the mean is surer by the root of two.
        mean, low, high = mean_interval([values, values + 1])
        assert mean == pytest.approx(values.mean() + 0.5)
        degrees = 2 * (len(values) - 1)
        half = stats.sem(values) / np.sqrt(2) * stats.t.ppf(0.975, degrees)
        assert (mean - low, high - mean) == pytest.approx((half, half))

    def test_differences_are_between_the_same_draws(self):
        rows = [
            ("CoNLL03", "250", "ce", 2e-4, 12, draw, draw, score, score + 1)
            for draw, score in [(400, 70.0), (401, 72.0), (402, 60.0)]
        ]
        rows += [
            ("CoNLL03", "250", "wce", 2e-4, 12, draw, draw, score, score)
            for draw, score in [(400, 71.0), (401, 74.0), (403, 90.0)]
        ]
        rows.append(("CoNLL03", "250", "wce", 2e-4, 12, 300, 0, 0.0, 0.0))
        found = differences(table(*rows)).set_index(["contender", "decision"])
        assert found.loc[("wce", "own"), "differences"].tolist() == [1.0, 2.0]
        assert found.loc[("wce", "tuned"), "differences"].tolist() == [0.0, 1.0]
        assert found.loc[("wce", "own"), "scores"].tolist() == [71.0, 74.0, 90.0]
        assert "+1.5 [-4.9, +7.9]" in report(table(*rows))

    def test_rare_test_rows_and_longer_fits_have_rows_of_their_own(self, tmp_path):
        rows = pd.DataFrame(
            [
                Run("CoNLL03", "ratio-80", name, 2e-4, epochs, draw, draw)._asdict()
                | {"own": own, "tuned": own + 1, "own, as rare": own + 2}
                for draw in (400, 401, 402)
                for name, epochs, own in [("ce", 4, 0.0), ("ce", 12, 9.0), ("wce", 4, 3.0)]
            ]
        )
        longer = Run("CoNLL03", "ratio-80", "wce", 2e-4, 12, 400, 400)._asdict()
        longer |= {"own": 5.0, "tuned": 6.0, "own, as rare": 7.0}
        rows = pd.concat([rows, pd.DataFrame([longer])], ignore_index=True)
        found = differences(rows).set_index(["contender", "decision", "test"]).sort_index()
        scores = found["scores"].map(np.unique)
        assert scores["ce", "own", "natural"] == [0.0]
        assert scores["ce, 12 epochs", "own", "natural"] == [9.0]
        assert scores["wce, 12 epochs", "own", "natural"] == [5.0]
        assert scores["wce", "tuned", "natural"] == [4.0]
        assert scores["wce", "own", "as rare"] == [5.0]
        assert ("wce", "tuned", "as rare") not in scores
        # To the better control.
        apart = found.loc["wce", "differences"].map(np.unique)
        assert apart["own", "natural"] == apart["tuned", "natural"] == [-6.0]
        assert apart["own", "as rare"] == [-6.0]
        assert apart["crossed", "natural"] == [-7.0]
        text = report(rows)
        assert "test rows as rare" in text
        assert "0.0 (3 found nothing)" in text
        # Of wce and of the other control: three with the usual test rows, one as rare. Of the best
        # control: what its decision gains.
        assert text.splitlines()[-1].startswith("9 differences to tuned cross-entropy")
        forest_plot(rows, tmp_path / "differences.png")
        assert (tmp_path / "differences.png").stat().st_size > 1000

    def test_mean_over_corpora(self):
        rows = [
            (corpus, "250", name, 2e-4, 12, draw, draw, 70.0 + gain, 70.0)
            for corpus in plan.ENTITIES
            for draw in (400, 401, 402)
            for name, gain in [("ce", 0.0), ("wce", draw - 400.0)]
        ]
        # Each corpus has 1.0 with an error of 1 / sqrt(3); the mean of three a third of its square.
        half = 1 / 3 * stats.t.ppf(0.975, 6)
        assert (
            f"+1.0 [{1 - half:+.1f}, {1 + half:+.1f}]" in report(table(*rows)).split("mean of 3")[1]
        )

    def test_presets_are_compared_with_cross_entropy_as_called_too(self):
        rows = [
            (corpus, "250", name, 0.0, 0, draw, draw, score, score)
            for corpus in plan.ENTITIES
            for draw in (400, 401)
            for name, score in [("ce", 70.0), ("ce, as called", 68.0), ("recommended", 71.0)]
        ]
        text = report(table(*rows))
        first, second = text.split("To cross-entropy as called")
        assert "+1.0 [+1.0, +1.0]" in first.split("mean of 3")[1]
        assert "+3.0 [+3.0, +3.0]" in second
        assert "+1.0" not in second

    def test_crf_is_compared_with_none(self):
        rows = [
            (corpus, "250", name, 0.0, 0, draw, draw, score + draw, score)
            for corpus in (*plan.ENTITIES, "WikiGold")
            for draw in (400, 401)
            for name, score in [("recommended", 70.0), ("recommended, crf", 72.0)]
        ]
        text = report(table(*rows)).split('"recommended" with `crf` to without')[1]
        assert "mean of 3" in text
        assert "mean of 4" in text
        assert text.count("+2.0 [+2.0, +2.0]") == 2 * (4 + 2)

    def test_each_corpus_gets_what_the_others_choose(self):
        # By corpus; WCE is best on average, but not over the three others of WikiGold.
        gains = {"CoNLL03": (1.0, 2.0), "NCBI-disease": (1.0, 2.0), "BC5CDR": (1.0, -2.0)}
        gains["WikiGold"] = (-0.5, 4.0)
        rows = [
            (corpus, "250", name, 2e-4, 12, draw, draw, 70.0, 70.0 + gain)
            for corpus, (dice, wce) in gains.items()
            for draw in (400, 401)
            for name, gain in [("ce", 0.0), ("dice", dice), ("wce", wce)]
        ]
        text = report(table(*rows)).split("Chosen by the other corpora")[1]
        for corpus, chosen in [("BC5CDR", "wce"), ("CoNLL03", "wce"), ("WikiGold", "dice")]:
            gain = gains[corpus][("dice", "wce").index(chosen)]
            row = next(line for line in text.splitlines() if corpus in line)
            assert chosen in row
            assert f"{gain:+.1f} [{gain:+.1f}, {gain:+.1f}]" in row

    def test_chosen_setting_is_bold(self):
        rows = tuned_on("CoNLL03", "ce", 300, [1, 6, 2, 5, 3, 4])
        assert "**" not in report(table(*rows))
        for number in (301, 302):
            rows += [
                row for row in tuned_on("CoNLL03", "ce", number, [0, 1, 0, 9, 0, 0]) if row[-1]
            ]
        first = next(line for line in report(table(*rows)).splitlines() if "CoNLL03" in line)
        cells = [cell.strip() for cell in first.split("|")[3:-1]]
        assert cells == ["1.0 (1)", "2.7 (3)", "2.0 (1)", "**7.7 (3)**", "3.0 (1)", "4.0 (1)"]

    def test_nothing_run_yet(self):
        assert report(table()).splitlines()[-1].startswith("0 differences to tuned")


class TestRuns:
    @pytest.fixture(autouse=True)
    def tiny(self, monkeypatch, quick_bert):
        monkeypatch.setattr(runs, "get_model_path", lambda: str(quick_bert))

    @pytest.mark.parametrize(
        ("number", "scored"), [(300, "dev"), (400, "test")], ids=["tuning", "final"]
    )
    def test_rows_that_decide_are_not_scored(self, data, monkeypatch, number, scored):
        monkeypatch.setattr(runs, "N_DECISION", 10)
        decided, seen = [], []
        monkeypatch.setattr(
            runs, "tune_decision", lambda fitted, X, y, metric: decided.extend(X) or fitted
        )
        monkeypatch.setattr(
            runs, "score", lambda estimator, corpus, part: seen.append(part.X) or 50.0
        )
        row = execute(Run("CoNLL03", "smoke", "ce", 2e-3, 1, number, 0), data, "fp32")
        assert (row["draw"], row["n_train"], row["own"], row["tuned"]) == (number, 20, 50, 50)
        parts = draw("CoNLL03", "smoke", number, data)
        assert len(decided) == 10
        assert all(words in parts.dev.X for words in decided)
        assert seen[0] == seen[1]
        if scored == "test":
            assert seen[0] == parts.test.X
        else:
            assert sorted(decided + seen[0]) == sorted(parts.dev.X)

    def test_rare_positives_are_scored_on_all_test_rows_as_well_weighted(self, data, monkeypatch):
        monkeypatch.setitem(runs.REGIMES, "smoke", Regime(40, 1, ratio=20))
        monkeypatch.setitem(N_TEST, "entities", 10)
        weights = []

        def score(estimator, corpus, part, weight=None):
            weights.append(weight)
            return float(len(part.y))

        monkeypatch.setattr(runs, "score", score)
        monkeypatch.setattr(runs, "tune_decision", lambda fitted, X, y, metric: fitted)
        row = execute(Run("CoNLL03", "smoke", "ce", 2e-3, 1, 400, 0), data, "fp32")
        n_test = len(read_corpus("CoNLL03", data).test.y)
        assert row["own"] == row["own, as rare"] == row["tuned"] == n_test > 10
        assert [weight is None for weight in weights] == [True, False, True]

    def test_the_preset_is_run_as_a_user_calls_it(self, tiny_bert):
        estimator = runs.make_estimator(
            Run("CoNLL03", "250", "recommended", 0.0, 0, 400, 3), str(tiny_bert), "fp32"
        )
        changed = {"loss": "recommended", "precision": "fp32", "random_state": 3, "verbose": 0}
        assert estimator.get_params() == type(estimator)(str(tiny_bert), **changed).get_params()

    def test_scores_of_weighted_rows_and_of_tags(self, tiny_bert):
        tagger = DiceTokenTagger(str(tiny_bert), max_epochs=1, verbose=0)
        part = Part(*easy_corpus(20))
        tagger.fit(*part)
        tags = [list(row) for row in part.y]
        tags[0] = ["O"] * len(tags[0])
        tagger.predict = lambda X: tags
        weight = np.r_[3.0, np.ones(19)]
        n = np.array([sum(tag != "O" for tag in row) for row in part.y])
        for given, missed in [(None, n[0]), (weight, 3 * n[0])]:
            found = n[1:].sum()
            expected = 2 * found / (2 * found + missed)
            assert score(tagger, CORPORA["CoNLL03"], part, given) == pytest.approx(
                100 * expected, abs=1e-3
            )
        expected = tag_f1_score(part.y, tags, average="macro")
        assert score(tagger, CORPORA["EWT"], part) == pytest.approx(100 * expected, abs=1e-3)
        assert 0 < expected < 1

    def test_dropout_is_that_of_the_encoder(self, tiny_bert):
        with runs._encoder(0.2) as model:
            X, y = easy_pairs(16)
            fitted = DicePairClassifier(model, max_epochs=1, verbose=0).fit(X, y)
        assert fitted.net_.module_.transformer.config.hidden_dropout_prob == 0.2

    def test_rows_are_read_once(self, tiny_bert):
        X, y = easy_pairs(40)
        pairs = DicePairClassifier(str(tiny_bert), max_epochs=1, verbose=0).fit(X, y)
        remember_logits(pairs)
        expected = pairs.predict_proba(X)
        tuned = tune_decision(pairs, X, y)
        pairs.net_ = None
        assert np.array_equal(pairs.predict_proba(X), expected)
        assert len(tuned.predict(X)) == len(X)
