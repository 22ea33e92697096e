"""Logs in memory and in files of columns."""

import gzip
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imparo.dynamics.logs.differentiation import differentiate
from imparo.dynamics.logs.log import Log, concatenate
from imparo.dynamics.logs.reading import read_log

STATES = ("q", "dq", "ddq")


def make_log(n=30, J=2, T=6, seed=0, **notes):
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.uniform(0.001, 0.1, n))
    outputs = [f'F {k}, "{"äω"[k % 2]}"' for k in range(T)]
    joints = [f"arm {j};x[{j}]" for j in range(J)]
    return Log(t, *rng.normal(size=(3, n, J)), rng.normal(size=(n, T)), joints, outputs, notes)


def table(path, columns, delimiter=","):
    """Write columns by name as text."""
    names, values = list(columns), np.column_stack(list(columns.values()))
    lines = [delimiter.join(names)] + [delimiter.join(map(repr, r)) for r in values.tolist()]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def arm():
    """Columns of a file of two joints and their torques, with dq but not ddq."""
    t = np.arange(40) / 50
    q = np.column_stack([np.sin(t), t**2])
    dq = np.column_stack([np.cos(t), 2 * t])
    return t, q, dq, 3 * q - dq


def columns_of(arm, pattern="{}_{}", names=("elbow", "wrist")):
    t, *parts = arm
    found = {"t": t}
    for key, part in zip(("q", "dq", "tau"), parts, strict=True):
        found |= {pattern.format(key, j): part[:, k] for k, j in enumerate(names)}
    return found


# In memory.


def test_slices_and_selections_are_logs_of_the_same_numbers():
    log = make_log(source="here")
    part = log[3:20:4]
    np.testing.assert_array_equal(part.X, np.hstack([log.q, log.dq, log.ddq])[3:20:4])
    np.testing.assert_array_equal(part.t, log.t[3:20:4])
    assert part.notes == log.notes
    assert len(part) == 5
    assert log[:] == log
    assert log[1:] != log
    turned = log.select(joints=log.joints[::-1], outputs=[log.outputs[4]])
    np.testing.assert_array_equal(turned.ddq, log.ddq[:, ::-1])
    np.testing.assert_array_equal(turned.y, log.y[:, [4]])
    between = log.between(log.t[5], log.t[9])
    np.testing.assert_array_equal(between.t, log.t[5:9])
    with pytest.raises(ValueError, match="no joints knee; these are arm"):
        log.select(joints=["knee"])
    for rows in (slice(5, 5), slice(None, None, -1), slice(90, None)):
        with pytest.raises(ValueError, match="empty or run backwards"):
            log[rows]
    with pytest.raises(TypeError, match="cut by slices"):
        log[3]


def test_a_log_keeps_what_it_was_given():
    rng = np.random.default_rng(0)
    t, q = np.arange(3.0), rng.normal(size=(3, 1))
    log = Log(t, q, q, q, q, ["a"], ["b"])
    q[:] = 9
    assert abs(log.q).max() < 5
    with pytest.raises(ValueError, match="read-only"):
        log.q[0] = 1
    with pytest.raises(AttributeError):
        log.q = q


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"t": [0.0, 1.0, 1.0]}, r"t must increase, but in row 2"),
        ({"t": [0.0, 1.0]}, "q has shape"),
        ({"t": []}, "t has shape"),
        ({"q": np.zeros((3, 2))}, "q has 2 columns, but there are 1 names: a"),
        ({"ddq": [[0.0], [np.nan], [0.0]]}, "ddq of a is nan in row 1"),
        ({"y": [[0.0], [0.0], [np.inf]]}, "y of b is inf in row 2"),
        ({"y": [0.0, 0.0, 0.0]}, "y has shape"),
        ({"joints": []}, "joints is empty"),
        ({"joints": [" a"]}, "without spaces around"),
        ({"outputs": ["b\n"]}, "without spaces around"),
    ],
)
def test_what_makes_no_log_is_refused_in_one_sentence(change, message):
    column = np.zeros((3, 1))
    parts = {"t": np.arange(3.0), "q": column, "dq": column, "ddq": column, "y": column}
    with pytest.raises(ValueError, match=message):
        Log(**{**parts, "joints": ["a"], "outputs": ["b"], **change})


def test_names_must_be_text_and_differ():
    zeros = [np.zeros((1, 2))] * 4
    for joints, error in (("ab", TypeError), ([1, 2], TypeError), (["a", "a"], ValueError)):
        with pytest.raises(error, match="joints"):
            Log([0.0], *zeros, joints, ["a", "b"])
    with pytest.raises(TypeError, match="text to text"):
        Log([0.0], *zeros, ["a", "b"], ["a", "b"], {"rate": 5})


def test_recordings_are_joined_with_stamps_that_increase():
    a, b = make_log(10, source="a", robot="arm"), make_log(5, seed=1, source="b", robot="arm")
    joined = concatenate([a, b, a])
    np.testing.assert_array_equal(joined.X, np.vstack([a.X, b.X, a.X]))
    np.testing.assert_array_equal(joined.t[:10], a.t)
    np.testing.assert_allclose(np.diff(joined.t)[10:14], np.diff(b.t), atol=1e-12)
    assert joined.t[10] - joined.t[9] == pytest.approx(np.median(np.diff(b.t)))
    assert joined.notes == {"source": "a; b", "robot": "arm", "parts": "0:10, 10:15, 15:25"}
    assert "parts" not in joined[3:].notes
    later = Log(b.t + 100, b.q, b.dq, b.ddq, b.y, b.joints, b.outputs)
    np.testing.assert_array_equal(concatenate([a, later]).t, np.append(a.t, later.t))
    with pytest.raises(ValueError, match="log 1 has joints"):
        concatenate([a, make_log(4, J=3)])
    with pytest.raises(ValueError, match="no logs"):
        concatenate([])


# Saved and read again.


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 20), st.integers(1, 3), st.integers(0, 3), st.integers(0, 99))
def test_what_was_saved_is_read_bit_for_bit(tmp_path_factory, n, J, T, seed):
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("logs")
    notes = {"source": 'a "b", c\n# d', "Größe": "1 µm"}
    log = make_log(n, J, T, seed, **notes)
    extreme = (log.t * 1e9, log.q * 1e-300, log.dq / 3, -0.0 * log.ddq, log.y)
    scaled = Log(*extreme, log.joints, log.outputs, log.notes)
    for suffix in ("npz", "csv", "parquet"):
        for written in (log, scaled):
            written.save(folder / f"log.{suffix}")
            found = read_log(folder / f"log.{suffix}")
            assert found == written
            assert found.X.tobytes() == written.X.tobytes()


@pytest.mark.parametrize("suffix", ["npz", "csv", "parquet"])
def test_a_saved_log_is_read_in_part(tmp_path, suffix):
    pytest.importorskip("pyarrow")
    log = make_log(J=3)
    log.save(tmp_path / f"log.{suffix}")
    joints, outputs = log.joints[::-2], log.outputs[4:1:-1]
    found = read_log(
        tmp_path / f"log.{suffix}", joints=joints, outputs=outputs, rows=slice(2, 9)
    )
    assert found == log[2:9].select(joints, outputs)


def test_saving_says_what_is_wrong_with_a_path(tmp_path):
    log = make_log()
    with pytest.raises(ValueError, match=r"must end in \.npz, \.csv or \.parquet"):
        log.save(tmp_path / "log.mat")
    with pytest.raises(FileNotFoundError, match="no folder"):
        log.save(tmp_path / "missing" / "log.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        log.save(tmp_path / "folder.csv")
    log.save(tmp_path / "log.csv")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder.csv", "log.csv"]


# Columns by their names.


@pytest.mark.parametrize(
    ("names", "pattern"),
    [(("elbow", "wrist"), "{}_{}"), (("elbow", "wrist"), "{}.{}"), ((1, 2), "{}{}"),
     ((0, 1), "{}[{}]"), ((1, 2), "{}_{}"), (("elbow", "wrist"), "{}_{} [rad]")],
    ids=["named", "dotted", "numbered", "brackets", "underscored", "units"],
)  # fmt: skip
@pytest.mark.parametrize(
    "delimiter", [",", ";", "\t", " "], ids=["comma", "semi", "tab", "space"]
)
def test_columns_are_found_by_their_names(tmp_path, arm, names, pattern, delimiter):
    if " " in pattern and delimiter == " ":
        pattern = f'"{pattern}"'
    t, q, dq, tau = arm
    path = table(tmp_path / "a.csv", columns_of(arm, pattern, names), delimiter)
    log = read_log(path)
    expected = names if isinstance(names[0], str) else [f"joint{k}" for k in names]
    assert log.joints == log.outputs == tuple(expected)
    np.testing.assert_array_equal(log.q, q[10:])
    np.testing.assert_array_equal(log.dq, dq[10:])
    np.testing.assert_array_equal(log.y, tau[10:])
    np.testing.assert_array_equal(log.ddq, differentiate(t, dq)[0][10:])
    turned = read_log(path, joints=expected[::-1])
    np.testing.assert_array_equal(turned.X, log.select(expected[::-1]).X)
    np.testing.assert_array_equal(turned.y, log.y[:, ::-1])


def test_numbered_columns_may_be_named(tmp_path, arm):
    path = table(tmp_path / "a.csv", columns_of(arm, "{}{}", (1, 2)))
    assert read_log(path, joints=["elbow", "wrist"]).outputs == ("elbow", "wrist")
    with pytest.raises(ValueError, match="no joints elbow, wrist, hand; these are joint1"):
        read_log(path, joints=["elbow", "wrist", "hand"])


@pytest.mark.parametrize(
    "names",
    [["fx", "fy", "fz", "tx", "ty", "tz"], ["FX", "FY", "FZ", "MX", "MY", "MZ"],
     [f"wrench.{p}.{a}" for p in ("force", "torque") for a in "xyz"],
     [f"ft_{p}_{a} [N]" for p in ("force", "torque") for a in "xyz"]],
    ids=["short", "moments", "dotted", "prefixed"],
)  # fmt: skip
def test_wrenches_are_found_in_any_order_and_chosen_beside_torques(tmp_path, arm, names):
    columns = columns_of(arm)
    six = np.random.default_rng(0).normal(size=(40, 6))
    for k in (3, 0, 5, 1, 4, 2):
        columns[names[k]] = six[:, k]
    path = table(tmp_path / "a.csv", columns)
    with pytest.raises(ValueError, match=r"several kinds of outputs.*'wrench', 'tau'"):
        read_log(path)
    log = read_log(path, outputs="wrench")
    assert log.outputs == ("Fx", "Fy", "Fz", "Tx", "Ty", "Tz")
    np.testing.assert_array_equal(log.y, six[10:])
    np.testing.assert_array_equal(read_log(path, outputs="tau").y, arm[3][10:])


def test_any_columns_may_be_mapped(tmp_path, arm):
    t, q, dq, tau = arm
    columns = {"clock": t, "act 1": q[:, 0], "act 2": q[:, 1], "v1": dq[:, 0], "v2": dq[:, 1]}
    columns |= {"current": tau[:, 0], "q_noise": tau[:, 1]}
    path = table(tmp_path / "a.csv", columns)
    where = {"t": "clock", "q": ["act 1", "act 2"], "dq": ["v1", "v2"], "y": "current"}
    log = read_log(path, columns=where, joints=["a", "b"], outputs=["amps"])
    np.testing.assert_array_equal(log.X[:, :4], np.hstack([q, dq])[10:])
    np.testing.assert_array_equal(log.y, tau[10:, :1])
    assert (log.joints, log.outputs) == (("a", "b"), ("amps",))
    derived = read_log(path, columns={**where, "dq": None, "y": None})
    np.testing.assert_array_equal(derived.dq, differentiate(t, q)[0][10:])
    assert derived.joints == ("act 1", "act 2")
    assert derived.y.shape == (30, 0)
    with pytest.raises(ValueError, match="no column speed; its columns are clock, act 1"):
        read_log(path, columns={**where, "dq": ["speed", "v2"]})
    with pytest.raises(ValueError, match="its keys are t, q, dq, ddq and y"):
        read_log(path, columns={"tau": ["current"]})


def test_text_without_names_is_read_by_number(tmp_path, arm):
    t, q, dq, tau = arm
    rows = np.column_stack([t, q, dq, tau])
    np.savetxt(tmp_path / "a.txt", rows, fmt="%.17g")
    where = {"t": 0, "q": [1, 2], "dq": [3, 4], "y": [5, 6]}
    log = read_log(tmp_path / "a.txt", columns=where, outputs=["x", "y"])
    np.testing.assert_array_equal(log.X[:, :4], rows[10:, 1:5])
    with pytest.raises(ValueError, match="has no line of names"):
        read_log(tmp_path / "a.txt")
    header = "t q1 q2 dq1 dq2 tau1 tau2"
    np.savetxt(tmp_path / "b.txt", rows, fmt="%.17g", header=header)
    np.testing.assert_array_equal(read_log(tmp_path / "b.txt").X, log.X)
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress((tmp_path / "b.txt").read_bytes()))
    np.testing.assert_array_equal(read_log(tmp_path / "c.csv.gz").X, log.X)


def test_headers_with_quotes_spaces_comments_and_marks_are_read(tmp_path):
    rows = "".join(f'  {k / 50}, "{k}" ,{-k},\r\n\r\n% pause\r\n' for k in range(12))
    text = '\ufeff# made by hand\r\n "time (s)" , "q_right elbow" ,tau_right elbow ,\r\n' + rows
    (tmp_path / "a.csv").write_bytes(text.encode())
    log = read_log(tmp_path / "a.csv")
    assert log.joints == ("right elbow",)
    assert (log.q[0], log.y[0], log.t[0]) == (10, -10, 0.2)


def test_arrays_of_an_archive_are_read_by_key(tmp_path, arm):
    t, q, dq, tau = arm
    single = q.astype(np.float32)
    np.savez(tmp_path / "a.npz", t=t, q=single, dq=dq, tau=tau, ddq_old=dq, extra=["x"])
    log = read_log(tmp_path / "a.npz", joints=["a", "b"])
    np.testing.assert_array_equal(log.q, single[10:])
    np.testing.assert_array_equal(log.y, tau[10:])
    assert log.outputs == ("a", "b")
    where = {"q": "q", "ddq": "dq", "dq": "dq", "y": ["tau", "t"], "t": None}
    log = read_log(tmp_path / "a.npz", columns=where, rate=7)
    np.testing.assert_array_equal(log.y, np.column_stack([tau, t]))
    np.testing.assert_allclose(log.t, np.arange(40) / 7, rtol=1e-15)
    assert log.notes["t"] == "not recorded; rows counted at 7 Hz"
    with pytest.raises(ValueError, match="no column of time"):
        read_log(tmp_path / "a.npz", columns=where)


def test_parquet_of_others_is_read_with_times_and_lists(tmp_path, arm):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    t, q, dq, tau = arm
    ns = 1_700_000_000_000_000_000 + np.round(t * 1e9).astype(np.int64)
    columns = {
        "timestamp": pyarrow.array(ns).cast(pyarrow.timestamp("ns")),
        "position": pyarrow.array(q.tolist()),
        "velocity": pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(dq.ravel()), 2),
        "effort": pyarrow.array(tau.tolist()),
        "label": pyarrow.array(["x"] * 40),
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    log = read_log(tmp_path / "a.parquet")
    np.testing.assert_array_equal(log.X[:, :4], np.hstack([q, dq])[10:])
    np.testing.assert_array_equal(log.y, tau[10:])
    np.testing.assert_allclose(log.t, t[10:], atol=1e-12)
    with pytest.raises(ValueError, match=r"label of .* rows of numbers were expected"):
        read_log(tmp_path / "a.parquet", columns={"y": "label"})
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-20])
    with pytest.raises(ValueError, match="not a Parquet file"):
        read_log(tmp_path / "b.parquet")


# Units.


@pytest.mark.parametrize(("unit", "scale"), [("ns", 10**9), ("us", 10**6), ("ms", 1000)])
def test_stamps_in_other_units_keep_all_their_digits(tmp_path, arm, unit, scale):
    start = 1_700_000_000 * scale
    lines = [f"{start + k * scale // 50},{k}" for k in range(20)]
    for head, how in ((f"time_{unit}", {}), (f"t [{unit}]", {}), ("t", {"time_unit": unit})):
        (tmp_path / "a.csv").write_text("\n".join([f"{head},q1", *lines]))
        log = read_log(tmp_path / "a.csv", **how)
        np.testing.assert_allclose(log.t, np.arange(10, 20) / 50, rtol=1e-14)
        assert log.notes["start"] == f"{start} {unit}"
    with pytest.raises(ValueError, match="too long for seconds"):
        read_log(tmp_path / "a.csv")
    with pytest.raises(ValueError, match="'h' is no unit of time"):
        read_log(tmp_path / "a.csv", time_unit="h")
    (tmp_path / "a.csv").write_text("\n".join(["time_s,q1", *lines]))
    with pytest.raises(ValueError, match=r"time_unit is 'ns', but the column .* says 's'"):
        read_log(tmp_path / "a.csv", time_unit="ns")


def test_degrees_are_converted_and_contradictions_refused(tmp_path, arm):
    path = table(tmp_path / "a.csv", columns_of(arm))
    plain, turned = read_log(path), read_log(path, degrees=True)
    np.testing.assert_allclose(turned.X, plain.X * math.pi / 180, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(turned.y, plain.y)
    some = read_log(path, degrees=["wrist"])
    np.testing.assert_array_equal(some.q, np.column_stack([plain.q[:, 0], turned.q[:, 1]]))
    with pytest.raises(ValueError, match="from degrees hip; these are elbow, wrist"):
        read_log(path, degrees=["hip"])
    table(path, columns_of(arm, "{}_{} [deg]"))
    with pytest.raises(ValueError, match=r"q_elbow \[deg\] .* give degrees=True"):
        read_log(path)
    table(path, columns_of(arm, "{}_{} (rad)"))
    with pytest.raises(ValueError, match="is in rad; leave degrees out"):
        read_log(path, degrees=True)


# Files that are no logs.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("# only\n", "is empty"),
        ("t,q1\n", "names but no rows"),
        ("t,x\n0,1\n", "no positions.* among t, x"),
        ("q1\n1\n", "no column of time"),
        ("t,q1,q1\n0,1,1\n", "two columns named 'q1'"),
        ("t,q1,q_1\n0,1,1\n", "q1 and q_1 for the same joint"),
        ("t,q1,q3\n0,1,1\n", "q1, q3; a number is missing"),
        ("t,q1\n0,1\n1\n", "line 3 of .* has 1 cells where 2 were expected"),
        ("t,q1\n0,1\n0.1,one\n", "line 3 of .* has 'one' in the column q1"),
        ("t,q1\n0,1\n0.1,1_000\n", "line 3 of .* has '1_000'"),
        ("t;q1\n0;1\n0.1;1,5\n", "line 3 of .* has '1,5'"),
        ("t,q1\n0,1\n0.1,\n", "q of joint1 is nan in row 1"),
        ("t,q1\n0,1\n0.1,inf\n", "q of joint1 is inf in row 1"),
        ("t,q1\n0,1\n0,1\n", "row 1 it is 0.0, which repeats"),
        ("t,q1\n0,1\n-1,1\n", "row 1 it is -1.0, which is before"),
        ("t,q1\n0,1\n", "1 samples are too few"),
        ("t,q_a,dq_b\n0,1,1\n", "columns for dq, dq_b, but positions of the joints a"),
        (
            "t,q_a,q_b,tau_a\n0,1,1,1\n",
            "for y, tau_a, but positions of the joints a, b",
        ),
    ],
)
def test_a_file_that_is_no_log_is_refused_in_one_sentence(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        read_log(tmp_path / "a.csv")
    assert "\n" not in str(caught.value)


def test_python_objects_in_archives_are_not_loaded(tmp_path):
    objects = np.array([[{}], [[]]], dtype=object)
    np.savez(tmp_path / "a.npz", t=np.arange(2.0), q=objects)
    with pytest.raises(ValueError, match="Python objects, which are not loaded"):
        read_log(tmp_path / "a.npz")
    with open(tmp_path / "single.npz", "wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match="not an archive"):
        read_log(tmp_path / "single.npz")
    np.savez(tmp_path / "b.npz", t=np.arange(2.0), q=np.zeros((2, 1)) * 1j)
    with pytest.raises(ValueError, match="holds complex128"):
        read_log(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", t=np.arange(2) / 9, q=np.zeros((3, 1)), dq=np.zeros((2, 1)))
    with pytest.raises(ValueError, match=r"3 rows|2 rows"):
        read_log(tmp_path / "c.npz")


def test_damage_anywhere_in_an_archive_gives_a_sentence(tmp_path):
    make_log(n=3, T=1).save(tmp_path / "a.npz")
    content, rng = (tmp_path / "a.npz").read_bytes(), np.random.default_rng(0)
    refused = 0
    for place in rng.integers(0, len(content), 150):
        changed = bytearray(content)
        changed[place] ^= 1 << int(rng.integers(8))
        (tmp_path / "b.npz").write_bytes(bytes(changed))
        try:
            read_log(tmp_path / "b.npz")
        except ValueError as error:
            refused += "\n" not in str(error)
    assert refused > 100


def test_bad_rows_are_left_out_on_demand_and_counted(tmp_path):
    lines = ["t,q1,tau1"] + [f"{k / 100},{k},{k}" for k in range(40)]
    lines[8] = "0.07,,7"
    lines[20] = "0.02,19,19"
    lines[30] = lines[29]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    log = read_log(tmp_path / "a.csv", drop=True)
    assert log.notes["dropped"] == "1 rows not finite, 2 whose stamps do not increase"
    assert len(log) == 40 - 3 - 10
    np.testing.assert_allclose(log.dq, 100, rtol=1e-9)


def test_paths_and_options_that_do_not_fit_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file or folder"):
        read_log(tmp_path / "missing.csv")
    (tmp_path / "a.xls").write_text("t")
    with pytest.raises(ValueError, match="of no kind that can be read"):
        read_log(tmp_path / "a.xls")
    with pytest.raises(ValueError, match="not a bag, and wrench has no meaning there"):
        read_log(tmp_path / "a.xls", wrench="/ft")


def test_later_rows_of_a_file_change_no_bit_of_earlier_ones(tmp_path, arm):
    logs = []
    for change in (0.0, 50.0):
        columns = columns_of(arm)
        del columns["dq_elbow"], columns["dq_wrist"]
        for name in list(columns)[1:]:
            columns[name] = columns[name] + change * (np.arange(40) >= 25)
        logs.append(read_log(table(tmp_path / "a.csv", columns), rate=33))
    before = logs[0].t < 25 / 50
    assert 5 < before.sum() < len(before)
    for name in (*STATES, "y", "t"):
        one, other = (getattr(log, name) for log in logs)
        np.testing.assert_array_equal(one[before], other[before])
    assert not np.array_equal(logs[0].q, logs[1].q)


def test_real_recordings_are_read_from_their_archives(real_data, tmp_path):
    data = real_data("panda_dynamics")
    np.savez(tmp_path / "panda.npz", **{key: data[key][:3000] for key in data})
    log = read_log(tmp_path / "panda.npz", window=61, lag=30)
    slopes = data["ddq_derived"][30:2970]
    error = np.sqrt(np.mean((log.ddq - slopes) ** 2, axis=0)) / slopes.std(axis=0)
    assert log.joints[-1] == "joint7"
    assert error.max() < 0.5
