"""The arm that the page shows: its circle, its three learners, its commands."""

import json
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from imparo.service.robot_plant import CIRCLES, PAYLOAD, ArmPlant
from imparo.service.robot_view import NOISE, WINDOW, ArmShow

CARRIED = slice(350, 700)  # samples with the payload


@pytest.fixture(scope="module")
def trained():
    """Made once: training takes a second or two."""
    return ArmShow(seed=0)


@pytest.fixture
def show(trained):
    trained.do({"do": "restart"})
    trained.do({"do": "pause", "on": False})
    trained.do({"do": "speed", "factor": 1})
    return trained


@pytest.fixture(scope="module")
def played(trained):
    """Frames of 100 seconds, with a payload from 35 to 70."""
    trained.do({"do": "restart"})
    frames = []
    for i in range(1000):
        if i in (CARRIED.start, CARRIED.stop):
            trained.do({"do": "payload", "on": i == CARRIED.start})
        frames.append(trained.step())
    return frames


def errors(frames, name, kind="force"):
    return np.array([frame[kind][name] for frame in frames])


def without_times(frame):
    return {key: value for key, value in frame.items() if key != "milliseconds"}


def test_frames_are_json_and_hold_what_the_page_needs(played):
    for i, frame in enumerate(played):
        assert json.loads(json.dumps(frame, allow_nan=False)) == frame
        assert frame["n"] == i + 1
        assert frame["t"] == pytest.approx(i / 10)
        assert frame["payload"] is (CARRIED.start <= i < CARRIED.stop)
        assert frame["path"] == "xz"
        assert np.shape(frame["links"]) == (4, 3)
        assert np.shape(frame["measured"]) == (6,)
        for key in ("milliseconds", "force", "torque"):
            assert list(frame[key]) == ["P", "NP", "SP"]
            assert all(value > 0 for value in frame[key].values())


def test_about_says_what_is_shown(show):
    about = json.loads(json.dumps(show.about(), allow_nan=False))
    assert about["learners"] == ["P", "NP", "SP"]
    assert (about["joints"], about["window"], about["rate"]) == (4, WINDOW, 10)
    assert about["units"] == ["N", "Nm"]
    for word in ("1,500 samples", "cable", f"{PAYLOAD:g} kg", "forget"):
        assert word in about["trained"]


def test_in_the_first_two_seconds_physics_helps_and_kernels_alone_know_little(played):
    first = {name: errors(played[:20], name).mean() for name in ("P", "NP", "SP")}
    assert first["SP"] < 0.6 * first["NP"]
    assert first["SP"] < first["P"]


def test_at_steady_state_both_that_have_kernels_reach_the_noise_and_physics_does_not(played):
    settled = played[150 : CARRIED.start]
    for kind, floor in (("force", NOISE[0]), ("torque", NOISE[3])):
        level = {name: errors(settled, name, kind).mean() for name in ("P", "NP", "SP")}
        assert abs(level["NP"] / level["SP"] - 1) < 1 / 3
        # Nobody can predict noise; what is left beside it is less than half of it.
        assert 0.95 * floor < level["SP"] < 1.2 * floor
        assert level["P"] > 1.5 * max(level["NP"], level["SP"])


def test_a_payload_is_felt_by_all_and_learned_first_by_those_with_physics(played):
    for name in ("P", "NP", "SP"):
        found = errors(played, name)
        before = found[150 : CARRIED.start].mean()
        picked_up = found[CARRIED.start : CARRIED.start + WINDOW].max()
        assert picked_up > 1.7 * before
        for end in (CARRIED.stop, len(found)):
            learned = found[end - 50 : end].mean()
            assert learned < 0.3 * before + 0.7 * picked_up
    # After 15 seconds SP is back, and kernels alone are not: to them all of it is new.
    later = slice(CARRIED.start + 150, CARRIED.start + 200)
    before = errors(played, "SP")[150 : CARRIED.start].mean()
    assert errors(played, "SP")[later].mean() < 1.5 * before
    assert errors(played, "NP")[later].mean() > 1.5 * errors(played, "SP")[later].mean()


def test_errors_are_those_of_the_last_30_samples(show):
    """With predictions of 0 they are the root mean squares of what was measured."""

    class Nothing:
        def predict(self, X):
            return np.zeros((1, 6))

        def partial_fit(self, X, y):
            return self

    show._models = dict.fromkeys(show._models, Nothing())
    frames = [show.step() for _ in range(45)]
    for end in (1, 10, 30, 45):
        measured = np.array([frame["measured"] for frame in frames[max(0, end - 30) : end]])
        sizes = np.sqrt(np.mean(measured**2, axis=0))
        assert_allclose(frames[end - 1]["force"]["NP"], sizes[:3].mean(), atol=1e-3)
        assert_allclose(frames[end - 1]["torque"]["P"], sizes[3:].mean(), atol=1e-3)
    show.do({"do": "restart"})


def test_a_payload_is_a_weight_in_the_hand():
    plant = ArmPlant(seed=0)
    X = np.zeros((1, 12))
    X[:, :4] = CIRCLES["xz"][1]
    more = (plant.wrench(X, loaded=True) - plant.wrench(X, loaded=False))[0]
    axes = plant.arm.frames(X[:, :4])[1][0, 3]
    assert_allclose(axes @ more[:3], [0, 0, 9.81 * PAYLOAD], atol=1e-12)
    lever = plant.arm.position(X[0, :4], "tip") - plant.arm.position(X[0, :4], "link_3")
    assert_allclose(axes @ more[3:], np.cross(lever, [0, 0, 9.81 * PAYLOAD]), atol=1e-12)


def test_the_cable_pulls_the_hand_to_the_chest_with_what_its_energy_tells():
    plant, h = ArmPlant(seed=0), 1e-6
    k, kk, slack = plant.cable.stiffness, plant.cable.hardening, plant.cable.slack

    def energy(q):
        x = np.maximum(0, np.linalg.norm(plant.arm.position(q, "tip"), axis=1) - slack)
        return k * x**2 / 2 + kk * x**4 / 4

    for plane in CIRCLES:
        q = plant.paths[plane].at(np.linspace(0, 1, 25))[0]
        X = np.hstack([q, 0 * q, 0 * q])
        felt, axes = plant.pull(X), plant.arm.frames(q)[1]
        # A turn of the elbow moves only the hand, about an axis that the sensor's torque has.
        elbow, wrist = plant.arm.position(q, "link_4"), plant.arm.position(q, "link_3")
        step = h * np.eye(4)[3]
        work = (energy(q + step) - energy(q - step)) / (2 * h)
        force, turn = (
            np.einsum("nij,nj->ni", axes[:, 3], part) for part in (felt[:, :3], felt[:, 3:])
        )
        about_elbow = turn - np.cross(elbow - wrist, force)
        assert_allclose(np.einsum("ni,ni->n", axes[:, 4, :, 2], about_elbow), work, atol=1e-6)
        assert (energy(q) == 0).any() or work.std() > 0.05


@pytest.mark.parametrize("plane", ["xy", "xz"])
def test_the_hand_keeps_to_its_circle_and_never_repeats_its_way(show, plane):
    show.do({"do": "path", "path": plane})
    frames = [show.step() for _ in range(250)][30:]  # the way there takes two seconds
    hands = np.array([frame["links"][-1] for frame in frames])
    u, v = (0, 1) if plane == "xy" else (0, 2)
    away = hands - CIRCLES[plane][0]
    radii, (flat,) = np.hypot(away[:, u], away[:, v]), {0, 1, 2} - {u, v}
    # Joints stray by 0.04 rad, at 0.37 m from the shoulder at most.
    assert np.sqrt(np.mean((radii - 0.1) ** 2)) < 0.04 * 0.37
    assert np.sqrt(np.mean(away[:, flat] ** 2)) < 0.04 * 0.37 * math.sqrt(2)
    apart = np.linalg.norm(hands[:, None] - hands, axis=2)[np.triu_indices(len(hands), 1)]
    assert apart.min() > 0
    upper, fore = (np.linalg.norm(np.diff(f["links"], axis=0), axis=1)[1:] for f in frames[:2])
    assert_allclose(upper, fore, atol=1e-4)  # bones keep their lengths


def test_between_circles_velocities_and_accelerations_are_derivatives():
    plant, h = ArmPlant(seed=1), 1e-5
    times = np.linspace(7.0, 10.0, 50) + np.array([[-h], [0.0], [h]])
    before, now, after = (plant.motion(t, "xz", "xy", t - 7.5) for t in times)
    change = (after - before) / (2 * h)
    assert_allclose(now[:, 4:8], change[:, :4], atol=1e-6)
    assert_allclose(now[:, 8:], change[:, 4:8], atol=1e-5)
    still = plant.motion(times[1], "xy", "xy", times[1])
    assert_allclose(now[-1], still[-1], atol=1e-12)


def test_the_same_seed_and_commands_give_the_same_frames_and_another_seed_others(show):
    def play(arm):
        frames = []
        for i in range(60):
            if i == 20:
                arm.do({"do": "payload", "on": True})
            if i == 30:
                arm.do({"do": "path", "path": "xy"})
            frames.append(without_times(arm.step()))
        return frames

    first = play(show)
    show.do({"do": "restart"})
    assert play(show) == first  # from the trained state, which the first run left alone
    assert play(ArmShow(seed=0)) == first
    assert play(ArmShow(seed=1)) != first
    assert first[29]["path"] == "xz"
    assert first[30]["path"] == "xy"


def test_commands_are_obeyed(show):
    for command in (
        {"do": "payload", "on": True},
        {"do": "path", "path": "xy"},
        {"do": "speed", "factor": 2.5},
        {"do": "pause", "on": True},
    ):
        show.do(command)
    frame = show.step()
    assert (frame["payload"], frame["path"]) == (True, "xy")
    assert (show.speed, show.paused) == (2.5, True)
    show.do({"do": "restart"})
    frame = show.step()
    assert (frame["n"], frame["t"]) == (1, 0)
    assert (frame["payload"], frame["path"]) == (False, "xz")


BAD = {
    "nothing": (None, "must be one of payload, path"),
    "a list": ([], "must be one of payload, path"),
    "no command": ({}, "must be one of payload, path"),
    "unknown": ({"do": "dance"}, "not {'do': 'dance'}"),
    "not a word": ({"do": ["payload"]}, "must be one of payload, path"),
    "a part of the sentence": ({"do": "or"}, "must be one of payload, path"),
    "no switch": ({"do": "payload"}, '"on" must be true or false'),
    "a number as a switch": ({"do": "pause", "on": 1}, '"on" must be true or false'),
    "no path": ({"do": "path"}, '"xy" or "xz"'),
    "unknown path": ({"do": "path", "path": "yz"}, '"xy" or "xz"'),
    "a list as a path": ({"do": "path", "path": ["xy"]}, '"xy" or "xz"'),
    "no factor": ({"do": "speed"}, "from 1 to 10"),
    "too slow": ({"do": "speed", "factor": 0.5}, "from 1 to 10"),
    "too fast": ({"do": "speed", "factor": 11}, "from 1 to 10"),
    "NaN": ({"do": "speed", "factor": math.nan}, "from 1 to 10"),
    "a word as a factor": ({"do": "speed", "factor": "2"}, "from 1 to 10"),
    "true as a factor": ({"do": "speed", "factor": True}, "from 1 to 10"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_command_is_said_so_and_changes_nothing(show, case):
    command, words = BAD[case]
    with pytest.raises(ValueError, match=words):
        show.do(command)
    assert (show.speed, show.paused) == (1.0, False)
    frame = show.step()
    assert (frame["n"], frame["payload"], frame["path"]) == (1, False, "xz")


def test_memory_stays_as_it_is(show):
    """Ten times as many steps keep no more numbers. (Rows wait in groups of 32.)"""

    def numbers(thing, seen):
        if id(thing) in seen:
            return 0
        seen.add(id(thing))
        if isinstance(thing, np.ndarray):
            return thing.size
        if isinstance(thing, dict):
            return sum(numbers(part, seen) for part in thing.values())
        if isinstance(thing, list | tuple) or type(thing).__name__ == "deque":
            return 1 + sum(numbers(part, seen) for part in thing)
        return numbers(vars(thing), seen) if hasattr(thing, "__dict__") else 1

    for _ in range(32):
        show.step()
    before = numbers(show, set())
    for _ in range(320):
        show.step()
    assert numbers(show, set()) == before
