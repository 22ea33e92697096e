"""Parameters with honest deviations; learners side by side on a stream, and their picture."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import lfilter
from scipy.stats import norm

import imparo
from dynamics_tools import URDF, Folded, arm, rows_and_outputs, sensed
from imparo.dynamics import (
    FormulaPlant,
    NonparametricDynamics,
    ParametricDynamics,
    Robot,
    base_parameters,
    check_consistency,
    identify,
    multisine,
    output_groups,
    plot_stream,
    streamed,
)

pytest.importorskip("pinocchio")


def motion(robot, n, seed=0):
    path = multisine(robot, duration=n / 50, rate=50, seed=seed)
    return np.hstack([path.q, path.dq, path.ddq])


def errors_of(rng, n, T, memory=0.0):
    """Normal numbers of variance 1 of which each is ``memory`` times the last one, and news."""
    news = np.sqrt(1 - memory**2) * rng.normal(size=(n + 200, T))
    return lfilter([1.0], [1.0, -memory], news, axis=0)[200:]


def recording(robot, n, seed=0, memory=0.0, noise=(0.2, 0.05)):
    """X and Y of a robot that differs from its description, and its parameters."""
    X = motion(robot, n, seed)
    truth = FormulaPlant(robot, perturbation=0.3, seed=seed).parameters
    left = errors_of(np.random.default_rng(seed), n, robot.n_outputs, memory)
    offset = np.linspace(-0.5, 0.5, robot.n_outputs)
    return X, robot.regressor_of(X) @ truth + offset + left * noise, truth


def true_values(robot, truth):
    offset = np.linspace(-0.5, 0.5, robot.n_outputs)
    return np.concatenate([base_parameters(robot).of(truth), offset])


# What is found, and how well it is known.


@pytest.mark.parametrize(
    ("robot", "noise"),
    [(arm, [0.2, 0.05]), (sensed, [0.3] * 3 + [0.01] * 3)],
    ids=["torques", "wrench"],
)
@pytest.mark.parametrize("memory", [0.0, 0.8])
def test_true_parameters_are_found_within_three_deviations(robot, noise, memory):
    robot = robot()
    X, Y, truth = recording(robot, 1000, seed=3, memory=memory, noise=noise)
    found = identify(robot, X, Y)
    known = true_values(robot, truth)
    assert (np.abs(found.values - known) < 3 * found.std).all()
    # That says something: they explain another motion far better than the description.
    r = found.model.base_.rank
    Phi = robot.regressor_of(motion(robot, 300, seed=9))[..., found.model.base_.columns]
    off, described = (
        np.sqrt(np.mean((Phi @ (values[:r] - known[:r])) ** 2, axis=0))
        for values in (found.values, found.description)
    )
    assert (off < 0.1 * described).all()
    assert_allclose(found.rmse, noise, rtol=0.15)
    assert_array_equal(found.std, np.sqrt(np.diagonal(found.covariance)))


counts = pytest.mark.parametrize("count", [15, pytest.param(30, marks=pytest.mark.slow)])


def shares_within_two(robot, n, memory, count):
    """Share of parameters within 2 deviations, for each seed: ours, and the usual s²A⁻¹."""
    ours, usual = [], []
    for seed in range(count):
        X, Y, truth = recording(robot, n, seed, memory)
        found = identify(robot, X, Y)
        off = np.abs(found.values - true_values(robot, truth))
        ours.append(np.mean(off < 2 * found.std))
        usual.append(np.mean(off < 2 * found.model.parameter_std_))
    return np.array(ours), np.array(usual)


@counts
def test_deviations_are_right_for_independent_errors(count):
    shares, _ = shares_within_two(arm(), 500, 0.0, count)
    doubt = (
        3 * shares.std() / np.sqrt(len(shares))
    )  # parameters of one seed are not independent
    assert abs(shares.mean() - 0.9545) < doubt


@counts
def test_deviations_are_right_for_errors_that_last_where_the_usual_ones_are_far_too_small(
    count,
):
    memory, n = 0.8, 1000
    shares, usual = shares_within_two(arm(), n, memory, count)
    # Sums over stretches of L samples hold this much of the variance that slow errors cause.
    L = n / 50
    held = 1 - 2 * memory * (1 - memory**L) / (L * (1 - memory**2))
    least = 2 * norm.cdf(2 * np.sqrt(held)) - 1
    doubt = 3 * shares.std() / np.sqrt(len(shares))
    assert least - doubt < shares.mean() < 0.9545 + doubt
    # The variance is (1 + ρ)/(1 − ρ) = 9 times what independent errors of this size cause.
    usual_share = 2 * norm.cdf(2 / 3) - 1
    assert usual.mean() < usual_share + 0.15 < least


def test_the_order_of_time_tells_which_errors_last():
    X, Y, _ = recording(arm(), 1000, memory=0.9)
    mixed = np.random.default_rng(0).permutation(len(X))
    in_order, shuffled = identify(arm(), X, Y), identify(arm(), X[mixed], Y[mixed])
    assert_allclose(in_order.values, shuffled.values, rtol=1e-4, atol=1e-6)
    assert np.median(in_order.std / shuffled.std) > 2


def test_values_and_covariance_are_those_of_fits_without_a_stretch_of_time():
    robot = arm()
    X, Y, _ = recording(robot, 330, memory=0.7)
    penalty = 0.01
    found = identify(robot, X, Y, penalty=penalty)
    scale = np.asarray(found.model.output_scale)
    Phi = robot.regressor_of(X)[..., found.model.base_.columns]
    Phi = np.concatenate([Phi, np.broadcast_to(np.eye(2), (len(X), 2, 2))], axis=2)
    start = np.append(base_parameters(robot).of(robot.parameters), [0.0, 0.0])

    def ridge(rows):
        A = (Phi[rows] / scale[:, None]).reshape(-1, len(start))
        b = ((Y[rows] - Phi[rows] @ start) / scale).ravel()
        return start + np.linalg.solve(A.T @ A + penalty * np.eye(len(start)), A.T @ b)

    every = np.arange(len(X))
    assert_allclose(found.values, ridge(every), rtol=1e-8)
    moves = [
        ridge(np.setdiff1d(every, part)) - found.values for part in np.array_split(every, 50)
    ]
    A = (Phi / scale[:, None]).reshape(-1, len(start))
    inverse = np.linalg.inv(A.T @ A + penalty * np.eye(len(start)))
    known = 49 / 50 * np.transpose(moves) @ moves + penalty * inverse @ inverse
    assert_allclose(found.covariance, known, rtol=1e-5, atol=1e-12)
    assert_allclose(found.rmse, np.sqrt(np.mean((Y - Phi @ found.values) ** 2, axis=0)))


def test_outputs_count_by_their_noise():
    robot, noise = arm(), np.array([3.0, 0.01])
    better = []
    for seed in range(8):
        X, Y, truth = recording(robot, 300, seed, noise=noise)
        known = true_values(robot, truth)
        found = identify(robot, X, Y)
        assert_allclose(found.model.output_scale, noise, rtol=0.2)
        alike = ParametricDynamics(robot, prior="robot").fit(X, Y)
        better.append([np.abs(found.values - known), np.abs(alike.parameters_ - known)])
    ours, theirs = np.mean(better, axis=0)
    # What the elbow alone can tell of the lower link is not spoilt by the shoulder's noise.
    lower = [
        i for i, name in enumerate(found.names) if name.startswith(("mcy of l", "mcz of l"))
    ]
    assert len(lower) == 2
    assert (ours[lower] < 0.2 * theirs[lower]).all()


def test_perfect_data_give_the_parameters_to_many_digits():
    robot = arm()
    X = motion(robot, 400)
    truth = FormulaPlant(robot, perturbation=0.3).parameters
    found = identify(robot, X, robot.regressor_of(X) @ truth, extras=())
    assert_allclose(found.values, base_parameters(robot).of(truth), rtol=1e-6)
    assert np.isfinite(found.std).all()


# Columns beside the bodies, and the description.


def test_offset_friction_and_rotors_are_found():
    robot, n = arm(), 800
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, size=(n, 6))
    dq, ddq = X[:, 2:4], X[:, 4:]
    known = {"offset": [0.5, -0.2], "viscous": [0.3, 0.1], "coulomb": [0.4, 0.2]}
    Y = robot.regressor_of(X) @ robot.parameters + known["offset"]
    Y += known["viscous"] * dq + known["coulomb"] * np.tanh(dq / 0.02)
    Y += 0.02 * rng.normal(size=Y.shape)
    found = identify(robot, X, Y, extras=tuple(known))
    r = found.model.base_.rank
    assert found.names[r:] == tuple(f"{key} of {j}" for key in known for j in robot.joints)
    assert (
        np.abs(found.values[r:] - np.concatenate([*known.values()])) < 3 * found.std[r:]
    ).all()
    assert (found.std[r:] < 0.01).all()
    # The first joint's rotor turns with the link it carries: only their sum can be known.
    more = identify(robot, X, Y + ddq * [0.2, 0.1], extras=(*known, "rotor"))
    rotor = dict(zip(more.names, more.std, strict=True))
    assert rotor["rotor of shoulder"] > 100
    first = next(name for name in more.names if name.startswith("Iyy of upper"))
    both = [more.names.index(first), more.names.index("rotor of shoulder")]
    total = base_parameters(robot).of(robot.parameters)[both[0]] + 0.2
    assert_allclose(more.values[both].sum(), total, atol=0.02)
    assert more.covariance[np.ix_(both, both)].sum() < 0.02**2


def test_the_description_stands_beside_what_was_found():
    robot = sensed()
    X, Y, _ = recording(robot, 300, noise=[0.1] * 6)
    found = identify(robot, X, Y)
    r = found.model.base_.rank
    assert_array_equal(found.description[:r], base_parameters(robot).of(robot.parameters))
    assert np.isnan(found.description[r:]).all()
    assert found.names == found.model.parameter_names_


def test_a_geometry_alone_describes_no_parameters():
    robot = Robot.from_dh([(0, 0, 0, 0), (1.0, 0, 0, 0)], gravity=(0, -9.81, 0))
    X = np.random.default_rng(0).uniform(-2, 2, size=(200, 6))
    truth = np.tile([2, 0.3, 0, 0, 0.1, 0, 0.1, 0, 0, 0.15], 2)
    noise = 0.01 * np.random.default_rng(1).normal(size=(200, 2))
    found = identify(robot, X, robot.regressor_of(X) @ truth + noise)
    assert np.isnan(found.description).all()
    r = found.model.base_.rank
    assert (np.abs(found.values[:r] - found.model.base_.of(truth)) < 3.5 * found.std[:r]).all()


# Motion that says little.


def one_joint(robot, n):
    """The shoulder swings, the elbow stays at 0."""
    t, X = np.arange(n) / 50, np.zeros((n, 6))
    X[:, 0] = np.sin(2 * t) + 0.3 * np.sin(5 * t)
    X[:, 2] = 2 * np.cos(2 * t) + 1.5 * np.cos(5 * t)
    X[:, 4] = -4 * np.sin(2 * t) - 7.5 * np.sin(5 * t)
    return X


def test_what_the_motion_does_not_show_stays_as_described_and_is_not_claimed_to_be_known():
    robot = arm()
    X = one_joint(robot, 500)
    truth = FormulaPlant(robot, perturbation=0.3, seed=3).parameters
    rng = np.random.default_rng(0)
    Y = robot.regressor_of(X) @ truth + 0.05 * rng.normal(size=(500, 2))
    found = identify(robot, X, Y, extras=())
    base = found.model.base_
    known = base.of(truth)
    assert (np.abs(found.values - known) < 3 * found.std).all()
    rows = robot.regressor_of(X)[..., base.columns].reshape(-1, base.rank)
    _, sizes, axes = np.linalg.svd(rows)
    shown, hidden = axes[sizes > 1e-6 * sizes[0]], axes[sizes <= 1e-6 * sizes[0]]
    assert len(hidden) >= 2
    assert_allclose(hidden @ found.values, hidden @ found.description, atol=1e-5)
    deviations = [np.sqrt(np.diagonal(a @ found.covariance @ a.T)) for a in (shown, hidden)]
    assert deviations[0].max() < 0.1
    assert deviations[1].min() > 1
    assert_allclose(deviations[1], 1e-6**-0.5, rtol=1e-2)  # 1/√λ


@pytest.mark.parametrize("noise", [0.0, 1e-9])
def test_motion_that_shows_little_and_no_noise_give_finite_answers(noise):
    robot = arm()
    X = one_joint(robot, 300)
    truth = FormulaPlant(robot, perturbation=0.3, seed=3).parameters
    Y = robot.regressor_of(X) @ truth + noise * np.random.default_rng(0).normal(size=(300, 2))
    found = identify(robot, X, Y, extras=())
    known = found.model.base_.of(truth)
    assert np.isfinite(found.parameters).all()
    unknown = ["I" in name for name in found.names]  # the elbow rests, and moments are many
    assert (np.abs(found.values - known)[unknown] < 3 * found.std[unknown]).all()


def test_no_motion_at_all_tells_no_parameter():
    robot, rng = arm(), np.random.default_rng(0)
    X = np.zeros((100, 6))
    Y = robot.regressor_of(X) @ robot.parameters + 0.1 * rng.normal(size=(100, 2))
    found = identify(robot, X, Y)
    assert np.isfinite(found.std).all()
    assert (found.std[: found.model.base_.rank] > 1).all()
    assert np.isfinite(found.parameters).all()


def test_a_large_penalty_leaves_the_description():
    X, Y, _ = recording(arm(), 200)
    found = identify(arm(), X, Y, penalty=1e9)
    r = found.model.base_.rank
    assert_allclose(found.values[:r], found.description[:r], atol=1e-3)


# Bodies that can exist.


def test_possible_parameters_come_with_bodies_that_have_them():
    robot = Robot(URDF.replace('ixx="0.03"', 'ixx="0.02"'))  # arm()'s cannot exist
    truth = FormulaPlant(robot, perturbation=0.3).parameters
    X = motion(robot, 500)
    rng = np.random.default_rng(0)
    Y = robot.regressor_of(X) @ truth + 1e-4 * rng.normal(size=(500, 2))
    assert check_consistency(robot, truth).ok
    found = identify(robot, X, Y)
    assert found.distance == 0
    assert found.consistency.ok
    r = found.model.base_.rank
    assert_allclose(found.model.base_.of(found.parameters), found.values[:r], atol=1e-6)


def test_parameters_that_no_bodies_have_are_at_a_distance_in_deviations():
    robot = arm()
    impossible = robot.parameters.copy()
    impossible[[14, 16, 19]] = -0.1, 0.2, 0.05  # moments of the lower link
    X = motion(robot, 500)
    rng = np.random.default_rng(0)
    Y = robot.regressor_of(X) @ impossible + 0.01 * rng.normal(size=(500, 2))
    found = identify(robot, X, Y)
    assert found.consistency.ok
    assert check_consistency(robot, found.parameters).ok
    r = found.model.base_.rank
    off = found.model.base_.of(found.parameters) - found.values[:r]
    known = np.sqrt(off @ np.linalg.solve(found.covariance[:r, :r], off))
    assert found.distance > 3
    assert_allclose(found.distance, known, rtol=1e-3)


def test_what_was_found_can_be_saved(tmp_path):
    X, Y, _ = recording(arm(), 200)
    found = identify(arm(), X, Y)
    imparo.save(found, tmp_path / "found.imparo")
    again = imparo.load(tmp_path / "found.imparo")
    assert_array_equal(again.covariance, found.covariance)
    assert again.names == found.names
    assert str(again.consistency) == str(found.consistency)
    assert_array_equal(again.model.predict(X), found.model.predict(X))


# Bad input.


def _bad(name):
    X, Y = rows_and_outputs(arm(), 60)
    hole = X.copy()
    hole[3, 2] = np.nan
    return {
        "NaN in X": (arm(), hole, Y),
        "infinity in Y": (arm(), X, Y / 0),
        "fewer X": (arm(), X[:50], Y),
        "columns missing": (arm(), X[:, :4], Y),
        "outputs missing": (arm(), X, Y[:, :1]),
        "no samples": (arm(), X[:0], Y[:0]),
        "one sample": (arm(), X[:1], Y[:1]),
        "as many numbers as parameters": (arm(), X[:6], Y[:6]),
    }[name]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("NaN in X", "NaN"),
        ("infinity in Y", "infinity"),
        ("fewer X", "50 rows"),
        ("columns missing", "6 were expected"),
        ("outputs missing", "1 outputs"),
        ("no samples", "0 sample"),
        ("one sample", "too few"),
        ("as many numbers as parameters", "6 samples .* too few for 12 parameters"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_bad_recordings_are_refused(name, words):
    with pytest.raises(ValueError, match=words):
        identify(*_bad(name))


@pytest.mark.parametrize(
    "robot", ["arm.urdf", None, Folded(2, 5)], ids=["text", "none", "other"]
)
def test_only_robots_are_identified(robot):
    X, Y = rows_and_outputs(arm(), 60)
    with pytest.raises(TypeError, match="must be a Robot"):
        identify(robot, X, Y)


@pytest.mark.parametrize("options", [{"penalty": -1}, {"penalty": 0}, {"extras": ("nose",)}])
def test_bad_options_are_refused(options):
    X, Y = rows_and_outputs(arm(), 60)
    with pytest.raises(ValueError):
        identify(arm(), X, Y, **options)


# Learners side by side.


def pair():
    return {
        "P": ParametricDynamics(Folded(2, 5)),
        "NP": NonparametricDynamics(n_features=16, sigma=3.0),
    }


def by_hand(model, X, Y, window):
    left = []
    for i in range(len(X)):
        first = not hasattr(model, "n_seen_")
        left.append(Y[i] - (0 if first else model.predict(X[i : i + 1])[0]))
        model.partial_fit(X[i : i + 1], Y[i : i + 1])
    squares = np.square(left)
    return np.sqrt(
        [squares[max(0, i + 1 - window) : i + 1].mean(axis=0) for i in range(len(X))]
    )


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("window", [1, 30, 500])
def test_every_piece_begins_with_what_the_learners_know(pieces, window):
    X, Y = rows_and_outputs(Folded(2, 5), 181, bent=1.0)
    models = {name: model.fit(X[:60], Y[:60]) for name, model in pair().items()}
    before = {name: model.predict(X) for name, model in models.items()}
    calls = []
    errors = streamed(
        models, X[60:], Y[60:], pieces=pieces, window=window, progress=lambda: calls.append(1)
    )
    length = 121 // pieces
    assert len(calls) == 2 * pieces * length
    for name, found in errors.items():
        assert found.shape == (pieces, length, 2)
        for k in range(pieces):
            part = slice(60 + k * length, 60 + (k + 1) * length)
            model = pair()[name].fit(X[:60], Y[:60])
            assert_allclose(found[k], by_hand(model, X[part], Y[part], window), rtol=1e-9)
        if pieces == 1:  # they have learned themselves
            assert models[name].n_seen_ == 181
            assert_array_equal(models[name].predict(X), model.predict(X))
        else:
            assert_array_equal(models[name].predict(X), before[name])


def test_learners_that_know_nothing_begin_with_zero():
    X, Y = rows_and_outputs(Folded(2, 5), 20)
    errors = streamed(pair(), X, Y)
    for found in errors.values():
        assert_allclose(found[0, 0], np.abs(Y[0]))


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({"pieces": 0}, 20), ({"pieces": -1}, 20), ({"pieces": 21}, 20), ({"window": 0}, 20),
        ({}, 0), ({}, 19),
    ],
)  # fmt: skip
def test_streams_that_cannot_be_are_refused(options, rows):
    X, Y = rows_and_outputs(Folded(2, 5), 20)
    with pytest.raises(ValueError):
        streamed(pair(), X[:rows], Y if rows else Y[:0], **options)


# Their picture.

GROUPS = {"force (N)": [0, 1, 2], "torque (Nm)": [3, 4, 5]}


def test_wrenches_and_torques_are_grouped_by_their_units():
    wrench = ("Fx", "Fy", "Fz", "Tx", "Ty", "Tz")
    assert dict(output_groups(wrench)) == GROUPS
    # In another order, and for six joints, they are not a wrench.
    assert dict(output_groups(wrench[::-1])) == {"torque (Nm)": [0, 1, 2, 3, 4, 5]}
    assert dict(output_groups(["elbow"])) == {"torque (Nm)": [0]}


@pytest.mark.parametrize("pieces", [1, 4])
def test_errors_are_drawn_with_deviations_over_the_pieces(pieces):
    plt = pytest.importorskip("matplotlib.pyplot")
    rng = np.random.default_rng(0)
    errors = {name: rng.uniform(1, 2, size=(pieces, 50, 6)) for name in ("P", "NP", "SP")}
    errors["SP"][0, 10] = 20.0  # a deviation larger than the mean is cut at 0
    figure = plot_stream(errors, GROUPS, 0.1, title="Two circles", floor={"force (N)": 0.6})
    try:
        axes = figure.axes
        assert [ax.get_ylabel() for ax in axes] == ["RMSE of force (N)", "RMSE of torque (Nm)"]
        assert axes[-1].get_xlabel() == "time (s)"
        assert figure.get_suptitle() == "Two circles"
        shown = [text.get_text() for text in axes[0].get_legend().get_texts()]
        assert [text.split(",")[0] for text in shown] == ["P", "NP", "SP"]
        assert len({line.get_color() for line in axes[0].lines[:3]}) == 3
        assert len({line.get_linestyle() for line in axes[0].lines[:3]}) == 3
        assert [len(ax.lines) for ax in axes] == [4, 3]  # a floor in the first
        assert_array_equal(axes[0].lines[3].get_ydata(), [0.6, 0.6])
        for ax, places in zip(axes, GROUPS.values(), strict=True):
            assert ax.get_ylim()[0] == 0
            assert len(ax.collections) == (3 if pieces > 1 else 0)
            for k, (line, found) in enumerate(zip(ax.lines, errors.values(), strict=False)):
                assert_allclose(line.get_xdata(), 0.1 * np.arange(1, 51))
                values = found[:, :, places].mean(axis=2)
                assert_allclose(line.get_ydata(), values.mean(axis=0))
                if pieces > 1:
                    edges = ax.collections[k].get_paths()[0].vertices[:, 1]
                    high = values.mean(axis=0) + values.std(axis=0)
                    assert_allclose(edges.max(), high.max())
                    assert edges.min() >= 0
    finally:
        plt.close(figure)


def test_learners_of_other_names_and_one_group_are_drawn_too():
    plt = pytest.importorskip("matplotlib.pyplot")
    figure = plot_stream({"mine": np.ones((1, 5, 2))}, output_groups(["a", "b"]), 1.0)
    try:
        (ax,) = figure.axes
        assert [text.get_text() for text in ax.get_legend().get_texts()] == ["mine"]
        assert ax.get_ylabel() == "RMSE of torque (Nm)"
        assert not ax.collections
    finally:
        plt.close(figure)
