"""Bags are written with rosbags and compared with what was put into them."""

import re
import shutil

import numpy as np
import pytest

from imparo.dynamics.logs.reading import read_log

pytest.importorskip("rosbags")

from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_typestore

KINDS = ["ros1", "sqlite3", "mcap"]
EPOCH = 1_700_000_000 * 10**9
STORES = {
    kind: get_typestore(Stores.ROS1_NOETIC if kind == "ros1" else Stores.ROS2_HUMBLE)
    for kind in KINDS
}


def header(store, ns, frame=""):
    kinds = store.types
    stamp = kinds["builtin_interfaces/msg/Time"](*map(int, divmod(ns, 10**9)))
    first = "seq" in kinds["std_msgs/msg/Header"].__annotations__
    return kinds["std_msgs/msg/Header"](*([0] if first else []), stamp, frame)


def state(names, q, dq=(), tau=(), stamped=True):
    """A message of joint states; its stamp is set when it is written."""

    def make(store, ns):
        arrays = (np.array(part, dtype=np.float64, order="C") for part in (q, dq, tau))
        top = header(store, ns if stamped else 0)
        return store.types["sensor_msgs/msg/JointState"](top, list(names), *arrays)

    return make


def wrench(six, stamped=True):
    def make(store, ns):
        vector, both = (store.types[f"geometry_msgs/msg/{k}"] for k in ("Vector3", "Wrench"))
        value = both(vector(*six[:3]), vector(*six[3:]))
        if not stamped:
            return value
        kind = store.types["geometry_msgs/msg/WrenchStamped"]
        return kind(header(store, ns, "sensor_link"), value)

    return make


def write(folder, kind, messages, late=0):
    """Write (topic, ns, maker) to a bag; they arrive ``late`` ns after their stamps."""
    store = STORES[kind]
    path = folder / ("bag.bag" if kind == "ros1" else f"bag_{kind}")
    if kind == "ros1":
        writer = Writer1(path)
    else:
        plugin = StoragePlugin.MCAP if kind == "mcap" else StoragePlugin.SQLITE3
        writer = Writer2(path, version=9, storage_plugin=plugin)
    with writer:
        connections = {}
        for topic, ns, make in messages:
            message = make(store, ns)
            if topic not in connections:
                connections[topic] = writer.add_connection(
                    topic, message.__msgtype__, typestore=store
                )
            serialize = store.serialize_ros1 if kind == "ros1" else store.serialize_cdr
            data = serialize(message, message.__msgtype__)
            writer.write(connections[topic], int(ns) + late, bytes(data))
    return path


def motion(n, step_ms=10, start=EPOCH):
    """Stamps with jitter in ns, seconds from the first, and two smooth joints."""
    rng = np.random.default_rng(1)
    ns = start + np.arange(n) * step_ms * 10**6 + rng.integers(0, 10**6, n)
    t = (ns - ns[0]) * 1e-9
    return ns, t, np.column_stack([np.sin(2 * t), np.cos(3 * t) - 1])


def fitted(t, x, window, derivative):
    """Derivative at the last stamp of a window's parabola, by numpy's own least squares."""
    out = np.full(x.shape, np.nan)
    for i in range(window - 1, len(t)):
        s = t[i - window + 1 : i + 1] - t[i]
        c = np.polynomial.polynomial.polyfit(s, x[i - window + 1 : i + 1], 2)
        out[i] = (1, 1, 2)[derivative] * c[derivative]
    return out


@pytest.mark.parametrize("kind", KINDS)
def test_joint_states_in_any_order_come_back_with_derived_accelerations(tmp_path, kind):
    ns, t, q = motion(60)
    dq, tau = 10 * q + 1, 5 * q
    messages = []
    for i, stamp in enumerate(ns):
        turn = slice(None, None, 1 if i % 3 else -1)
        names = ["a", "b"][turn]
        messages.append(("/js", stamp, state(names, q[i][turn], dq[i][turn], tau[i][turn])))
    log = read_log(write(tmp_path, kind, messages, late=7_000_000), joints=["b", "a"])
    assert log.joints == log.outputs == ("b", "a")
    np.testing.assert_allclose(log.t, t[10:], rtol=0, atol=1e-12)
    for got, expected in ((log.q, q), (log.dq, dq), (log.y, tau)):
        np.testing.assert_array_equal(got, expected[10:, ::-1])
    expected = fitted(t, dq, 11, 1)[10:, ::-1]
    np.testing.assert_allclose(log.ddq, expected, atol=1e-7)
    assert "derived from dq" in log.notes["ddq"]
    assert log.notes["start"] == f"{ns[0]} ns since 1970"


@pytest.mark.parametrize("kind", KINDS)
def test_velocities_that_are_not_sent_are_derived_from_positions(tmp_path, kind):
    ns, t, q = motion(40)
    nothing = [np.nan, np.nan]
    messages = [
        ("/js", s, state("ab", row, nothing, row)) for s, row in zip(ns, q, strict=True)
    ]
    log = read_log(write(tmp_path, kind, messages), window=7)
    np.testing.assert_allclose(log.dq, fitted(t, q, 7, 1)[6:], atol=1e-7)
    np.testing.assert_allclose(log.ddq, fitted(t, q, 7, 2)[6:], atol=1e-5)
    assert "3 samples" in log.notes["ddq"]


@pytest.mark.parametrize("stamped", [True, False], ids=["stamped", "by arrival"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_faster_wrench_is_averaged_over_the_past_of_each_joint_state(tmp_path, kind, stamped):
    ns, _, q = motion(40)
    # Two wrenches a step, and some before and after the joint states.
    fast = EPOCH - 10**7 + np.arange(84) * 5_000_000 + 1
    six = np.random.default_rng(2).normal(size=(84, 6))
    messages = [("/js", s, state("ab", row, row, row)) for s, row in zip(ns, q, strict=True)]
    messages += [("/ft", s, wrench(w, stamped)) for s, w in zip(fast, six, strict=True)]
    messages.sort(key=lambda m: m[1])
    log = read_log(write(tmp_path, kind, messages), wrench="/ft")
    base, expected = ns[10:], []
    for k, now in enumerate(base):
        known = np.flatnonzero(fast <= now)
        fresh = known[fast[known] > base[k - 1]] if k else []
        expected.append(six[fresh].mean(axis=0) if len(fresh) else six[known[-1]])
    np.testing.assert_allclose(log.y, expected, rtol=0, atol=1e-15)
    assert log.outputs == ("Fx", "Fy", "Fz", "Tx", "Ty", "Tz")
    assert ("frame" in log.notes) == stamped
    assert "late on average" in log.notes["resampled /ft"]


@pytest.mark.parametrize("kind", KINDS)
def test_joints_split_over_messages_and_topics_meet_on_even_stamps(tmp_path, kind):
    ns, _, q = motion(50)
    messages = []
    for s, row in zip(ns, q, strict=True):
        messages.append(("/arm", s, state(["a"], row[:1], row[:1], row[:1])))
        messages.append(("/hand", s + 2_000_000, state(["b"], row[1:], row[1:], row[1:])))
        messages.append(("/hand", s + 3_000_000, state(["c"], row[:1], row[:1], row[:1])))
    path = write(tmp_path, kind, messages)
    topics = ["/arm", "/hand"]
    with pytest.raises(ValueError, match="give the rate"):
        read_log(path, joint_states=topics)
    log = read_log(path, joint_states=topics, rate=50)
    assert log.joints == ("a", "b", "c")
    np.testing.assert_allclose(np.diff(log.t), 0.02, rtol=1e-9)
    for j, shift in ((0, 0), (1, 2_000_000), (2, 3_000_000)):
        seconds = (ns + shift - ns[0]) * 1e-9
        source = q[:, 1] if j == 1 else q[:, 0]
        for k, g in enumerate(log.t):
            # The first 10 samples of each stream fill its window and are not in the log.
            known = [i for i in range(10, 50) if seconds[i] <= g]
            fresh = [i for i in known if k and seconds[i] > log.t[k - 1]]
            expected = source[fresh or known[-1:]].mean()
            assert log.q[k, j] == pytest.approx(expected, abs=1e-15)


def test_later_messages_change_no_bit_of_earlier_samples(tmp_path):
    ns, _, q = motion(60)
    logs = []
    for number, change in enumerate((0.0, 9.0)):
        messages = []
        for i, (s, row) in enumerate(zip(ns, q, strict=True)):
            row = row + change * (i >= 40)
            messages.append(("/js", s, state("ab", row)))
            messages.append(("/ft", s + 4_000_000, wrench(np.repeat(row, 3))))
        (tmp_path / str(number)).mkdir()
        path = write(tmp_path / str(number), "mcap", messages)
        logs.append(read_log(path, wrench=True, rate=37))
    changed = logs[0].t + 1e-12 >= (ns[40] - ns[0]) * 1e-9
    assert 5 < (~changed).sum() < len(changed) - 5
    for name in ("t", "q", "dq", "ddq", "y"):
        one, other = (getattr(log, name)[~changed] for log in logs)
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(logs[0].q[changed], logs[1].q[changed])


@pytest.mark.parametrize("kind", KINDS)
def test_messages_without_stamps_take_the_time_of_arrival(tmp_path, kind):
    ns, t, q = motion(20)
    messages = [
        ("/js", s, state("ab", row, stamped=False)) for s, row in zip(ns, q, strict=True)
    ]
    log = read_log(write(tmp_path, kind, messages, late=3_000_000), window=5)
    np.testing.assert_allclose(log.t, t[4:], atol=1e-12)
    assert log.notes["start"] == f"{ns[0] + 3_000_000} ns since 1970"
    assert log.notes["stamps of /js"] == "of arrival"
    assert log.y.shape == (16, 0)


def test_a_bag_of_ros_2_needs_no_stored_types(tmp_path):
    import sqlite3

    messages = rows(20)
    path = write(tmp_path, "sqlite3", messages)
    before = read_log(path)
    with sqlite3.connect(path / "bag_sqlite3.db3") as database:
        database.execute("DROP TABLE message_definitions")
        database.execute("DROP TABLE schema")
        database.execute("ALTER TABLE topics DROP COLUMN type_description_hash")
    database.close()
    assert read_log(path) == before


def test_messages_that_the_metadata_counts_but_are_gone_are_missed(tmp_path):
    import sqlite3

    path = write(tmp_path, "sqlite3", rows(20))
    with sqlite3.connect(path / "bag_sqlite3.db3") as database:
        database.execute("DELETE FROM messages WHERE id > 15")
    database.close()
    with pytest.raises(ValueError, match="only 15 of 20 messages can be read"):
        read_log(path)


@pytest.mark.parametrize("kind", ["sqlite3", "mcap"])
def test_the_file_in_a_folder_is_read_alone_and_without_metadata(tmp_path, kind):
    messages = rows(20)
    path = write(tmp_path, kind, messages)
    log = read_log(path)
    (path / "metadata.yaml").unlink()
    (file,) = path.iterdir()
    for other in (path, file):
        again = read_log(other)
        np.testing.assert_array_equal(again.X, log.X)
        np.testing.assert_array_equal(again.t, log.t)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("kind", KINDS)
def test_a_bag_that_was_cut_off_is_refused_in_one_sentence(tmp_path, kind, share):
    messages = rows(400)
    path = write(tmp_path, kind, messages)
    file = path if kind == "ros1" else next(f for f in path.iterdir() if f.suffix != ".yaml")
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ValueError, match="damaged") as caught:
        read_log(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_no_damaged_byte_gives_anything_but_a_sentence_or_numbers(tmp_path, kind):
    messages = rows(30)
    path = write(tmp_path, kind, messages)
    file = path if kind == "ros1" else next(f for f in path.iterdir() if f.suffix != ".yaml")
    content, rng = file.read_bytes(), np.random.default_rng(0)
    for _ in range(25):
        changed = bytearray(content)
        for place in rng.integers(0, len(content), 40):
            changed[place] = rng.integers(256)
        file.write_bytes(bytes(changed))
        try:
            read_log(path)
        except ValueError as error:
            assert "\n" not in str(error)  # noqa: PT017 (it may also be read)


@pytest.mark.parametrize("suffix", ["csv", "npz", "parquet", "bag", "mcap", "db3", "csv.gz"])
def test_junk_is_refused_whatever_its_name(tmp_path, suffix):
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    for content in (rng.bytes(3000), b"", b"PK\x03\x04" + rng.bytes(50), b"\0" * 200):
        path = tmp_path / f"junk.{suffix}"
        path.write_bytes(content)
        with pytest.raises(ValueError, match="junk") as caught:
            read_log(path)
        assert "\n" not in str(caught.value)


def bag_of(tmp_path, *messages, kind="mcap"):
    return write(tmp_path, kind, messages)


def rows(n, topic="/js", **changes):
    ns, _, q = motion(n)
    return [
        (topic, s, state("ab", row, row, row, **changes)) for s, row in zip(ns, q, strict=True)
    ]


def test_several_topics_are_listed_so_that_one_can_be_named(tmp_path):
    path = bag_of(tmp_path, *rows(15), *rows(15, "/command"))
    with pytest.raises(ValueError, match=re.escape("2 topics for joint_states: /js, /command")):
        read_log(path)
    with pytest.raises(ValueError, match="no topic /jz for joint_states; it has /js, "):
        read_log(path, joint_states="/jz")
    with pytest.raises(ValueError, match=r"the joint a .* is on /js and on /command"):
        read_log(path, joint_states=["/js", "/command"])
    assert len(read_log(path, joint_states="/js")) == 5


def test_a_bag_without_joint_states_says_what_it_holds(tmp_path):
    path = bag_of(tmp_path, ("/ft", EPOCH, wrench(range(6))))
    with pytest.raises(ValueError, match=r"no topic for joint_states; it holds /ft \(geometry"):
        read_log(path)


def test_joints_that_are_not_there_are_named_with_those_that_are(tmp_path):
    with pytest.raises(ValueError, match="no joints elbow; these are a, b"):
        read_log(bag_of(tmp_path, *rows(15)), joints=["a", "elbow"])


def test_stamps_that_go_back_are_refused_or_dropped_with_a_note(tmp_path):
    messages = rows(30)
    store = STORES["mcap"]
    late = messages[20][2]
    # The stamp in message 20 is that of message 5.
    messages[20] = ("/js", messages[20][1], lambda s, ns: late(store, messages[5][1]))
    path = bag_of(tmp_path, *messages)
    with pytest.raises(ValueError, match=r"must increase.*row 20.*stamps='bag'"):
        read_log(path)
    assert "1 whose stamps" in read_log(path, drop=True).notes["dropped from /js"]
    assert len(read_log(path, drop=True)) == 19
    assert len(read_log(path, stamps="bag")) == 20


def test_a_gap_and_a_wrench_that_stops_are_not_bridged(tmp_path):
    messages = rows(60)
    path = bag_of(tmp_path, *messages[:20], *messages[40:])
    with pytest.raises(ValueError, match=r"/js has a gap of 0\.2.*row 19"):
        read_log(path)
    assert len(read_log(path, max_gap=0.3)) == 30
    shutil.rmtree(path)
    dead = [("/ft", s, wrench(np.ones(6))) for _, s, _ in messages[:30]]
    log = read_log(bag_of(tmp_path, *messages, *dead), wrench=True, max_gap=0.05)
    assert log.t[-1] <= 0.30 + 0.05
    assert "samples without a wrench" in log.notes["left out"]


def test_missing_values_are_counted(tmp_path):
    messages = rows(20)
    messages[7] = ("/js", messages[7][1], state("ab", [np.nan, 1.0], [1, 1], [1, 1]))
    path = bag_of(tmp_path, *messages)
    with pytest.raises(ValueError, match="1 of 20 messages"):
        read_log(path)
    assert len(read_log(path, drop=True)) == 9
    shutil.rmtree(path)
    messages[7] = ("/js", messages[7][1], state("ab", [1.0]))
    with pytest.raises(ValueError, match="names 2 joints, but has 1 values"):
        read_log(bag_of(tmp_path, *messages))


def test_efforts_that_are_not_there_point_to_the_wrench(tmp_path):
    ns, _, q = motion(20)
    messages = [("/js", s, state("ab", row)) for s, row in zip(ns, q, strict=True)]
    messages += [("/ft", s, wrench(np.ones(6))) for s in ns]
    with pytest.raises(ValueError, match=r"no efforts of the joints a, b; .* one of /ft"):
        read_log(bag_of(tmp_path, *messages))
    log = read_log(tmp_path / "bag_mcap", outputs=["Fz"], wrench=True)
    assert log.outputs == ("Fz",)


def test_streams_apart_in_time_and_bad_arguments_are_refused(tmp_path):
    path = bag_of(tmp_path, *rows(20), ("/ft", EPOCH + 10**10, wrench(np.ones(6))))
    with pytest.raises(ValueError, match="no time in common"):
        read_log(path, wrench=True)
    with pytest.raises(ValueError, match="stamps is 'arrival'"):
        read_log(path, stamps="arrival")
    with pytest.raises(ValueError, match="columns has no meaning there"):
        read_log(path, columns={"q": ["a"]})
    with pytest.raises(ValueError, match="too few"):
        read_log(path, window=21)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="is no bag"):
        read_log(tmp_path / "empty")


def test_degrees_are_converted_for_the_joints_that_are_named(tmp_path):
    path = bag_of(tmp_path, *rows(20))
    plain, turned = read_log(path), read_log(path, degrees=["b"])
    np.testing.assert_array_equal(turned.q[:, 0], plain.q[:, 0])
    np.testing.assert_allclose(turned.q[:, 1], plain.q[:, 1] * np.pi / 180, rtol=1e-15)
    np.testing.assert_allclose(turned.ddq[:, 1], plain.ddq[:, 1] * np.pi / 180, rtol=1e-9)
    np.testing.assert_array_equal(turned.y, plain.y)
