"""``imparo dynamics`` as a person uses it, who also makes mistakes."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import imparo
from dynamics_tools import URDF
from imparo import lifelong
from imparo.cli import main

pytest.importorskip("pinocchio")

from imparo.dynamics import (
    FormulaPlant,
    NonparametricDynamics,
    ParametricDynamics,
    Robot,
    SemiparametricDynamics,
    multisine,
    read_log,
    tune,
)

# Of bodies that can exist, as MuJoCo wants them.
ARM = URDF.replace('ixx="0.03"', 'ixx="0.02"').replace('ixx="0.003"', 'ixx="0.0025"')
SMALL = ("--features", "30")
GIVEN = (*SMALL, "--sigma", "4", "--penalty", "0.1")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a robot and logs of it: torques.npz, more.csv, wrench.npz, long.npz."""
    folder = tmp_path_factory.mktemp("robot")
    (folder / "arm.urdf").write_text(ARM, encoding="utf-8")
    for name, seconds, seed, sensor in (
        ("torques.npz", 15, 0, None),
        ("more.csv", 10, 1, None),
        ("wrench.npz", 10, 2, "wrist"),
        ("long.npz", 150, 3, None),
    ):
        robot = Robot(ARM, sensor=sensor)
        plant = FormulaPlant(robot, nonlinear=1.0, offset=0.5, noise=0.1)
        plant.simulate(multisine(robot, duration=seconds, rate=20, seed=seed)).save(
            folder / name
        )
    return folder


@pytest.fixture
def here(place, monkeypatch):
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("IMPARO_DATA", raising=False)
    return place


def run(*arguments):
    return CliRunner().invoke(main, ["dynamics", *map(str, arguments)])


def done(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def as_json(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return strict(result.stdout)


def strict(text):
    def no_constant(name):
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=no_constant)


def refused(*arguments, code=3):
    """Return the one sentence that a command ends with."""
    result = run(*arguments)
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    lines = result.output.strip().splitlines()
    sentence = lines[-1]
    assert sentence.startswith("Error: ")
    assert code == 2 or len(lines) == 1, result.output
    assert not re.search(r"[.!?]\s+[A-Z]", sentence), "more than one sentence"
    return sentence


def with_robot(command, log, *more):
    return (command, log, "--robot", "arm.urdf", *more)


def cells(output):
    """Rows of all tables, as text."""
    rows = [re.split("[│┃]", line)[1:-1] for line in output.splitlines()]
    return [[cell.strip() for cell in row] for row in rows if row]


def rows_of(name):
    log = read_log(name)
    return log.X, log.y


# Processes.


def process(*arguments, **options):
    command = [sys.executable, "-m", "imparo", "dynamics", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_from_a_description_to_a_model_in_three_commands(here, tmp_path, processes):
    log, model = tmp_path / "run.csv", tmp_path / "arm.imparo"
    arm = ("--robot", here / "arm.urdf")
    steps = (
        ("simulate", *arm, "--motion", "multisine", "--plant", "formula", "--rate", 20,
         "--duration", 10, "--noise", 0.1, "-o", log),
        ("fit", log, *arm, *GIVEN, "-o", model, "--json"),
        ("identify", log, *arm),
    )  # fmt: skip
    outputs = []
    for step in steps:
        if processes:
            running = process(*step)
            out, err = running.communicate(timeout=60)
            code = running.returncode
        else:
            result = run(*step)
            out, err, code = result.stdout, result.stderr, result.exit_code
        assert code == 0, err
        assert err == ""
        outputs.append(out)
    assert "Log of 200 samples" in outputs[0]
    assert strict(outputs[1])["samples"] == 200
    assert "mcx of upper" in outputs[2]
    assert isinstance(imparo.load(model), SemiparametricDynamics)


def test_a_mistake_is_one_line_of_a_process_and_its_exit_code(here):
    running = process("fit", "missing.npz", "--robot", "arm.urdf", "--json")
    out, err = running.communicate(timeout=60)
    assert running.returncode == 4
    assert strict(out) == {"error": "there is no file or folder missing.npz", "code": 4}
    assert err == "Error: there is no file or folder missing.npz\n"


def written(folder):
    """Bytes in the folder, where a file may be renamed or removed at any moment."""
    size = 0
    for file in folder.glob("*"):
        with contextlib.suppress(FileNotFoundError):
            size += file.stat().st_size
    return size


@pytest.mark.parametrize("how", [pytest.param("SIGKILL", marks=pytest.mark.slow), "SIGINT"])
def test_an_interrupted_stream_has_kept_what_it_has_learned(here, tmp_path, how):
    folder = tmp_path / "kept"
    running = process(*with_robot("stream", "long.npz", *GIVEN, "--keep", folder))
    first, end = None, time.monotonic() + 60
    while time.monotonic() < end and running.poll() is None:
        size = written(folder)
        first = size if first is None and size else first
        if first is not None and size > first + 30_000:
            break
        time.sleep(0.005)
    running.send_signal(getattr(signal, how))
    out, err = running.communicate(timeout=60)
    assert running.returncode == {"SIGKILL": -signal.SIGKILL, "SIGINT": 130}[how]
    assert "Traceback" not in out + err
    assert err == ("Error: interrupted\n" if how == "SIGINT" else "")
    X, Y = rows_of("long.npz")
    with lifelong.open(folder, writable=False) as kept:
        seen = kept.n_seen_
        said = kept.predict(X[:50])
    assert 0 < seen < len(X)
    known = same_learner()
    for i in range(seen):
        known.partial_fit(X[i : i + 1], Y[i : i + 1])
    assert_array_equal(said, known.predict(X[:50]))
    done(*with_robot("stream", "more.csv", *GIVEN, "--keep", folder))
    with lifelong.open(folder, writable=False) as kept:
        assert kept.n_seen_ == seen + 200


def same_learner():
    return SemiparametricDynamics(
        ParametricDynamics(Robot("arm.urdf")),
        NonparametricDynamics(n_features=30, sigma=4.0, penalty=0.1),
    )


# simulate


@pytest.mark.parametrize("suffix", ["npz", "csv", "parquet"])
def test_a_simulated_log_is_that_of_the_library(here, tmp_path, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    file = tmp_path / f"log.{suffix}"
    out = done(
        "simulate", "--robot", "arm.urdf", "--motion", "multisine", "--plant", "formula",
        "--rate", 20, "--duration", 5, "--seed", 4, "--noise", 0.2, "-o", file,
    )  # fmt: skip
    robot = Robot(ARM)
    usual = {"nonlinear": 1.0, "offset": 1.0, "velocity_cutoff": 10.0, "noise": 0.2}
    path = multisine(robot, duration=5, rate=20, seed=4)
    log = FormulaPlant(robot, perturbation=0.2, **usual).simulate(path, seed=4)
    found = read_log(file)
    assert_array_equal(found.X, log.X)
    assert_array_equal(found.y, log.y)
    assert "Log of 100 samples over 4.95 s; joints shoulder, elbow" in out
    assert "low-pass at 10 Hz" in out
    assert "formula, not simulated" in out
    assert str(file) in out


@pytest.mark.parametrize("plant", ["formula", "mujoco"])
@pytest.mark.parametrize("sensor", [None, "wrist"])
def test_a_rigid_plant_is_the_description_itself(here, tmp_path, plant, sensor):
    if plant == "mujoco":
        pytest.importorskip("mujoco")
    more = () if sensor is None else ("--sensor", sensor)
    file = tmp_path / "log.npz"
    done(
        "simulate", "--robot", "arm.urdf", *more, "--motion", "multisine", "--plant", plant,
        "--rigid", "--rate", 20, "--duration", 2, "-o", file,
    )  # fmt: skip
    log, robot = read_log(file), Robot(ARM, sensor=sensor)
    assert_allclose(log.y, robot.inverse_dynamics(log.q, log.dq, log.ddq), atol=1e-9)


def test_a_payload_weighs_from_its_second_on(here, tmp_path):
    common = (
        "simulate", "--robot", "arm.urdf", "--sensor", "wrist", "--motion", "multisine",
        "--plant", "formula", "--rigid", "--rate", 100, "--duration", 4, "--frame", "hand",
    )  # fmt: skip
    done(*common, "-o", tmp_path / "without.npz")
    done(*common, "-o", tmp_path / "with.npz", "--payload", "0.5@2")
    light, heavy = (read_log(tmp_path / f"{name}.npz") for name in ("without", "with"))
    force = np.linalg.norm((heavy.y - light.y)[:, :3], axis=1)
    before = light.t < 2
    assert not force[before].any()
    p = Robot(ARM).position(light.q, "hand")
    a = (p[2:] - 2 * p[1:-1] + p[:-2]) * 100**2
    weight = 0.5 * np.linalg.norm(a + np.array([0, 0, 9.81]), axis=1)
    assert_allclose(force[1:-1][~before[1:-1]], weight[~before[1:-1]], rtol=1e-3)


def test_icubs_hand_runs_round_the_circle_that_was_asked_for(here, tmp_path):
    pytest.importorskip("icub_models")
    for plane, flat in (("xy", 2), ("xz", 1)):
        file = tmp_path / "log.npz"
        out = done("simulate", "--plant", "formula", "--plane", plane, "--duration", 3,
                   "--radius", 0.08, "--speed", 0.5, "-o", file)  # fmt: skip
        assert f"circle of 0.08 m in {plane}" in out
        from imparo.dynamics import icub_arm

        log = read_log(file)
        p = icub_arm().position(log.q, "r_hand_dh_frame")
        assert np.ptp(p[:, flat]) < 1e-6
        round_it = np.delete(p, flat, axis=1)
        A = np.column_stack([2 * round_it, np.ones(len(p))])
        *middle, rest = np.linalg.lstsq(A, np.square(round_it).sum(axis=1), rcond=None)[0]
        assert_allclose(np.sqrt(rest + np.dot(middle, middle)), 0.08, atol=1e-6)
        step = np.linalg.norm(p[1] - p[0])  # a chord of 0.05 m on the circle
        assert_allclose(step, 2 * 0.08 * np.sin(0.05 / 0.16), rtol=1e-4)


@pytest.mark.parametrize(
    ("options", "words", "code"),
    [
        (("--plane", "xy"), "--frame must name the link", 2),
        (("--frame", "nose"), "no link or joint 'nose'", 3),
        (("--frame", "hand", "--centre", "1,2"), "three numbers were expected", 2),
        (("--frame", "hand", "--centre", "a,b,c"), "three numbers were expected", 2),
        (("--frame", "hand", "--centre", "nan,0,0"), "three finite numbers", 3),
        (("--frame", "hand", "--centre", "5,5,5"), "out of reach", 3),
        (("--frame", "hand", "--centre", "0,0,0.5", "--radius", "9"), "out of reach", 3),
        (("--motion", "multisine", "--payload", "1"), "--payload needs --frame", 2),
        (("--motion", "multisine", "--frame", "hand", "--payload", "x"), "KG or KG@SECONDS", 2),
        (("--motion", "multisine", "--frame", "hand", "--payload", "-1"), "above 0", 2),
        (("--motion", "multisine", "--frame", "hand", "--payload", "nan"), "above 0", 2),
        (("--motion", "multisine", "--frame", "hand", "--payload", "1@2@3"), "KG@SECONDS", 2),
        (("--motion", "multisine", "--frame", "nose", "--payload", "1"), "no link 'nose'", 3),
        (("--motion", "multisine", "--duration", "0.01"), "no sample", 3),
        (("--motion", "multisine", "--duration", "inf"), "finite number", 3),
        (("--motion", "multisine", "--noise", "nan"), "noise=nan", 3),
        (("--sensor", "nose", "--motion", "multisine"), "no joint 'nose' for a sensor", 3),
        (("--motion", "multisine", "-o", "log.doc"), "must end in .npz, .csv or .parquet", 2),
        (("--motion", "multisine", "-o", "missing/log.npz"), "there is no folder missing", 4),
    ],
)
def test_what_cannot_be_simulated_is_refused(here, options, words, code):
    common = ("simulate", "--robot", "arm.urdf", "--plant", "formula", "--rate", 20)
    said = refused(*common, "--duration", 2, "-o", "never.npz", *options, code=code)
    assert words in said
    assert not (here / "never.npz").exists()


def test_a_circle_beyond_icubs_reach_is_refused(here):
    pytest.importorskip("icub_models")
    said = refused("simulate", "--radius", 0.5, "--duration", 1, "-o", "never.npz")
    assert "out of reach" in said


# fit


def by_hand(name, kinds):
    """σ, λ and errors of the last quarter of a log, for two of the learners."""
    X, Y = rows_of(name)
    cut = len(X) - round(0.25 * len(X))
    found = {}
    for kind in kinds:
        model = NonparametricDynamics(n_features=30)
        if kind == "SP":
            model = SemiparametricDynamics(ParametricDynamics(Robot(ARM)), model)
        model = tune(model, X[:cut], Y[:cut]).model.fit(X[:cut], Y[:cut])
        part = model.nonparametric if kind == "SP" else model
        errors = np.sqrt(np.mean((model.predict(X[cut:]) - Y[cut:]) ** 2, axis=0))
        found[kind] = part.sigma, part.penalty, errors
    return found


def test_fit_says_what_the_library_finds(here):
    report = as_json(*with_robot("fit", "torques.npz", *SMALL))
    assert (report["samples"], report["held_out"]) == (300, 75)
    assert report["joints"] == report["outputs"] == ["shoulder", "elbow"]
    for kind, (sigma, penalty, errors) in by_hand("torques.npz", ("NP", "SP")).items():
        assert report["chosen"][kind] == {"sigma": sigma, "penalty": penalty}
        assert_allclose(report["rmse"][kind], errors, rtol=1e-9)
    X, Y = rows_of("torques.npz")
    left = ParametricDynamics(Robot(ARM)).fit(X[:225], Y[:225]).predict(X[225:]) - Y[225:]
    assert_allclose(report["rmse"]["P"], np.sqrt(np.mean(left**2, axis=0)), rtol=1e-9)


def test_the_text_of_fit_holds_the_numbers_of_its_json(here):
    command = with_robot("fit", "wrench.npz", "--sensor", "wrist", *GIVEN)
    report, out = as_json(*command), done(*command)
    assert "wrench.npz: 200 samples, the last 50 held out" in out
    table = {row[0]: row[1:] for row in cells(out)}
    values = np.array([report["rmse"][kind] for kind in ("P", "NP", "SP")])
    for k, name in enumerate(("Fx", "Fy", "Fz", "Tx", "Ty", "Tz")):
        assert table[name] == [f"{value:.4g}" for value in values[:, k]]
    means = values[:, :3].mean(axis=1), values[:, 3:].mean(axis=1)
    for name, mean in zip(("mean force (N)", "mean torque (Nm)"), means, strict=True):
        assert table[name] == [f"{value:.4g}" for value in mean]
    assert "NP: sigma 4, penalty 0.1" in out
    assert "SP: sigma 4, penalty 0.1" in out


@pytest.mark.parametrize("kind", ["SP", "P", "np"])
def test_a_saved_model_has_learned_the_whole_log(here, tmp_path, kind):
    file = tmp_path / "arm.imparo"
    report = as_json(*with_robot("fit", "torques.npz", *GIVEN, "--kind", kind, "-o", file))
    assert (report["kept"], report["file"]) == (kind.upper(), str(file))
    both = same_learner()
    known = {"SP": both, "P": both.parametric, "NP": both.nonparametric}[kind.upper()]
    X, Y = rows_of("torques.npz")
    model = imparo.load(file)
    assert type(model) is type(known)
    assert model.n_seen_ == 300
    assert_array_equal(model.predict(X), clone(known).fit(X, Y).predict(X))


def test_options_reach_the_learners(here, tmp_path):
    file = tmp_path / "arm.imparo"
    as_json(*with_robot(
        "fit", "torques.npz", *GIVEN, "--extras", "offset, viscous", "--forgetting", 0.99,
        "--parametric-forgetting", 0.98, "--seed", 7, "-o", file,
    ))  # fmt: skip
    model = imparo.load(file)
    assert tuple(model.parametric.extras) == ("offset", "viscous")
    assert model.parametric.forgetting == 0.98
    assert (model.nonparametric.forgetting, model.nonparametric.random_state) == (0.99, 7)


def test_joints_and_their_positions_are_those_that_were_named(here, tmp_path):
    file = tmp_path / "arm.imparo"
    more = ("--joints", "shoulder", "--locked", "elbow=0.7", "--sign", "-1", *GIVEN)
    report = as_json(*with_robot("fit", "torques.npz", *more, "-o", file))
    assert report["outputs"] == ["shoulder"]
    robot = imparo.load(file).parametric.robot
    known = Robot(ARM, joints=["shoulder"], locked={"elbow": 0.7}, sign=-1)
    assert_array_equal(robot.parameters, known.parameters)
    assert_array_equal(robot.regressor([[0.3]]), known.regressor([[0.3]]))


def test_names_with_brackets_are_shown_as_they_are(here, tmp_path):
    odd = ARM.replace('"shoulder"', '"shoulder [left]"').replace('"hand"', '"[/hand]"')
    (tmp_path / "odd.urdf").write_text(odd, encoding="utf-8")
    robot = Robot(odd)
    log = FormulaPlant(robot, noise=0.1).simulate(multisine(robot, duration=10, rate=20))
    log.save(tmp_path / "run[bold].npz")
    about = (tmp_path / "run[bold].npz", "--robot", tmp_path / "odd.urdf")
    assert "shoulder [left]" in done("fit", *about, *GIVEN)
    assert "run[bold].npz" in done("stream", *about, *GIVEN)
    out = done("identify", *about)
    assert "offset of shoulder [left]" in out
    assert "run[bold].npz" in out


# stream


def prequential_by_hand(model, X, Y, window):
    """Root mean squares of every whole window, each sample predicted before it is learned."""
    left = []
    for i in range(len(X)):
        guess = model.predict(X[i : i + 1])[0] if hasattr(model, "n_seen_") else 0.0
        left.append(guess - Y[i])
        model.partial_fit(X[i : i + 1], Y[i : i + 1])
    blocks = np.array(left)[: len(X) // window * window].reshape(-1, window, Y.shape[1])
    return np.sqrt(np.mean(blocks**2, axis=1))


def test_stream_says_what_testing_and_then_learning_gives(here):
    command = with_robot("stream", "more.csv", *GIVEN, "--window", 40)
    report, out = as_json(*command), done(*command)
    X, Y = rows_of("more.csv")
    both = same_learner()
    models = {"P": both.parametric, "NP": both.nonparametric, "SP": both}
    table = [row for row in cells(out) if re.fullmatch(r"[\d.]+", row[0])]
    assert_allclose(report["seconds"], read_log("more.csv").t[39::40])
    for k, (name, model) in enumerate(models.items()):
        errors = prequential_by_hand(clone(model), X, Y, 40).mean(axis=1)
        found = report["rmse"][name]["torque (Nm)"]["mean"]
        assert_allclose(found, errors, rtol=1e-9)
        assert [row[1 + k] for row in table] == [f"{value:.3g}" for value in found]
    assert (report["pieces"], report["samples"], report["window"]) == (1, 200, 40)


def test_pieces_all_begin_with_what_the_training_log_has_taught(here):
    report = as_json(*with_robot(
        "stream", "more.csv", *GIVEN, "--train", "torques.npz", "--pieces", 2, "--window", 25
    ))  # fmt: skip
    X, Y = rows_of("more.csv")
    errors = []
    for part in (slice(0, 100), slice(100, 200)):
        model = same_learner().fit(*rows_of("torques.npz"))
        errors.append(prequential_by_hand(model, X[part], Y[part], 25).mean(axis=1))
    found = report["rmse"]["SP"]["torque (Nm)"]
    assert_allclose(found["mean"], np.mean(errors, axis=0), rtol=1e-9)
    assert_allclose(found["std"], np.std(errors, axis=0), rtol=1e-9)
    assert report["pieces"] == 2


def test_width_and_penalty_are_chosen_by_the_training_log_alone(here):
    common = ("--train", "torques.npz", "--window", 50)
    chosen = as_json(*with_robot("stream", "more.csv", *SMALL, *common))
    X, Y = rows_of("torques.npz")
    for kind in ("NP", "SP"):
        model = NonparametricDynamics(n_features=30)
        if kind == "SP":
            model = SemiparametricDynamics(ParametricDynamics(Robot(ARM)), model)
        model = tune(model, X, Y).model.fit(X, Y)
        errors = prequential_by_hand(model, *rows_of("more.csv"), 50).mean(axis=1)
        assert_allclose(chosen["rmse"][kind]["torque (Nm)"]["mean"], errors, rtol=1e-9)


def test_forces_and_torques_have_tables_of_their_own(here):
    out = done(*with_robot("stream", "wrench.npz", "--sensor", "wrist", *GIVEN))
    assert [line.strip() for line in out.splitlines() if "(N" in line] == [
        "force (N)", "torque (Nm)",
    ]  # fmt: skip


def test_a_kept_learner_goes_on_where_it_stopped(here, tmp_path):
    folder = tmp_path / "kept"
    command = with_robot("stream", "torques.npz", *GIVEN, "--keep", folder)
    first = as_json(*command)["rmse"]
    with lifelong.open(folder, writable=False) as kept:
        assert kept.n_seen_ == 300
    second = as_json(*command)["rmse"]
    X, Y = rows_of("torques.npz")
    with lifelong.open(folder, writable=False) as kept:
        assert kept.n_seen_ == 600
        said = kept.predict(X)
    known = same_learner()
    errors = [prequential_by_hand(known, X, Y, 30).mean(axis=1) for _ in range(2)]
    assert_allclose(first["SP"]["torque (Nm)"]["mean"], errors[0], rtol=1e-9)
    assert_allclose(second["SP"]["torque (Nm)"]["mean"], errors[1], rtol=1e-9)
    assert_array_equal(said, known.predict(X))
    assert second["P"] == first["P"]  # the others are not kept


def test_a_kept_learner_is_let_go_of_when_the_stream_fails(here, tmp_path):
    folder = tmp_path / "kept"
    done(*with_robot("stream", "more.csv", *GIVEN, "--keep", folder))
    log = read_log("more.csv")
    replace(log, q=1e60 * log.q).save(tmp_path / "wild.npz")
    command = with_robot("stream", tmp_path / "wild.npz", *GIVEN, "--keep", folder)
    assert "no motion of a robot" in refused(*command)
    refused(*with_robot("stream", "more.csv", "--features", 32, "--keep", folder))
    with lifelong.open(folder) as kept:  # it can be written
        assert kept.n_seen_ == 200


def test_a_learner_that_is_in_use_is_not_touched(here, tmp_path):
    folder = tmp_path / "kept"
    command = with_robot("stream", "more.csv", *GIVEN, "--keep", folder)
    done(*command)
    with lifelong.open(folder) as kept:
        assert "open for writing" in refused(*command, code=4)
        assert kept.n_seen_ == 200


@pytest.mark.parametrize(
    ("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_errors_are_drawn(here, tmp_path, suffix, start):
    file = tmp_path / f"errors.{suffix}"
    out = done(*with_robot("stream", "more.csv", *GIVEN, "--plot", file))
    assert file.read_bytes().startswith(start)
    assert f"Plot: {file}" in out.replace("\n", "")


# identify


def test_identify_says_what_the_library_finds_as_text_and_as_json(here):
    from imparo.dynamics import identify

    command = with_robot("identify", "torques.npz", "--extras", "offset,viscous")
    report, out = as_json(*command), done(*command)
    found = identify(Robot(ARM), *rows_of("torques.npz"), extras=("offset", "viscous"))
    listed = report["parameters"]
    assert [row["name"] for row in listed] == list(found.names)
    assert_allclose([row["value"] for row in listed], found.values, rtol=1e-9)
    assert_allclose([row["std"] for row in listed], found.std, rtol=1e-6)
    said = [row["description"] for row in listed]
    assert said[-4:] == [None] * 4  # the extra columns
    assert_allclose(said[:-4], found.description[:-4], rtol=1e-9)
    assert_allclose(list(report["rmse"].values()), found.rmse, rtol=1e-9)
    assert report["possible"] == (found.distance == 0)
    table = {row[0]: row[1:] for row in cells(out) if row[1]}
    for row in listed:
        shown = f"{row['description']:.5g}" if row["description"] is not None else ""
        numbers = [f"{row['value']:.5g}", f"{row['std']:.2g}", shown]
        name = next(key for key in table if row["name"].startswith(key))
        assert table[name] == numbers
    for body in report["bodies"]:
        assert re.search(rf"^{body['name']} +{body['mass']:.4f} ", out, re.MULTILINE)


def test_a_recording_is_identified_by_its_name(real_data, here, monkeypatch):
    real_data("icub_arm_ft_small")
    monkeypatch.setenv("IMPARO_DATA", DATA)
    report = as_json("identify", "icub")
    assert report["samples"] == 1405
    assert report["parameters"][0]["name"].startswith("mass of r_upper_arm")
    assert abs(report["parameters"][0]["value"] / 1.541 - 1) < 0.05


DATA = os.environ.get("IMPARO_DATA", "")


# Mistakes that all commands meet.


@pytest.fixture
def broken(here):
    """Files that are no logs or descriptions."""
    lines = (here / "more.csv").read_text(encoding="utf-8").splitlines()
    row = lines[50].split(",")
    row[2] = "nan"
    holes = [*lines[:50], ",".join(row), *lines[51:]]
    (here / "nan.csv").write_text("\n".join(holes), encoding="utf-8")
    read_log("torques.npz")[:1].save(here / "one.npz")
    read_log("torques.npz")[:5].save(here / "five.npz")
    (here / "empty.csv").write_text("", encoding="utf-8")
    (here / "junk.npz").write_bytes(b"junk")
    (here / "bad.urdf").write_text("<robot", encoding="utf-8")
    (here / "folder").mkdir(exist_ok=True)
    return here


ARMED = ("--robot", "arm.urdf")
MISTAKES = [
    (("missing.npz", *ARMED), "there is no file or folder missing.npz", 4),
    (("torques.npz", "--robot", "missing.urdf"), "there is no file missing.urdf", 4),
    (("torques.npz", "--robot", "bad.urdf"), "not well-formed XML", 3),
    (("torques.npz", "--robot", "folder"), "is a folder", 4),
    (("torques.npz", *ARMED, "--joints", "nose"), "no joint 'nose'", 3),
    (("torques.npz", *ARMED, "--sensor", "nose"), "no joint 'nose' for a sensor", 3),
    (("torques.npz", *ARMED, "--sensor", "wrist"), "there are no outputs Fx", 3),
    (("wrench.npz", *ARMED), "there are no outputs shoulder, elbow", 3),
    (("torques.npz", *ARMED, "--locked", "elbow"), "JOINT=POSITION was expected", 2),
    (("torques.npz", *ARMED, "--locked", "nose=1"), "no joint 'nose'", 3),
    (("torques.npz", "--joints", "elbow"), "belong to --robot", 2),
    (("torques.npz", *ARMED, "--extras", "nose"), "may hold offset, viscous", 3),
    (
        ("wrench.npz", *ARMED, "--sensor", "wrist", "--extras", "viscous"),
        "acts in the joints",
        3,
    ),
    (("nan.csv", *ARMED), "is nan in row", 3),
    (("one.npz", *ARMED), "too few", 3),
    (("empty.csv", *ARMED), "empty.csv is empty", 3),
    (("junk.npz", *ARMED), "not an archive", 3),
    (("folder", *ARMED), "is no bag", 3),
    (("bad.urdf", *ARMED), "of no kind that can be read", 3),
    (("panda",), "IMPARO_DATA", 4),
    (("pandas", *ARMED), "there is no file or folder pandas", 4),
]


@pytest.mark.parametrize("command", ["fit", "stream", "identify"])
@pytest.mark.parametrize(
    ("arguments", "words", "code"), MISTAKES, ids=[" ".join(mistake[0]) for mistake in MISTAKES]
)
def test_mistakes_are_told_in_one_sentence(broken, command, arguments, words, code):
    if arguments[0] == "folder":
        pytest.importorskip("rosbags")
    assert words in refused(command, *arguments, code=code)


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (("fit", "five.npz"), "too few", 3),
        (("identify", "five.npz"), "too few", 3),
        (("fit", "torques.npz", "--validation", 0.99), "too few", 3),
        (("fit", "torques.npz", "-o", "missing/arm.imparo"), "there is no folder missing", 4),
        (("fit", "torques.npz", *SMALL, "--sigma", "nan"), "above 0", 3),
        (("identify", "torques.npz", "--penalty", "inf"), "finite", 3),
        (("stream", "more.csv", "--plot", "errors.doc"), "must end in .png, .svg or .pdf", 2),
        (
            ("stream", "more.csv", "--plot", "missing/errors.png"),
            "there is no folder missing",
            4,
        ),
        (("stream", "more.csv", "--train", "missing.npz"), "no file or folder missing.npz", 4),
        (("stream", "more.csv", "--train", "wrench.npz"), "there are no outputs shoulder", 3),
        (("stream", "more.csv", "--train", "torques.npz", "--pieces", 150), "too few", 3),
        (("stream", "more.csv", "--pieces", 2), "--train", 2),
        (("stream", "more.csv", "--keep", "k", "--pieces", 2), "leave --pieces and --train", 2),
        (("stream", "more.csv", "--keep", "k", "--train", "torques.npz"), "leave --pieces", 2),
    ],
)
def test_mistakes_of_one_command_are_told_too(broken, arguments, words, code):
    assert words in refused(*arguments, *ARMED, code=code)
    assert not (broken / "k").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "torques.npz", "--features", 0),
        ("fit", "torques.npz", "--validation", 1),
        ("fit", "torques.npz", "--kind", "best"),
        ("stream", "more.csv", "--window", 0),
        ("stream", "more.csv", "--forgetting", 1.5),
        ("stream", "more.csv", "--keep", "arm.urdf"),
        ("identify", "torques.npz", "--penalty", 0),
        ("simulate", "--rate", 0, "-o", "never.npz"),
        ("simulate",),
    ],
)
def test_options_outside_their_range_are_refused_with_code_2(here, arguments):
    refused(*arguments, *ARMED, code=2)


@pytest.mark.parametrize(
    "option", [(*ARMED,), ("--joints", "r_elbow"), ("--sensor", "nose"), ("--sign", "-1")]
)
def test_a_recording_has_its_robot(real_data, here, monkeypatch, option):
    real_data("icub_arm_ft_small")
    monkeypatch.setenv("IMPARO_DATA", DATA)
    assert "has its robot" in refused("identify", "icub", *option, code=2)


def test_a_folder_without_the_recording_is_named(here, monkeypatch):
    monkeypatch.setenv("IMPARO_DATA", str(here))
    assert "has no file icub_arm_ft_small.npz" in refused("identify", "icub", code=4)
    monkeypatch.setenv("IMPARO_DATA", str(here / "missing"))
    assert "there is no folder" in refused("identify", "icub", code=4)


@pytest.mark.parametrize(
    ("module", "extra", "arguments"),
    [
        ("pinocchio", "robot", ("fit", "torques.npz", *ARMED)),
        ("pinocchio", "robot", ("identify", "torques.npz", *ARMED)),
        ("matplotlib.pyplot", "plot", ("stream", "more.csv", *ARMED, "--plot", "errors.png")),
        ("mujoco", "sim", ("simulate", *ARMED, "--motion", "multisine", "-o", "never.npz")),
        ("icub_models", "robot", ("simulate", "-o", "never.npz")),
        ("rosbags", "logs", ("fit", "run.bag", *ARMED)),
        ("pyarrow", "logs", ("fit", "run.parquet", *ARMED)),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_what_is_not_installed_is_named(here, monkeypatch, module, extra, arguments):
    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, module, None)
    for name in ("run.bag", "run.parquet"):
        (here / name).write_bytes(b"")
    assert f"imparo[{extra}]" in refused(*arguments, code=6)


@pytest.mark.parametrize("command", [(), ("simulate",), ("fit",), ("stream",), ("identify",)])
def test_every_command_explains_itself_with_examples(command):
    out = done(*command, "--help")
    assert "Examples:" in out
    assert "imparo dynamics" in out
