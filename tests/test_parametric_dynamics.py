"""Recursively learned parameters of rigid bodies against sums over all rows, solved at once."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dynamics_tools import Folded, arm, motion, rows_and_outputs, sensed, weighted_ridge
from imparo.dynamics import ParametricDynamics, joined
from imparo.dynamics.base import base_parameters
from imparo.dynamics.robot import Robot
from imparo.persistence import fingerprint

ROBOTS = {"torques": arm, "wrench": sensed, "any physics": lambda: Folded(2, 5)}


@pytest.fixture(params=list(ROBOTS))
def robot(request):
    return ROBOTS[request.param]()


def rows_by_hand(robot, X, extras=("offset",)):
    """Return rows of the least-squares problem, one for each output of each sample."""
    rows, T = [], robot.n_outputs
    columns = base_parameters(robot).columns if isinstance(robot, Robot) else slice(None)
    for x in X:
        Phi = robot.regressor_of(x[None])[0][:, columns]
        for t in range(T):
            row = list(Phi[t])
            for name in extras:
                own = np.zeros(T)
                if name == "offset":
                    own[t] = 1
                elif name == "viscous":
                    own[t] = x[T + t]
                elif name == "coulomb":
                    own[t] = np.tanh(x[T + t] / 0.02)
                elif name == "rotor":
                    own[t] = x[2 * T + t]
                row.extend(own)
            rows.append(row)
    return np.array(rows)


def solved(rows, targets, penalty, start=0.0):
    """Return the minimizer of the sum of squares and λ‖π − π₀‖², by rows of the penalty."""
    p = rows.shape[1]
    start = np.broadcast_to(start, p)
    more = np.vstack([rows, np.sqrt(penalty) * np.eye(p)])
    wanted = np.append(targets, np.sqrt(penalty) * start)
    return np.linalg.lstsq(more, wanted, rcond=None)[0]


# What is learned.


@pytest.mark.parametrize("penalty", [1e-15, 1e-6, 10.0])
@pytest.mark.parametrize("prior", ["zero", "robot"])
def test_parameters_are_those_of_all_rows_at_once(robot, penalty, prior):
    X, Y = rows_and_outputs(robot, 150)
    scale = np.linspace(0.1, 3, robot.n_outputs)
    model = ParametricDynamics(robot, penalty=penalty, prior=prior, output_scale=scale)
    model.fit(X, Y)
    rows, sizes = rows_by_hand(robot, X), np.tile(scale, len(X))
    start = np.zeros(rows.shape[1])
    if prior == "robot":
        known = robot.parameters
        if isinstance(robot, Robot):
            known = base_parameters(robot).of(known)
        start[: len(known)] = known
    expected = solved(rows / sizes[:, None], Y.ravel() / sizes, penalty, start)
    assert_allclose(model.parameters_, expected, rtol=1e-7, atol=1e-7)
    assert len(model.parameter_names_) == len(expected)
    probe = rows_and_outputs(robot, 9, seed=1)[0]
    wanted = (rows_by_hand(robot, probe) @ expected).reshape(9, -1)
    assert_allclose(model.predict(probe), wanted, rtol=1e-6, atol=1e-6)


def test_a_strong_prior_is_the_description_and_a_weak_one_is_forgotten(robot):
    X, Y = rows_and_outputs(robot, 80, noise=0.0)
    strong = ParametricDynamics(robot, penalty=1e9, prior="robot", extras=()).fit(X, Y)
    described = robot.regressor_of(X) @ robot.parameters
    assert_allclose(strong.predict(X), described, atol=1e-4)
    weak = ParametricDynamics(robot, penalty=1e-12, prior="robot", extras=()).fit(X, Y)
    assert_allclose(weak.predict(X), Y, atol=1e-5)


@pytest.mark.parametrize("kind", ["viscous", "coulomb", "rotor", "offset"])
def test_each_extra_column_is_what_it_says(kind):
    robot, X = arm(), joined(*motion(60))
    rng = np.random.default_rng(1)
    wanted = np.array([1.5, -0.7])
    values = {
        "offset": np.ones((60, 2)),
        "viscous": X[:, 2:4],
        "coulomb": np.tanh(X[:, 2:4] / 0.02),
        "rotor": X[:, 4:],
    }[kind]
    truth = rng.uniform(0.1, 1, 20)
    Y = robot.regressor_of(X) @ truth + values * wanted
    model = ParametricDynamics(robot, extras=kind, penalty=1e-10).fit(X, Y)
    assert_allclose(model.predict(X), Y, atol=1e-6)
    names = [f"{kind} of shoulder", f"{kind} of elbow"]
    assert list(model.parameter_names_[-2:]) == names
    if kind != "rotor":  # which acts as inertia about the axis of the first joint does
        assert_allclose(model.parameters_[-2:], wanted, atol=1e-5)
        assert_allclose(model.parameters_[:-2], model.base_.of(truth), atol=1e-5)


def test_extra_columns_come_in_the_order_that_they_are_named_in():
    X, Y = rows_and_outputs(arm(), 80)
    extras = ["rotor", "offset", "coulomb", "viscous"]
    model = ParametricDynamics(arm(), extras=extras, penalty=0.1).fit(X, Y)
    expected = solved(rows_by_hand(arm(), X, extras), Y.ravel(), 0.1)
    assert_allclose(model.parameters_, expected, rtol=1e-8, atol=1e-10)
    names = [f"{extra} of {joint}" for extra in extras for joint in ("shoulder", "elbow")]
    assert list(model.parameter_names_[-8:]) == names


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.floats(0.9, 1.0), st.integers(1, 60))
@settings(max_examples=30, deadline=None)
def test_forgetting_weighs_the_rows_of_a_sample_with_a_root_of_gamma(seed, T, gamma, n):
    robot = Folded(T, 4)
    X, Y = rows_and_outputs(robot, n, seed)
    model = ParametricDynamics(robot, penalty=0.01, forgetting=gamma).fit(X, Y)
    fade = gamma ** (1 / T)
    expected, A = weighted_ridge(rows_by_hand(robot, X), Y.ravel(), 0.01, fade)
    assert_allclose(model.parameters_, expected, rtol=1e-6, atol=1e-7)
    # The covariance: s² is what is left, the penalty included, for the weight of all rows.
    left = fade ** np.arange(n * T - 1, -1, -1.0)
    errors = Y.ravel() - rows_by_hand(robot, X) @ expected
    least = left @ errors**2 + 0.01 * gamma**n * expected @ expected
    covariance = least / left.sum() * np.linalg.inv(A)
    assert_allclose(model.parameter_covariance_, covariance, rtol=1e-6, atol=1e-9)
    assert_allclose(model.parameter_std_**2, np.diag(covariance), rtol=1e-6, atol=1e-9)


def test_forgetting_follows_a_payload_and_no_forgetting_does_not():
    robot = arm()
    (X, Y), more = rows_and_outputs(robot, 600, noise=0.01), np.zeros(20)
    more[10] = 2.0  # kilograms at the lower link
    Y[300:] += robot.regressor_of(X[300:]) @ more
    base = base_parameters(robot).of(more)
    moved = {}
    for gamma in (0.95, 1.0):
        model = ParametricDynamics(robot, forgetting=gamma).fit(X[:300], Y[:300])
        before = model.parameters_
        model.partial_fit(X[300:], Y[300:])
        moved[gamma] = (model.parameters_ - before)[: len(base)]
    assert_allclose(moved[0.95], base, atol=0.05)
    assert np.abs(moved[1.0] - base).max() > 0.2


def test_directional_forgetting_keeps_what_is_no_longer_seen():
    # Joint 1 stands still in the second half: its parameters stay, and do not blow up.
    robot = Folded(1, 3)
    X, Y = rows_and_outputs(robot, 1200, noise=0.01)
    X = X[:, :3]
    Y = X @ np.array([[1.0], [2.0], [3.0]]) + 0.01 * Y / np.abs(Y).max()
    X[400:, 0] = 0
    Y[400:] = X[400:] @ np.array([[1.0], [5.0], [3.0]])
    model = ParametricDynamics(
        robot, extras=(), forgetting=0.9, forgetting_kind="directional"
    ).fit(X, Y)
    assert_allclose(model.parameters_, [1, 5, 3], atol=0.02)
    assert np.isfinite(model.parameter_std_).all()


# How sure it is.


def test_noise_is_estimated_for_each_output_without_bias():
    # E of the estimate is σ²: over 200 streams of 2·30 rows and 8 parameters its mean has a
    # relative deviation of √(2/(200·26)) = 2 %.
    robot, sizes = Folded(2, 8), []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(30, 8))
        Y = robot.regressor_of(X) @ rng.normal(size=8) + rng.normal(size=(30, 2))
        model = ParametricDynamics(robot, extras=(), penalty=1e-8).fit(X, Y)
        sizes.append(model.noise_)
    assert_allclose(np.mean(sizes, axis=0), 1.0, atol=0.08)


@pytest.mark.parametrize("scaled", [True, False])
def test_noise_of_outputs_in_different_units_is_told_apart(robot, scaled):
    sizes = np.geomspace(0.05, 1, robot.n_outputs)
    X, Y = rows_and_outputs(robot, 1500, noise=0.0)
    Y += sizes * np.random.default_rng(5).normal(size=Y.shape)
    model = ParametricDynamics(robot, output_scale=sizes if scaled else None).fit(X, Y)
    # Without scales noise of some outputs enters others by way of the parameters.
    close = 4 / np.sqrt(2 * 1500) + 0.02 if scaled else 1.0
    assert_allclose(np.sqrt(model.noise_), sizes, rtol=close)


@pytest.mark.parametrize("n", [15, 60, 500])
def test_predicted_deviations_cover_what_they_should(n):
    robot, inside = Folded(2, 8), []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n + 50, 8))
        Y = robot.regressor_of(X) @ rng.normal(size=8) + 0.3 * rng.normal(size=(n + 50, 2))
        model = ParametricDynamics(robot, extras=(), penalty=1e-8).fit(X[:n], Y[:n])
        F, std = model.predict(X[n:], return_std=True)
        assert F.shape == std.shape == (50, 2)
        inside.append(np.abs(Y[n:] - F) < 2 * std)
    # 95.4 % for known deviations; with those of 15 samples Student's 12 degrees: 93 %.
    # 4000 predictions, those of one stream correlated.
    assert 0.91 < np.mean(inside) < 0.97


def test_deviations_are_those_of_parameters_and_noise(robot):
    X, Y = rows_and_outputs(robot, 90)
    scale = np.linspace(0.5, 2, robot.n_outputs)
    model = ParametricDynamics(robot, output_scale=scale).fit(X, Y)
    probe = rows_and_outputs(robot, 5, seed=3)[0]
    _, std = model.predict(probe, return_std=True)
    rows = rows_by_hand(robot, probe).reshape(5, robot.n_outputs, -1)
    spread = np.einsum("ntp,pq,ntq->nt", rows, model.parameter_covariance_, rows)
    assert_allclose(std**2, spread + model.noise_, rtol=1e-8)


def test_deviations_of_parameters_are_those_of_many_streams():
    robot, found, said = Folded(2, 5), [], []
    X = np.random.default_rng(0).normal(size=(100, 5))
    truth = np.arange(5.0)
    for seed in range(150):
        noise = 0.2 * np.random.default_rng(seed).normal(size=(100, 2))
        model = ParametricDynamics(robot, extras=()).fit(
            X, robot.regressor_of(X) @ truth + noise
        )
        found.append(model.parameters_)
        said.append(model.parameter_std_)
    # A deviation of 150 streams is known to 1/√300 = 6 %.
    assert_allclose(np.std(found, axis=0), np.mean(said, axis=0), rtol=0.2)
    assert_allclose(np.mean(found, axis=0), truth, atol=4 * np.mean(said) / np.sqrt(150))


# How samples come.


def test_samples_one_by_one_in_blocks_or_at_once_give_one_model(robot):
    X, Y = rows_and_outputs(robot, 600)
    J = X.shape[1] // 3
    whole = ParametricDynamics(robot, forgetting=0.99).fit(X, Y)
    single, blocks = (ParametricDynamics(robot, forgetting=0.99) for _ in range(2))
    for x, y in zip(X, Y, strict=True):
        single.learn(x[:J], x[J : 2 * J], x[2 * J :], y)
    for part in np.split(np.arange(600), [1, 2, 40, 41, 300]):
        blocks.learn(X[part, :J], X[part, J : 2 * J], X[part, 2 * J :], Y[part])
    probe = rows_and_outputs(robot, 7, seed=1)[0]
    expected, std = whole.predict(probe, return_std=True)
    for model in (single, blocks):
        F, its = model.predict(probe, return_std=True)
        assert_allclose(F, expected, rtol=1e-9, atol=1e-9)
        assert_allclose(its, std, rtol=1e-8)
        assert model.n_seen_ == 600


def test_all_forms_of_predicting_agree(robot):
    X, Y = rows_and_outputs(robot, 40)
    J = X.shape[1] // 3
    model = ParametricDynamics(robot).fit(X, Y)
    F, std = model.predict(X, return_std=True)
    parts = X[:, :J], X[:, J : 2 * J], X[:, 2 * J :]
    assert_array_equal(model.predict(*parts), F)
    one, its = model.predict(*(part[3] for part in parts), return_std=True)
    assert one.shape == its.shape == (robot.n_outputs,)
    assert_allclose(one, F[3], rtol=1e-12)
    assert_allclose(its, std[3], rtol=1e-12)
    assert_allclose(model.predict(sparse.csr_array(X)), F, rtol=1e-12)
    assert_allclose(model.predict(X.tolist()), F, rtol=1e-12)


def test_learning_nothing_new_is_possible_and_predicting_before_is_not():
    model = ParametricDynamics(Folded(2, 5))
    for ask in (
        lambda: model.predict(np.zeros((1, 6))),
        lambda: model.parameters_,
        lambda: model.parameter_std_,
        lambda: model.noise_,
    ):
        with pytest.raises(NotFittedError):
            ask()
    X, Y = rows_and_outputs(Folded(2, 5), 3)
    model.fit(np.repeat(X[:1], 50, axis=0), np.repeat(Y[:1], 50, axis=0))
    assert_allclose(model.predict(X[:1]), Y[:1], atol=1e-4)
    assert np.isfinite(model.predict(X, return_std=True)).all()


def test_one_sample_is_enough_to_begin(robot):
    X, Y = rows_and_outputs(robot, 2)
    model = ParametricDynamics(robot).fit(X[:1], Y[:1])
    assert_allclose(model.predict(X[:1]), Y[:1], atol=1e-3)
    F, std = model.predict(X[1:], return_std=True)
    assert np.isfinite(F).all()
    assert (std > 0).all()


def test_fitting_again_forgets_and_copies_are_independent(robot):
    X, Y = rows_and_outputs(robot, 60)
    model = ParametricDynamics(robot).fit(X, Y)
    twin, bare, pickled = copy.deepcopy(model), clone(model), pickle.loads(pickle.dumps(model))
    model.partial_fit(X[:9], 2 * Y[:9])
    assert_array_equal(twin.predict(X), pickled.predict(X))
    assert np.abs(model.predict(X) - twin.predict(X)).max() > 1e-3
    assert not hasattr(bare, "n_seen_")
    assert_array_equal(model.fit(X, Y).predict(X), twin.predict(X))
    assert model.n_seen_ == 60


def test_inputs_are_neither_changed_nor_kept(robot):
    X, Y = rows_and_outputs(robot, 60)
    kept = X.copy(), Y.copy()
    model = ParametricDynamics(robot).fit(X, Y)
    before = model.predict(kept[0])
    assert_array_equal(X, kept[0])
    assert_array_equal(Y, kept[1])
    X[:], Y[:] = 7, 7
    assert_array_equal(model.predict(kept[0]), before)


# What is refused.

WRONG = {
    "no robot": (lambda: ParametricDynamics("iCub"), TypeError, "robot='iCub' must be a Robot"),
    "unknown extra": (
        lambda: ParametricDynamics(arm(), extras=("stiction",)),
        ValueError,
        "may hold offset, viscous, coulomb, rotor, not 'stiction'",
    ),
    "an extra twice": (
        lambda: ParametricDynamics(arm(), extras=("offset", "offset")),
        ValueError,
        "names something twice",
    ),
    "no sequence of extras": (
        lambda: ParametricDynamics(arm(), extras=3),
        ValueError,
        "extras=3",
    ),
    "penalty 0": (lambda: ParametricDynamics(arm(), penalty=0.0), ValueError, "penalty=0.0"),
    "penalty True": (lambda: ParametricDynamics(arm(), penalty=True), ValueError, "penalty"),
    "penalty NaN": (lambda: ParametricDynamics(arm(), penalty=np.nan), ValueError, "penalty"),
    "a penalty that overflows": (
        lambda: ParametricDynamics(arm(), penalty=1e-300),
        ValueError,
        "penalty=1e-300",
    ),
    "forgetting 0": (
        lambda: ParametricDynamics(arm(), forgetting=0.0),
        ValueError,
        "forgetting=0.0 must be a number above 0 and up to 1",
    ),
    "forgetting above 1": (
        lambda: ParametricDynamics(arm(), forgetting=1.1),
        ValueError,
        "forgetting=1.1",
    ),
    "forgetting text": (
        lambda: ParametricDynamics(arm(), forgetting="slow"),
        ValueError,
        "forgetting='slow'",
    ),
    "unknown forgetting": (
        lambda: ParametricDynamics(arm(), forgetting_kind="sudden"),
        ValueError,
        "forgetting_kind='sudden'",
    ),
    "unknown prior": (
        lambda: ParametricDynamics(arm(), prior="CAD"),
        ValueError,
        "prior='CAD' must be 'zero' or 'robot'",
    ),
    "array prior": (
        lambda: ParametricDynamics(arm(), prior=np.zeros(3)),
        ValueError,
        "'zero' or 'robot'",
    ),
    "scale of one output": (
        lambda: ParametricDynamics(arm(), output_scale=[1.0]),
        ValueError,
        "2 numbers above 0",
    ),
    "scale 0": (
        lambda: ParametricDynamics(arm(), output_scale=[1.0, 0.0]),
        ValueError,
        "2 numbers above 0",
    ),
    "scale text": (
        lambda: ParametricDynamics(arm(), output_scale=["N", "Nm"]),
        ValueError,
        "2 numbers above 0",
    ),
}


@pytest.mark.parametrize("case", list(WRONG))
def test_wrong_parameters_are_refused_in_a_sentence(case):
    pytest.importorskip("pinocchio")
    make, kind, message = WRONG[case]
    model = make()
    before = fingerprint(model)
    with pytest.raises(kind, match=message) as caught:
        model.fit(*rows_and_outputs(arm(), 5))
    assert "\n" not in str(caught.value)
    assert fingerprint(model) == before


@pytest.mark.parametrize("extra", ["viscous", "coulomb", "rotor"])
def test_friction_of_joints_is_refused_where_a_sensor_does_not_feel_it(extra):
    X, Y = rows_and_outputs(sensed(), 5)
    with pytest.raises(
        ValueError, match=f"{extra} acts in the joints, and a force/torque sens"
    ):
        ParametricDynamics(sensed(), extras=("offset", extra)).fit(X, Y)


def _with(X, value):
    bad = X.copy()
    bad[-1, -1] = value
    return bad


BAD = {
    "a column too few": (lambda X, Y: (X[:, 1:], Y), "5"),
    "a column too many": (lambda X, Y: (np.column_stack([X, X[:, 0]]), Y), "7"),
    "an output too few": (lambda X, Y: (X, Y[:, :1]), "1 outputs"),
    "an output too many": (lambda X, Y: (X, np.column_stack([Y, Y])), "4 outputs"),
    "a row too few": (lambda X, Y: (X, Y[1:]), "rows"),
    "NaN": (lambda X, Y: (_with(X, np.nan), Y), "NaN"),
    "infinity": (lambda X, Y: (_with(X, np.inf), Y), "infinity"),
    "NaN in y": (lambda X, Y: (X, _with(Y, np.nan)), "NaN"),
    "infinity in y": (lambda X, Y: (X, _with(Y, -np.inf)), "infinity"),
    "no rows": (lambda X, Y: (X[:0], Y[:0]), "0 sample"),
    "no outputs": (lambda X, Y: (X, None), "y"),
    "text": (lambda X, Y: (X.astype(str), Y), "text"),
    "text in y": (lambda X, Y: (X, Y.astype(str)), "text"),
    "complex": (lambda X, Y: (X + 1j, Y), "Complex"),
    "no motion of a robot": (lambda X, Y: (_with(X, 1e60), Y), "no motion of a robot"),
    "outputs beyond squares": (lambda X, Y: (X, _with(Y, 1e200)), "cannot hold"),
    "a cube": (lambda X, Y: (X[None], Y), "dim"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_bad_samples_leave_the_model_as_it_was(case):
    X, Y = rows_and_outputs(arm(), 12)
    spoil, message = BAD[case]
    for model in (ParametricDynamics(arm()), ParametricDynamics(arm()).fit(X, Y)):
        before = fingerprint(model)
        for learn in (model.partial_fit, model.fit):
            with pytest.raises((ValueError, TypeError), match=message):
                learn(*spoil(X, Y))
            assert fingerprint(model) == before


def test_predicting_for_no_motion_of_a_robot_is_refused():
    X, Y = rows_and_outputs(arm(), 12)
    model = ParametricDynamics(arm()).fit(X, Y)
    with pytest.raises(ValueError, match="no motion of a robot"):
        model.predict(np.full((1, 6), 1e160))


def test_parts_of_different_shapes_are_refused():
    q, dq, ddq = motion(10)
    model = ParametricDynamics(arm())
    with pytest.raises(ValueError, match=r"shapes \(10, 2\), \(9, 2\), \(10, 2\)"):
        model.learn(q, dq[1:], ddq, q)
    model.learn(q, dq, ddq, q)
    for parts in ((q, dq[0], ddq), (q[0], dq, ddq), (q[:, :1], dq, ddq)):
        with pytest.raises(ValueError, match="q, dq and ddq have the shapes"):
            model.predict(*parts)
    with pytest.raises(ValueError, match="only one was given"):
        model.predict(q, dq)
    with pytest.raises(ValueError, match="expecting 6 features"):
        model.predict(q[:, :1], dq[:, :1], ddq[:, :1])
