"""Learners of dynamics are saved, kept in folders, and survive the death of their process.

Run as a script, this file is that process.
"""

import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import imparo
from dynamics_tools import Folded, arm, rows_and_outputs
from imparo import lifelong
from imparo.dynamics import NonparametricDynamics, ParametricDynamics, SemiparametricDynamics
from imparo.errors import RecoveryWarning
from imparo.lifelong import durable
from imparo.persistence import fingerprint

OWN = {"n_features": 12, "forgetting": 0.999}
MAKERS = {
    "parametric": lambda: ParametricDynamics(Folded(2, 5), forgetting=0.99, prior="robot"),
    "nonparametric": lambda: NonparametricDynamics(**OWN),
    "semiparametric": lambda: SemiparametricDynamics(
        ParametricDynamics(Folded(2, 5), output_scale=[1.0, 0.1]), NonparametricDynamics(**OWN)
    ),
    "not revised": lambda: SemiparametricDynamics(
        Folded(2, 5), NonparametricDynamics(**OWN), revise=False
    ),
}
ROBOTS = {
    "torques": lambda: ParametricDynamics(arm(), extras=("offset", "viscous")),
    "a robot and kernels": lambda: SemiparametricDynamics(arm(), NonparametricDynamics(**OWN)),
}
ALL = {**MAKERS, **ROBOTS}


def samples(name, n, seed=0):
    robot = arm() if name in ROBOTS else Folded(2, 5)
    X, Y = rows_and_outputs(robot, n, seed, bent=1.0)
    return X, Y


def opened(path, learner=None, **options):
    return lifelong.open(path, learner, **{"sync": "never", **options})


def said(model, X):
    """All that a learner says; bits of its state may differ by what predictions leave."""
    return np.array(model.predict(X, return_std=True))


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


# Files.


@pytest.mark.parametrize("name", list(ALL))
@pytest.mark.parametrize("seen", [0, 1, 40, 300])
def test_a_saved_model_goes_on_to_the_bit(name, seen, tmp_path):
    X, Y = samples(name, 600)
    model = ALL[name]()
    if seen:
        model.partial_fit(X[:seen], Y[:seen])
    imparo.save(model, tmp_path / "model.imparo")
    same = imparo.load(tmp_path / "model.imparo")
    assert fingerprint(same) == fingerprint(model)
    if seen:
        assert_array_equal(said(same, X[:20]), said(model, X[:20]))
    for part in np.split(np.arange(seen, 600), [1, 2, 300 - seen // 2]):
        for one in (model, same):
            one.partial_fit(X[part], Y[part])
    assert_array_equal(said(same, X[:20]), said(model, X[:20]))
    assert fingerprint(same) == fingerprint(model)


def test_a_saved_model_keeps_names_scales_and_parameters(tmp_path):
    X, Y = samples("semiparametric", 900)
    X[600:] *= 40
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = MAKERS["semiparametric"]().fit(frame, Y)
    imparo.save(model, tmp_path / "model.imparo")
    same = imparo.load(tmp_path / "model.imparo")
    assert list(same.feature_names_in_) == list("abcdef")
    assert same.nonparametric_.rescaled_ == model.nonparametric_.rescaled_ != []
    assert_array_equal(same.parametric_.parameters_, model.parametric_.parameters_)
    assert same.parametric_.parameter_names_ == model.parametric_.parameter_names_
    assert_array_equal(said(same, frame), said(model, frame))


# Folders.


@pytest.mark.parametrize("name", list(ALL))
def test_a_folder_keeps_all_that_was_learned_to_the_bit(name, tmp_path, small_snapshots):
    X, Y = samples(name, 350)
    J = X.shape[1] // 3
    plain = ALL[name]()
    cuts = np.split(np.arange(350), [1, 2, 3, 10, 40, 41, 200, 300])
    for number, rows in enumerate(cuts):
        x, y = X[rows], Y[rows]
        with opened(tmp_path / "robot", ALL[name]()) as robot:
            if number % 3 == 0:
                robot.learn(x, y)
                plain.partial_fit(x, y)
            elif number % 3 == 1:
                robot.learn(x[:, :J], x[:, J : 2 * J], x[:, 2 * J :], y)
                plain.learn(x[:, :J], x[:, J : 2 * J], x[:, 2 * J :], y)
            else:
                one = x[0, :J], x[0, J : 2 * J], x[0, 2 * J :], y[0]
                assert robot.learn(*one) == number + 1
                plain.learn(*one)
            assert_array_equal(said(robot, X[:9]), said(plain, X[:9]))
    with opened(tmp_path / "robot") as robot:
        assert robot.number == len(cuts)
        assert robot.n_seen_ == plain.n_seen_
        assert_array_equal(said(robot, X[:9]), said(plain, X[:9]))
        one = robot.predict(X[0, :J], X[0, J : 2 * J], X[0, 2 * J :])
        assert_array_equal(one, plain.predict(X[0, :J], X[0, J : 2 * J], X[0, 2 * J :]))
        robot.partial_fit(X, Y)
    assert_array_equal(
        said(opened(tmp_path / "robot", writable=False), X[:9]),
        said(plain.partial_fit(X, Y), X[:9]),
    )


def test_one_row_of_all_columns_is_learned_too(tmp_path):
    X, Y = samples("semiparametric", 5)
    with opened(tmp_path / "robot", MAKERS["semiparametric"]()) as robot:
        robot.learn(X[0], Y[0])
        robot.learn(X[1:], Y[1:])
        plain = MAKERS["semiparametric"]().fit(X[:1], Y[:1]).partial_fit(X[1:], Y[1:])
        assert_array_equal(said(robot, X), said(plain, X))


def test_names_of_columns_are_kept(tmp_path):
    X, Y = samples("nonparametric", 20)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    with opened(tmp_path / "robot", MAKERS["nonparametric"]()) as robot:
        robot.learn(frame, Y)
    with opened(tmp_path / "robot") as robot:
        assert list(robot.feature_names_in_) == list("abcdef")
        with pytest.raises(ValueError, match="feature names"):
            robot.learn(frame[list("fedcba")], Y)


def _with(X, value):
    bad = X.copy()
    bad[-1, -1] = value
    return bad


BAD = {
    "NaN": lambda X, Y: (_with(X, np.nan), Y),
    "infinity in y": lambda X, Y: (X, _with(Y, np.inf)),
    "a column too few": lambda X, Y: (X[:, 1:], Y),
    "an output too many": lambda X, Y: (X, np.column_stack([Y, Y])),
    "a row too few": lambda X, Y: (X, Y[1:]),
    "no motion": lambda X, Y: (_with(X, 1e60), Y),
    "unequal parts": lambda X, Y: (X[:, :2], X[1:, 2:4], X[:, 4:], Y),
    "NaN in a part": lambda X, Y: (X[:, :2], _with(X[:, 2:4], np.nan), X[:, 4:], Y),
}


@pytest.mark.parametrize("case", list(BAD))
@pytest.mark.parametrize("name", ["parametric", "nonparametric", "semiparametric"])
def test_a_bad_sample_leaves_the_folder_and_the_learner_as_they_were(name, case, tmp_path):
    X, Y = samples(name, 540)
    folder = tmp_path / "robot"
    with opened(folder, MAKERS[name]()) as robot:
        robot.learn(X[:50], Y[:50])
        before, bits, number = files(folder), fingerprint(robot._learner), robot.number
        with pytest.raises((ValueError, TypeError)):
            robot.learn(*BAD[case](X, Y))
        assert files(folder) == before
        assert fingerprint(robot._learner) == bits
        assert robot.number == number
        robot.learn(X[50:60], Y[50:60])
        expected = MAKERS[name]().fit(X[:50], Y[:50]).partial_fit(X[50:60], Y[50:60])
        assert_array_equal(said(robot, X[:9]), said(expected, X[:9]))


def test_a_folder_is_opened_again_with_the_same_parameters_only(tmp_path):
    X, Y = samples("semiparametric", 20)
    with opened(tmp_path / "robot", MAKERS["semiparametric"]()) as robot:
        robot.learn(X, Y)
    opened(tmp_path / "robot", MAKERS["semiparametric"]()).close()
    other = MAKERS["semiparametric"]().set_params(nonparametric__sigma=3.0)
    with pytest.raises(ValueError, match="has nonparametric="):
        opened(tmp_path / "robot", other)
    with pytest.raises(ValueError, match="holds a SemiparametricDynamics"):
        opened(tmp_path / "robot", MAKERS["parametric"]())


def test_a_robot_that_was_used_meanwhile_is_the_same_robot(tmp_path):
    X, Y = samples("torques", 20)
    with opened(tmp_path / "robot", ROBOTS["torques"]()) as robot:
        robot.learn(X, Y)
    arm().regressor_of(X)
    opened(tmp_path / "robot", ROBOTS["torques"]()).close()


def test_features_that_cannot_be_drawn_again_are_refused(tmp_path):
    for learner in (
        NonparametricDynamics(random_state=None),
        SemiparametricDynamics(Folded(2, 5), NonparametricDynamics(random_state=None)),
    ):
        with pytest.raises(ValueError, match="random_state=None"):
            opened(tmp_path / "robot", learner)


# Kills.


def sample(number):
    X, Y = samples("semiparametric", (number % 3) * 4 + 1, seed=number)
    return (X[:, :2], X[:, 2:4], X[:, 4:], Y) if number % 2 else (X, Y)


def live(folder):
    """Learn until killed, and print each number that was acknowledged."""
    os.write(1, b"pid %d\n" % os.getpid())
    robot = lifelong.open(folder, MAKERS["semiparametric"](), sync="never")
    while True:
        os.write(1, b"%d\n" % robot.learn(*sample(robot.number + 1)))


def serve(folder):
    """Live once for each line that is read; forked, so that the library is imported once."""
    warnings.simplefilter("ignore", RecoveryWarning)
    durable._LEAST_RECORDS = 4000
    MAKERS["semiparametric"]().partial_fit(*sample(2))  # compile before the first life
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                live(folder)
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(1)
        os.write(1, b"end %d\n" % os.waitpid(child, 0)[1])


def test_a_killed_learner_has_learned_exactly_what_it_acknowledged(tmp_path):
    reference, acknowledged, referred = MAKERS["semiparametric"](), 0, 0
    rng, folder = np.random.default_rng(0), tmp_path / "robot"
    probe = samples("semiparametric", 9)[0]
    process = subprocess.Popen(
        [sys.executable, __file__, str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        for _ in range(5):
            process.stdin.write("live\n")
            process.stdin.flush()
            word, child = process.stdout.readline().split()
            assert word == "pid"
            time.sleep(rng.uniform(0.05, 0.3))
            os.kill(int(child), signal.SIGKILL)
            for line in process.stdout:
                if line.startswith("end"):
                    assert int(line.split()[1]) == signal.SIGKILL
                    break
                assert int(line) == acknowledged + 1  # none left out, none twice
                acknowledged += 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RecoveryWarning)
                reader = lifelong.open(folder, writable=False)
            assert reader.number in (acknowledged, acknowledged + 1)
            for number in range(referred + 1, reader.number + 1):
                given = sample(number)
                (reference.partial_fit if len(given) == 2 else reference.learn)(*given)
            if reader.number:
                assert_array_equal(said(reader, probe), said(reference, probe))
            acknowledged = referred = reader.number
        process.stdin.close()
    assert acknowledged > 20


if __name__ == "__main__":
    serve(sys.argv[1])
