"""Physics first, kernels for the rest: against a loop of plain sums, one sample at a time."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dynamics_tools import Folded, arm, rows_and_outputs, scale_after, sensed, waves
from imparo.dynamics import (
    NonparametricDynamics,
    ParametricDynamics,
    SemiparametricDynamics,
    joined,
)
from imparo.dynamics.base import base_parameters
from imparo.dynamics.robot import Robot
from imparo.persistence import fingerprint

D, SIGMA = 20, 2.5
# Typical errors of outputs: those of forces and torques differ.
SCALES = {1: np.ones(1), 2: np.ones(2), 3: np.ones(3), 6: np.array([1, 1, 1, 0.1, 0.1, 0.1])}
ROBOTS = {"torques": arm, "wrench": sensed, "any physics": lambda: Folded(2, 5)}


@pytest.fixture(params=list(ROBOTS))
def robot(request):
    return ROBOTS[request.param]()


def learner(robot, *, known=None, rest=None, revise=True):
    parametric = ParametricDynamics(robot, **{"penalty": 1e-3, **(known or {})})
    options = {"n_features": D, "sigma": SIGMA, "penalty": 0.1, **(rest or {})}
    return SemiparametricDynamics(parametric, NonparametricDynamics(**options), revise=revise)


def bent(robot, n, seed=0):
    return rows_and_outputs(robot, n, seed, noise=0.02, bent=2.0)


class Sums:
    """A and b of rows, solved anew for each prediction."""

    def __init__(self, p, T, penalty, fade):
        self.A, self.b, self.fade = penalty * np.eye(p), np.zeros((p, T)), fade

    def learn(self, row, target):
        self.A = self.fade * self.A + np.outer(row, row)
        self.b = self.fade * self.b + np.outer(row, target)

    @property
    def weights(self):
        return np.linalg.solve(self.A, self.b)


class Loop:
    """The model from its formulas (thesis, section 8.3), up to 256 samples.

    With ``revise`` residuals of all samples are formed anew with the parameters of now.
    """

    def __init__(self, robot, gamma=1.0, own_gamma=1.0, revise=False):
        self.robot, self.own_gamma, self.revise = robot, own_gamma, revise
        self.T, is_robot = robot.n_outputs, isinstance(robot, Robot)
        self.columns = base_parameters(robot).columns if is_robot else slice(None)
        p = self.rows(np.zeros((1, robot.n_inputs or 6))).shape[2]
        self.rigid = Sums(p, 1, 1e-3, gamma ** (1 / self.T))
        self.inputs, self.residuals, self.seen = [], [], []

    def rows(self, X):
        Phi = self.robot.regressor_of(X)[..., self.columns]
        offsets = np.broadcast_to(np.eye(self.T), (len(X), self.T, self.T))
        return np.concatenate([Phi, offsets], axis=2)

    def learn(self, x, y):
        Phi = self.rows(x[None])[0]
        scale = SCALES[self.T]
        for row, target, c in zip(Phi, y, scale, strict=True):
            self.rigid.learn(row / c, target / c)
        explained = Phi @ self.rigid.weights[:, 0]  # by the parameters just updated
        self.inputs.append(np.append(x, explained))
        self.residuals.append(y - explained)
        self.seen.append((Phi, y))

    def rest(self):
        """Return normalised inputs as features, residuals, and sums of both."""
        Z, R = np.array(self.inputs), np.array(self.residuals)
        if self.revise:
            R = np.array([y - Phi @ self.rigid.weights[:, 0] for Phi, y in self.seen])
        mean, scale = scale_after(Z)
        rest = Sums(D + 1, self.T, 0.1, self.own_gamma)
        Phi = waves((Z - mean) / scale, SIGMA, D)
        for phi, r in zip(Phi, R, strict=True):
            rest.learn(phi, r)
        return mean, scale, Phi, R, rest

    def features(self, X):
        mean, scale, *_ = self.rest()
        explained = self.rows(X) @ self.rigid.weights[:, 0]
        inputs = (np.column_stack([X, explained]) - mean) / scale
        return explained, waves(inputs, SIGMA, D)

    def predict(self, X):
        explained, phi = self.features(X)
        return explained + phi @ self.rest()[-1].weights

    def noise(self):
        """Return what is left, the penalty included, for the weight of all samples."""
        *_, Phi, R, rest = self.rest()
        left = self.own_gamma ** np.arange(len(R) - 1, -1, -1.0)
        penalty = 0.1 * self.own_gamma ** len(R) * np.sum(rest.weights**2, axis=0)
        return (left @ (R - Phi @ rest.weights) ** 2 + penalty) / left.sum()

    def variance(self, X):
        """Return that of Δ and the noise."""
        _, phi = self.features(X)
        spread = 1 + np.einsum("nd,de,ne->n", phi, np.linalg.inv(self.rest()[-1].A), phi)
        return spread[:, None] * self.noise()


# What is learned.


@pytest.mark.parametrize("revise", [True, False])
@pytest.mark.parametrize(("gamma", "own"), [(1.0, 1.0), (0.98, 1.0), (1.0, 0.9), (0.95, 0.99)])
def test_each_step_is_that_of_the_formulas(robot, gamma, own, revise):
    X, Y = bent(robot, 70)
    probe = bent(robot, 4, seed=1)[0]
    loop = Loop(robot, gamma, own, revise)
    known, rest = {"forgetting": gamma}, {"forgetting": own}
    model = learner(robot, known=known, rest=rest, revise=revise)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        loop.learn(x, y)
        model.partial_fit(x[None], y[None])
        if i in (0, 1, 2, 5, 16, 31, 32, 40, 63, 69):
            F, std = model.predict(probe, return_std=True)
            assert_allclose(F, loop.predict(probe), rtol=1e-5, atol=1e-5)
            doubt = model.parametric_.predict(probe, return_std=True)[1] ** 2
            doubt -= model.parametric_.noise_
            expected = np.sqrt(doubt + loop.variance(probe))
            assert_allclose(std, expected, rtol=1e-3, atol=1e-5)


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(1, 150), st.booleans())
@settings(max_examples=20, deadline=None)
def test_a_block_is_that_of_the_formulas(seed, T, n, revise):
    robot = Folded(T, 4)
    X, Y = bent(robot, n, seed)
    loop = Loop(robot, 0.99, 0.98, revise)
    for x, y in zip(X, Y, strict=True):
        loop.learn(x, y)
    known, rest = {"forgetting": 0.99}, {"forgetting": 0.98}
    model = learner(robot, known=known, rest=rest, revise=revise).fit(X, Y)
    probe = bent(robot, 4, seed=1)[0]
    assert_allclose(model.predict(probe), loop.predict(probe), rtol=1e-5, atol=1e-5)
    assert_allclose(model.noise_, loop.noise(), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("gamma", [1.0, 0.97])
def test_the_parametric_part_learns_as_if_it_were_alone_to_the_bit(robot, gamma):
    X, Y = bent(robot, 700)
    known = {"forgetting": gamma}
    model = learner(robot, known=known, rest={"forgetting": 0.9})
    alone = ParametricDynamics(robot, penalty=1e-3, **known)
    for part in np.split(np.arange(700), [1, 2, 30, 600]):
        model.partial_fit(X[part], Y[part])
        alone.partial_fit(X[part], Y[part])
        model.predict(X[:3], return_std=True)
        assert_array_equal(model.parametric_.parameters_, alone.parameters_)
        assert_array_equal(model.parametric_.predict(X[:40]), alone.predict(X[:40]))
    assert_array_equal(model.parametric_.parameter_std_, alone.parameter_std_)
    assert_array_equal(model.parametric_.noise_, alone.noise_)


def test_predictions_are_the_sum_of_the_parts(robot):
    X, Y = bent(robot, 200)
    model = learner(robot, revise=False).fit(X, Y)
    probe = bent(robot, 30, seed=1)[0]
    explained = model.parametric_.predict(probe)
    inputs = np.column_stack([probe, explained])
    rest, spread = model.nonparametric_.predict(inputs, return_std=True)
    F, std = model.predict(probe, return_std=True)
    assert_allclose(F, explained + rest, rtol=1e-12, atol=1e-12)
    doubt = model.parametric_.predict(probe, return_std=True)[1] ** 2
    doubt -= model.parametric_.noise_  # the residual's noise is that of the samples
    assert_allclose(std**2, doubt + spread**2, rtol=1e-6)
    assert model.parametric_.n_seen_ == model.nonparametric_.n_seen_ == model.n_seen_ == 200


@pytest.mark.parametrize(("gamma", "same"), [(1.0, True), (0.99, False)])
def test_residuals_are_by_default_revised_unless_parameters_are_forgotten(gamma, same):
    robot, known = Folded(2, 5), {"forgetting": gamma}
    X, Y = bent(robot, 60)
    auto = learner(robot, known=known, revise="auto").fit(X, Y).predict(X)
    assert_array_equal(auto, learner(robot, known=known, revise=same).fit(X, Y).predict(X))
    other = learner(robot, known=known, revise=not same).fit(X, Y).predict(X)
    assert np.abs(auto - other).max() > 1e-6


def test_with_a_new_payload_forgetting_parameters_are_better_not_revised():
    # Old residuals, formed anew with a payload that they did not have, would be wrong.
    robot = arm()
    X, Y = bent(robot, 900)
    payload = np.zeros(20)
    payload[10] = 3.0
    Y[600:] += robot.regressor_of(X[600:]) @ payload
    known, rest = {"forgetting": 0.97}, {"n_features": 100, "sigma": 3.0}
    errors = {}
    for revise in ("auto", True):
        model = learner(robot, known=known, rest=rest, revise=revise).fit(X[:700], Y[:700])
        errors[revise] = np.sqrt(np.mean((model.predict(X[700:]) - Y[700:]) ** 2))
    assert errors["auto"] < 0.7 * errors[True]


@pytest.mark.parametrize("value", ["yes", None, 1])
def test_revise_is_true_or_false(value):
    with pytest.raises(ValueError, match="revise="):
        learner(Folded(2, 5), revise=value).fit(*bent(Folded(2, 5), 5))


def test_it_is_better_than_physics_alone_and_sooner_good_than_kernels_alone():
    robot = arm()
    X, Y = bent(robot, 1000)
    own = {"n_features": 150, "sigma": "auto"}
    models = {
        "both": learner(robot, rest=own),
        "physics": ParametricDynamics(robot),
        "kernels": NonparametricDynamics(n_features=150),
    }
    errors = {}
    for name, model in models.items():
        early = model.fit(X[:60], Y[:60]).predict(X[800:])
        late = model.partial_fit(X[60:800], Y[60:800]).predict(X[800:])
        errors[name] = [np.sqrt(np.mean((F - Y[800:]) ** 2)) for F in (early, late)]
    assert errors["both"][0] < 0.8 * errors["kernels"][0]
    assert errors["both"][1] < 0.8 * errors["physics"][1]


def test_most_of_new_samples_are_within_two_deviations():
    X, Y = bent(arm(), 1500)
    model = learner(arm(), rest={"n_features": 200, "sigma": "auto"}).fit(X[:1000], Y[:1000])
    F, std = model.predict(X[1000:], return_std=True)
    assert 0.85 < np.mean(np.abs(F - Y[1000:]) < 2 * std) < 0.995


def test_factors_of_forgetting_are_those_of_the_parts():
    robot = Folded(2, 5)
    X, Y = bent(robot, 300)
    other = bent(robot, 300, seed=9)
    for known, own in ((0.9, 1.0), (1.0, 0.9), (1.0, 1.0)):
        model = learner(robot, known={"forgetting": known}, rest={"forgetting": own})
        model.fit(X, Y).partial_fit(*other)
        rows = model.parametric_._recursion.weight, model.nonparametric_._recursion.weight
        assert_allclose(rows[0], 1200 if known == 1 else 1 / (1 - 0.9**0.5), rtol=1e-6)
        assert_allclose(rows[1], 600 if own == 1 else 10, rtol=1e-6)


# Its parts.


def test_parts_are_reached_by_their_names():
    model = learner(Folded(2, 5))
    model.set_params(nonparametric__sigma=7.0, parametric__forgetting=0.5)
    assert model.nonparametric.sigma == 7.0
    assert model.get_params()["parametric__forgetting"] == 0.5
    X, Y = bent(Folded(2, 5), 20)
    model.fit(X, Y)
    assert model.nonparametric_.sigma_ == 7.0
    assert model.parametric_.forgetting == 0.5
    assert model.nonparametric_ is not model.nonparametric
    assert not hasattr(model.parametric, "n_seen_")


def test_a_robot_alone_means_both_parts_as_they_are_by_default():
    X, Y = bent(arm(), 50)
    short = SemiparametricDynamics(arm()).fit(X, Y)
    long = SemiparametricDynamics(ParametricDynamics(arm()), NonparametricDynamics()).fit(X, Y)
    assert_array_equal(short.predict(X), long.predict(X))


def test_what_a_given_part_has_learned_is_left_alone():
    X, Y = bent(Folded(2, 5), 50)
    part = ParametricDynamics(Folded(2, 5)).fit(X, Y)
    before = fingerprint(part)
    model = SemiparametricDynamics(part, NonparametricDynamics(n_features=D)).fit(
        X[:20], Y[:20]
    )
    assert fingerprint(part) == before
    assert model.parametric_.n_seen_ == 20


@pytest.mark.parametrize(
    ("parametric", "nonparametric", "message"),
    [
        ("arm.urdf", None, "parametric='arm.urdf' must be a Robot or a ParametricDynamics"),
        (None, None, "parametric=None must be"),
        (NonparametricDynamics(), None, "must be a Robot or a ParametricDynamics"),
        (Folded(2, 5), "rbf", "nonparametric='rbf' must be a NonparametricDynamics"),
        (Folded(2, 5), ParametricDynamics(Folded(2, 5)), "must be a NonparametricDynamics"),
    ],
)
def test_other_parts_are_refused(parametric, nonparametric, message):
    model = SemiparametricDynamics(parametric, nonparametric)
    with pytest.raises(TypeError, match=message) as caught:
        model.fit(*bent(Folded(2, 5), 5))
    assert "\n" not in str(caught.value)
    assert not hasattr(model, "n_seen_")


def test_wrong_parameters_of_a_part_are_refused():
    X, Y = bent(Folded(2, 5), 5)
    for model, message in (
        (learner(Folded(2, 5), known={"penalty": -1.0}), "penalty=-1.0"),
        (learner(Folded(2, 5), rest={"sigma": -1.0}), "sigma=-1.0"),
        (learner(Folded(2, 5), known={"extras": ("viscous",)}), "viscous"),
    ):
        before = fingerprint(model)
        with pytest.raises(ValueError, match=message):
            model.fit(X, Y)
        assert fingerprint(model) == before


# How samples come.


@pytest.mark.parametrize("revise", [True, False])
def test_samples_one_by_one_in_blocks_or_at_once_give_one_model(robot, revise):
    X, Y = bent(robot, 600)
    J = X.shape[1] // 3
    known, rest = {"forgetting": 0.999}, {"forgetting": 0.998}
    whole, single, blocks = (
        learner(robot, known=known, rest=rest, revise=revise) for _ in range(3)
    )
    whole.fit(X, Y)
    for x, y in zip(X, Y, strict=True):
        assert single.learn(x[:J], x[J : 2 * J], x[2 * J :], y) is single
    for part in np.split(np.arange(600), [1, 2, 3, 100, 257]):
        blocks.learn(X[part, :J], X[part, J : 2 * J], X[part, 2 * J :], Y[part])
    probe = bent(robot, 20, seed=1)[0]
    expected = np.array(whole.predict(probe, return_std=True))
    for model in (single, blocks):
        found = model.predict(probe, return_std=True)
        assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
        assert model.n_seen_ == 600


def test_predictions_between_samples_change_no_bit():
    X, Y = bent(Folded(2, 5), 300)
    asked, quiet = learner(Folded(2, 5)), learner(Folded(2, 5))
    for x, y in zip(X, Y, strict=True):
        asked.partial_fit(x[None], y[None])
        quiet.partial_fit(x[None], y[None])
        asked.predict(X[:5], return_std=True)[0][:] = 7
    assert_array_equal(asked.predict(X, return_std=True), quiet.predict(X, return_std=True))


def test_all_forms_of_predicting_agree(robot):
    X, Y = bent(robot, 90)
    J = X.shape[1] // 3
    model = learner(robot).fit(X, Y)
    F, std = model.predict(X, return_std=True)
    parts = X[:, :J], X[:, J : 2 * J], X[:, 2 * J :]
    assert_array_equal(model.predict(*parts), F)
    assert_array_equal(model.predict(joined(*parts)), F)
    one, its = model.predict(*(part[3] for part in parts), return_std=True)
    assert one.shape == its.shape == (robot.n_outputs,)
    assert_allclose(one, F[3], rtol=1e-9, atol=1e-9)
    assert_allclose(its, std[3], rtol=1e-9)
    assert_allclose(model.predict(*(part[3].tolist() for part in parts)), one, rtol=1e-12)
    close = {"rtol": 1e-9, "atol": 1e-9}
    assert_allclose(model.predict(sparse.csr_array(X)), F, **close)
    assert_allclose(model.predict(np.asfortranarray(X)), F, **close)
    long = np.vstack([X] * 12)
    assert_allclose(model.predict(long), np.vstack([F] * 12), **close)
    with pytest.raises(ValueError, match="only one was given"):
        model.predict(parts[0], parts[1])


@pytest.mark.filterwarnings("error")
def test_frames_float32_and_sparse_rows_are_learned_as_arrays():
    robot = Folded(2, 5)
    X, Y = bent(robot, 90)
    X, Y = X.astype(np.float32).astype(float), Y.astype(np.float32).astype(float)
    expected = learner(robot).fit(X, Y).predict(X)
    names = [f"{kind}{j}" for kind in ("q", "dq", "ddq") for j in (1, 2)]
    frames = pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)
    for rows in (*frames, X.astype(np.float32), sparse.csr_array(X), X.tolist()):
        model = learner(robot).fit(rows, Y)
        assert_array_equal(model.predict(rows), expected)
    for outputs in (pd.DataFrame(Y), pl.DataFrame(Y), Y.astype(np.float32), Y.tolist()):
        assert_array_equal(learner(robot).fit(X, outputs).predict(X), expected)
    model = learner(robot).fit(frames[0], Y)
    assert list(model.feature_names_in_) == names
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frames[0][names[::-1]])


def test_one_output_may_be_a_vector():
    X, Y = bent(Folded(1, 5), 50)
    flat, table = learner(Folded(1, 5)).fit(X, Y[:, 0]), learner(Folded(1, 5)).fit(X, Y)
    assert flat.predict(X).shape == (50,)
    assert_array_equal(flat.predict(X), table.predict(X)[:, 0])
    single = learner(Folded(1, 5)).learn(X[0, :2], X[0, 2:4], X[0, 4:], Y[0, 0])
    assert np.ndim(single.predict(X[0, :2], X[0, 2:4], X[0, 4:])) == 0


def test_fitting_is_learning_from_scratch_and_copies_are_independent(robot):
    X, Y = bent(robot, 300)
    model = learner(robot).fit(X, Y)
    fresh = learner(robot).partial_fit(X, Y)
    assert_array_equal(model.predict(X), fresh.predict(X))
    twin, same = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    model.partial_fit(X[:50], -Y[:50])
    assert_array_equal(twin.predict(X), fresh.predict(X))
    assert_array_equal(same.partial_fit(X, Y).predict(X), fresh.partial_fit(X, Y).predict(X))
    assert not hasattr(clone(model), "n_seen_")
    assert_array_equal(model.fit(X, Y).predict(X), twin.predict(X))
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


@pytest.mark.parametrize("size", [1e-100, 1e-9, 1e9, 1e47])
def test_huge_and_tiny_samples_give_finite_answers(size):
    X, Y = bent(arm(), 300)
    for rows, outputs in ((size * X, Y), (X, size * Y), (size * X, size * Y)):
        found = learner(arm()).fit(rows, outputs).predict(rows, return_std=True)
        assert np.isfinite(found).all()


def test_one_sample_equal_samples_and_no_motion_give_finite_answers(robot):
    X, Y = bent(robot, 300)
    for rows, outputs in (
        (X[:1], Y[:1]),
        (np.repeat(X[:1], 300, axis=0), np.repeat(Y[:1], 300, axis=0)),
        (np.repeat(X[:1], 300, axis=0), Y),
        (np.zeros_like(X), Y),
        (X, np.zeros_like(Y)),
    ):
        model = learner(robot, known={"forgetting": 0.9}, rest={"forgetting": 0.9})
        model.fit(rows, outputs)
        assert np.isfinite(model.predict(X, return_std=True)).all()
    assert_allclose(model.predict(X), 0, atol=1e-9)


# What is refused.


def _with(X, value):
    bad = X.copy()
    bad[-1, -1] = value
    return bad


BAD = {
    "a column too few": (lambda X, Y: (X[:, 1:], Y), "5"),
    "an output too few": (lambda X, Y: (X, Y[:, :1]), "1 outputs"),
    "a row too few": (lambda X, Y: (X, Y[1:]), "rows"),
    "NaN": (lambda X, Y: (_with(X, np.nan), Y), "NaN"),
    "infinity": (lambda X, Y: (_with(X, np.inf), Y), "infinity"),
    "NaN in y": (lambda X, Y: (X, _with(Y, np.nan)), "NaN"),
    "no rows": (lambda X, Y: (X[:0], Y[:0]), "0 sample"),
    "no outputs": (lambda X, Y: (X, None), "y"),
    "text": (lambda X, Y: (X.astype(str), Y), "text"),
    "no motion of a robot": (lambda X, Y: (_with(X, 1e60), Y), "no motion of a robot"),
    "outputs beyond squares": (lambda X, Y: (X, _with(Y, 1e200)), "cannot hold"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_bad_samples_leave_the_model_as_it_was(case):
    X, Y = bent(arm(), 540)  # the bad one comes in a second block
    spoil, message = BAD[case]
    for model in (learner(arm()), learner(arm()).fit(X, Y)):
        before = fingerprint(model)
        for learn in (model.partial_fit, model.fit):
            with pytest.raises((ValueError, TypeError), match=message):
                learn(*spoil(X, Y))
            assert fingerprint(model) == before
    bad = spoil(X, Y)[0]
    if bad is not X:
        with pytest.raises(ValueError):
            model.predict(bad)
        assert fingerprint(model) == before
