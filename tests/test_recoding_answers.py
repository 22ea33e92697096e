"""Answers under any recoding, what it does to each class, and α that is set and kept."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imparo import IncrementalClassifier, RandomFeatures, load
from imparo.lifelong import open as opened
from imparo.lifelong.recoding import choose_alpha
from test_durable_kills import bits


def examples(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    kinds = np.array(["mug", "ball", "rare"])
    return X, kinds[np.where(X[:, 0] > 1.2, 2, (X[:, 1] > 0).astype(int))]


@pytest.mark.parametrize("more", [{}, {"unknown_below": 0.6}, {"intercept": False}])
def test_assessed_is_predicted(more):
    X, y = examples()
    model = IncrementalClassifier(**more).fit(X, y)
    found = model.assess(X)
    assert found.answers.tolist() == model.predict(X).tolist()
    assert np.array_equal(found.probabilities, model.predict_proba(X))
    assert np.array_equal(found.confidence, model.confidence(X))
    assert found.classes.tolist() == model.classes_.tolist()


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=150, max_size=150), st.integers(0, 5))
def test_every_row_may_have_its_own_recoding(alphas, seed):
    X, y = examples(seed=seed)
    model = IncrementalClassifier().fit(X, y)
    found = model.assess(X, alphas)
    for i in range(0, 150, 29):
        alone = model.assess(X[i : i + 1], alphas[i])
        assert found.answers[i] == alone.answers[0]
        assert np.allclose(found.probabilities[i], alone.probabilities[0], atol=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_recoding_that_is_set_is_the_parameter(alpha):
    X, y = examples()
    model = IncrementalClassifier(penalty=1.0).fit(X, y).recode(alpha)
    fresh = IncrementalClassifier(penalty=1.0, recoding=alpha).fit(X, y)
    assert model.recoding == alpha
    assert model.predict(X).tolist() == fresh.predict(X).tolist()
    assert model.recoding_ == fresh.recoding_


def test_recoding_that_is_selected_again_is_that_of_what_is_held_out_now():
    X, y = examples()
    model = IncrementalClassifier(penalty=1.0).fit(X, y).recode(0.1).recode("auto")
    held = model._reservoir
    F = model._chosen().predict(held.rows)
    assert model.recoding_ == choose_alpha(F, held.codes, model._counts)


def test_recoding_before_anything_is_learned():
    X, y = examples()
    model = IncrementalClassifier().recode(0.2)
    assert model.fit(X, y).recoding_ == 0.2


@pytest.mark.parametrize("wrong", [-0.1, 1.1, "much", None, float("nan")])
def test_wrong_recodings_change_nothing(wrong, tmp_path):
    X, y = examples()
    model = IncrementalClassifier().fit(X, y)
    before = bits(model)
    with pytest.raises((ValueError, TypeError)):
        model.recode(wrong)
    if wrong is not None:
        with pytest.raises((ValueError, TypeError)):
            model.assess(X, wrong)
    with opened(tmp_path, model, sync="never") as robot:
        with pytest.raises((ValueError, TypeError)):
            robot.recode(wrong)
        assert robot.number == 0
    assert bits(model) == before


def test_shapes_of_recodings_are_checked():
    X, y = examples()
    with pytest.raises(ValueError, match="one for each of the 150 rows"):
        IncrementalClassifier().fit(X, y).assess(X, [0.1, 0.2])


def test_without_examples_held_out_there_is_no_confidence():
    X, y = examples()
    model = IncrementalClassifier(penalty=1.0, recoding=0.5, holdout=None).fit(X, y)
    for name in ("assess", "recoding_curve"):
        with pytest.raises(AttributeError):
            getattr(model, name)
    with pytest.raises(ValueError, match="nothing is held out"):
        model.recode("auto")
    assert model.recode(0.1).recoding_ == 0.1


def test_shown_counts_what_is_held_out_too():
    X, y = examples()
    model = IncrementalClassifier().fit(X, y)
    assert model.shown_.tolist() == [np.sum(y == label) for label in model.classes_]
    assert model.shown_.sum() == model.counts_.sum() + model.n_held_out_


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 1000), penalty=st.sampled_from([1e-3, 1.0, 30.0]),
    waves=st.booleans(), n_rare=st.integers(2, 5),
)  # fmt: skip
def test_left_out_in_closed_form_is_learned_without(seed, penalty, waves, n_rare):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(size=(40, 3)), rng.normal(1.5, 1, size=(n_rare, 3))])
    y = np.array(["a", "b"] * 20 + ["rare"] * n_rare)
    features = RandomFeatures(sigma=2.0, n_features=30, random_state=0) if waves else None

    def fitted(rows, alpha=0.0):
        return IncrementalClassifier(features, penalty=penalty, recoding=alpha).fit(
            X[rows], y[rows]
        )

    model = fitted(slice(None))
    rare = np.flatnonzero(y == "rare")
    alphas, found, judged = model.recoding_curve([0.0, 0.5, 1.0], (X[rare], y[rare]))
    assert judged[2] == n_rare
    for j, alpha in enumerate(alphas):
        right = 0
        for i in rare:
            one = fitted(np.arange(len(X)) != i, float(alpha))
            S = np.sort(one.decision_function(X[i : i + 1])[0])
            if S[-1] - S[-2] < 1e-9:
                return  # a tie, which rounding decides
            right += one.predict_one(X[i]) == "rare"
        assert found[2, j] == pytest.approx(right / n_rare)


def test_what_fades_cannot_be_left_out():
    X, y = examples()
    model = IncrementalClassifier(forgetting=0.99).fit(X, y)
    with pytest.raises(ValueError, match="leave learned out"):
        model.recoding_curve(learned=(X[:2], y[:2]))


def test_a_durable_learner_keeps_its_recoding_and_can_be_saved(tmp_path):
    X, y = examples()
    with opened(tmp_path / "robot", IncrementalClassifier()) as robot:
        robot.learn(X, y.tolist())
        robot.recode(0.25)
        robot.learn(X[:9], y[:9].tolist())
        assert robot.save(tmp_path / "model.imparo") == robot.number == 3
        before = bits(robot)
    with opened(tmp_path / "robot") as robot:
        assert robot.n_replayed == 3
        assert robot.recoding_ == 0.25
        assert bits(robot) == before
    assert bits(load(tmp_path / "model.imparo")) == before
