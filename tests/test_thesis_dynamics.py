"""Chapter 8: the experiment of the thesis in MuJoCo, shortened, and real robots."""

import os

import numpy as np
import pytest
from sklearn.base import clone

from imparo.dynamics import (
    NonparametricDynamics,
    ParametricDynamics,
    SemiparametricDynamics,
    base_parameters,
    icub_arm,
    icub_circles,
    icub_plant,
    identify,
    prequential,
    recording,
    streamed,
    tune,
    windowed_rmse,
)

pytest.importorskip("pinocchio")
FORCE, TORQUE = slice(0, 3), slice(3, 6)


def test_seventeen_parameters_are_seen_at_the_sensor():
    assert base_parameters(icub_arm()).rank == 17


@pytest.fixture(scope="module")
def errors():
    """Windowed errors along XZ after 2,500 samples of XY, in three pieces of 250."""
    pytest.importorskip("mujoco")
    arm = icub_arm()
    plant = icub_plant(arm)
    xy = plant.simulate(icub_circles(arm, n_samples=2500).xy, seed=0)
    xz = plant.simulate(icub_circles(arm, n_samples=750).xz, seed=1)
    physics, rest = ParametricDynamics(arm), NonparametricDynamics(n_features=200)
    models = {
        "P": physics,
        "NP": tune(rest, xy.X, xy.y).model,
        "SP": tune(SemiparametricDynamics(physics, rest), xy.X, xy.y).model,
    }
    for model in models.values():
        model.fit(xy.X, xy.y)
    found = streamed(models, xz.X, xz.y, pieces=3)
    return {name: values.mean(axis=0) for name, values in found.items()}


@pytest.mark.parametrize("outputs", [FORCE, TORQUE], ids=["force", "torque"])
def test_both_are_better_than_kernels_alone_in_the_first_second(errors, outputs):
    assert errors["SP"][9, outputs].mean() < 0.95 * errors["NP"][9, outputs].mean()


@pytest.mark.parametrize("outputs", [FORCE, TORQUE], ids=["force", "torque"])
def test_both_are_never_much_worse_than_kernels_alone(errors, outputs):
    # 5 % over the ten pieces of the thesis; three pieces have more chance in them.
    SP, NP = (errors[name][:, outputs].mean(axis=1) for name in ("SP", "NP"))
    assert (SP[10:] < 1.1 * NP[10:]).all()


@pytest.mark.parametrize(("outputs", "noise"), [(FORCE, 0.6), (TORQUE, 0.06)])
def test_both_come_to_the_noise_and_physics_alone_does_not(errors, outputs, noise):
    late = {name: found[150:, outputs].mean() for name, found in errors.items()}
    assert late["SP"] < 1.3 * noise
    assert late["NP"] < 1.4 * noise
    assert late["P"] > 2 * late["SP"]


# Real robots.


@pytest.fixture
def data_folder():
    folder = os.environ.get("IMPARO_DATA")
    if not folder:
        pytest.skip("set IMPARO_DATA to the folder with the recordings")
    return folder


@pytest.fixture(params=["icub", "panda", "tiago", "tx40", "ur10e"])
def robot(request, data_folder):
    return recording(request.param, data_folder)


def test_both_are_about_as_good_as_the_better_part_on_what_was_not_seen(robot):
    X, Y, test = robot.log.X, robot.log.y, robot.test
    train = robot.train[:: max(1, len(robot.train) // 5000)]
    physics = ParametricDynamics(robot.robot, **robot.settings)
    rest, found = NonparametricDynamics(n_features=200), {}
    for name, model in (
        ("P", physics),
        ("NP", tune(rest, X[train], Y[train]).model),
        ("SP", tune(SemiparametricDynamics(physics, rest), X[train], Y[train]).model),
    ):
        left = clone(model).fit(X[train], Y[train]).predict(X[test]) - Y[test]
        found[name] = np.mean(np.sqrt(np.mean(left**2, axis=0)) / Y[train].std(axis=0))
    assert found["SP"] < 1.05 * min(found["P"], found["NP"])


def test_the_mass_beyond_the_sensor_of_icub_is_that_of_its_drawings(data_folder):
    icub = recording("icub", data_folder)
    found = identify(icub.robot, icub.log.X, icub.log.y, extras=icub.extras)
    drawn = icub.robot.parameters[::10].sum()
    assert found.names[0] == "mass of r_upper_arm + mass of r_elbow_1"
    assert found.values[0] == pytest.approx(drawn, rel=0.05)
    # Forces of gravity alone say the same, up to the offsets.
    assert found.std[0] < 0.05


def test_a_payload_is_learned_within_30_seconds(data_folder):
    ur = recording("ur10e", data_folder)
    X, Y, size = ur.log.X, ur.log.y, ur.log.y[ur.train].std(axis=0)
    unloaded, loaded = (ur.rows(name) for name in ur.pairs[0])
    earlier = np.setdiff1d(ur.train, unloaded)[-4000:]
    window = round(5 / np.median(np.diff(ur.log.t[unloaded])))
    stiff = ParametricDynamics(ur.robot, **ur.settings)
    agile = clone(stiff).set_params(forgetting=0.99853)
    rest = NonparametricDynamics(n_features=200, sigma=12.0, penalty=1.0, forgetting=0.9998)
    before, after = {}, {}
    for name, model in (("P", stiff), ("SP", SemiparametricDynamics(agile, rest))):
        model.fit(X[earlier], Y[earlier])
        usual = prequential(model, X[unloaded], Y[unloaded]) - Y[unloaded]
        later = prequential(model, X[loaded][: 7 * window], Y[loaded][: 7 * window])
        before[name] = np.sqrt(np.mean((usual / size) ** 2))
        moving = windowed_rmse((later - Y[loaded][: 7 * window]) / size, window)
        after[name] = np.sqrt(np.mean(moving**2, axis=1))[window - 1 :]
    within = 5 * window  # windows that end within 30 s
    assert after["SP"][:within].min() < before["SP"]
    assert after["P"].min() > 1.5 * before["P"]
