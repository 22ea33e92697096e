"""Sources of robots: what is read, what is refused, and in which words."""

from xml.etree import ElementTree as ET

import numpy as np
import pytest

from imparo.dynamics import Robot
from robot_tools import ALL, GRAVITY, TEXT, joint, numbers, random_states, reference

pytest.importorskip("pinocchio")


def arrays_of_text():
    """The robot made by hand in the layout of arrays."""
    root = ET.fromstring(TEXT)
    links, joints = root.findall("link"), root.findall("joint")
    names = [link.get("name") for link in links]
    parts = [link.find("inertial") for link in links]
    keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")

    def each(read, size):
        return np.array([np.zeros(size) if part is None else read(part) for part in parts])

    return {
        "link_names": np.array(names),
        "link_mass": each(lambda p: float(p.find("mass").get("value")), ()),
        "link_com": each(lambda p: numbers(p.find("origin"), "xyz"), 3),
        "link_inertial_rpy": each(lambda p: numbers(p.find("origin"), "rpy"), 3),
        "link_inertia": each(lambda p: [float(p.find("inertia").get(k)) for k in keys], 6),
        "joint_names": np.array([j.get("name") for j in joints]),
        "joint_types": np.array([j.get("type") for j in joints]),
        "joint_parent": np.array([names.index(j.find("parent").get("link")) for j in joints]),
        "joint_child": np.array([names.index(j.find("child").get("link")) for j in joints]),
        "joint_xyz": np.array([numbers(j.find("origin"), "xyz") for j in joints]),
        "joint_rpy": np.array([numbers(j.find("origin"), "rpy") for j in joints]),
        "joint_axis": np.array([numbers(j.find("axis"), "xyz") for j in joints]),
        "joint_limits": np.array([[-2.0, 1.5] for j in joints]),
    }


def test_a_robot_of_arrays_is_that_of_its_urdf(tmp_path):
    arrays = arrays_of_text()
    np.savez(tmp_path / "robot.npz", **arrays)
    keywords = {"joints": ALL, "sensor": "ft", "sign": -1, "gravity": GRAVITY}
    expected = Robot(TEXT, **keywords)
    states = random_states(4, 5)
    for source in (arrays, tmp_path / "robot.npz", str(tmp_path / "robot.npz")):
        robot = Robot.from_arrays(source, **keywords)
        np.testing.assert_allclose(robot.parameters, expected.parameters, rtol=0, atol=1e-14)
        np.testing.assert_allclose(
            robot.regressor(*states), expected.regressor(*states), rtol=0, atol=1e-11
        )


def test_modified_denavit_hartenberg_rows_place_joints_as_craig_does():
    rows = np.array([(0, 0, 0.3, 0.1), (0.4, -np.pi / 2, 0.1, 0.2), (0.2, np.pi / 2, -0.1, -1)])
    robot = Robot.from_dh(rows)
    q = np.array([0.3, -0.7, 1.1])
    T = np.eye(4)
    for i, ((a, alpha, d, theta), turn) in enumerate(zip(rows, q, strict=True), start=1):
        c, s, ca, sa = np.cos(theta + turn), np.sin(theta + turn), np.cos(alpha), np.sin(alpha)
        # Craig, Introduction to Robotics, eq. 3.6.
        T = T @ [
            [c, -s, 0, a],
            [s * ca, c * ca, -sa, -sa * d],
            [s * sa, c * sa, ca, ca * d],
            [0, 0, 0, 1],
        ]
        np.testing.assert_allclose(robot.position(q, f"link_{i}"), T[:3, 3], rtol=0, atol=1e-12)
    assert robot.joints == ("joint_1", "joint_2", "joint_3")
    np.testing.assert_array_equal(robot.parameters, 0)


def test_files_text_and_names_are_read(tmp_path):
    file = tmp_path / "robot.urdf"
    file.write_text('<?xml version="1.0"?>\n' + TEXT)
    states = random_states(5, 5)
    expected = Robot(TEXT).inverse_dynamics(*states)
    for source in (file, str(file), "\n " + TEXT):
        np.testing.assert_array_equal(Robot(source).inverse_dynamics(*states), expected)
    again = Robot(Robot(TEXT).urdf)  # the reduced text is a description of the same robot
    np.testing.assert_allclose(again.inverse_dynamics(*states), expected, rtol=0, atol=1e-12)


# Bad input.


LOOP = TEXT.replace(
    "</robot>", joint("loop", "fixed", "tail", "hand", "0 0 0", "0 0 0") + "</robot>"
)
APART = TEXT.replace("</robot>", '<link name="alone"/></robot>')
RING = TEXT.replace(
    "</robot>", joint("ring", "fixed", "tail", "base", "0 0 0", "0 0 0") + "</robot>"
)


@pytest.mark.parametrize(
    ("source", "keywords", "sentence"),
    [
        (TEXT, {"joints": ("elbow",)}, "no joint 'elbow' that moves; .* wag, turn"),
        (TEXT, {"joints": ("ft",)}, "no joint 'ft' that moves"),
        (TEXT, {"joints": ()}, "at least one joint"),
        (TEXT, {"joints": ("turn", "turn")}, "each once"),
        (TEXT, {"locked": {"elbow": 0}}, "no joint 'elbow' that moves"),
        (TEXT, {"joints": ("turn",), "locked": {"turn": 0}}, "to move and to be locked"),
        (TEXT, {"sensor": "f/t"}, "no joint 'f/t' for a sensor; fixed joints are ft"),
        (TEXT, {"sensor": "turn"}, "'turn' moves; a force/torque sensor"),
        (TEXT, {"sign": 2}, "sign=2 must be 1"),
        (TEXT, {"gravity": (0, 9.81)}, "gravity=.* must be three finite numbers"),
        (TEXT, {"gravity": (0, 0, np.nan)}, "gravity=.* must be three finite numbers"),
        (TEXT, {"gravity": "down"}, "gravity='down' must be three finite numbers"),
        (TEXT, {"joints": "turm"}, "no joint 'turm' that moves"),
        (TEXT, {"joints": ("turn",), "locked": {"slide": "a"}}, "locked has 'a' for .*'slide'"),
        (TEXT, {"joints": ("turn",), "locked": {"slide": np.nan}}, "locked has nan for"),
        (TEXT[:-5], {}, "not well-formed XML"),
        ("<sdf/>", {}, "begins with <sdf>, not <robot>"),
        (LOOP, {}, "'hand' hangs on two joints; loops are not supported"),
        (APART, {}, "base, alone hang on nothing"),
        (RING, {}, "of a loop hang on nothing"),
        (TEXT.replace('link="base"', 'link="ground"'), {}, "'ground', which"),
        (TEXT.replace('xyz="0 0 2"', 'xyz="0 0 0"'), {}, "axis of the joint 'turn' is 0"),
        (TEXT.replace('xyz="0 0 2"', 'xyz="0 2"'), {}, "'turn' has xyz='0 2'; three finite"),
    ],
    ids=[
        "unknown", "fixed", "none", "twice", "unknown-lock", "both", "no-sensor", "moving",
        "sign", "two", "nan", "down", "one-name", "text-lock", "nan-lock",
        "cut-off", "not-urdf", "loop", "apart", "ring", "parent", "axis",
        "short",
    ],
)  # fmt: skip
def test_bad_descriptions_and_arguments_are_named(source, keywords, sentence):
    with pytest.raises(ValueError, match=sentence):
        Robot(source, **keywords)


HAND = '<mass value="0.5"/><inertia ixx="0.002" ixy="0.0001"'
assert TEXT.count(HAND) == 1


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('<mass value="0.5"/>', "", "'hand' has no <mass value>; a finite number was expected"),
        ('value="0.5"', "", "'hand' has no <mass value>"),
        ('value="0.5"', 'value="heavy"', "'hand' has <mass value='heavy'>; a finite number"),
        ('value="0.5"', 'value="nan"', "'hand' has <mass value='nan'>"),
        ('value="0.5"', 'value="1_0"', "'hand' has <mass value='1_0'>"),
        ('value="0.5"', 'value="-0.5"', "'hand' has the mass -0.5; 0 kg or more was expected"),
        ('xyz="0.02 -0.01 0.06"', 'xyz="0.02 -0.01"', "'hand' has xyz='0.02 -0.01'; three"),
        ('rpy="1 2 3"', 'rpy="1 2 up"', "'hand' has rpy='1 2 up'; three finite numbers"),
        ('ixx="0.002" ixy="0.0001"', 'ixy="0.0001"', "'hand' has no <inertia ixx>"),
        ('ixx="0.002"', 'ixx="a"', "'hand' has <inertia ixx='a'>; a finite number"),
        ('<inertia ixx="0.002"', '<tensor ixx="0.002"', "'hand' has no <inertia ixx>"),
        ("</inertial>", "</inertial><inertial/>", "'one' has 2 <inertial> elements; one was"),
        ('name="ft" type="fixed"', 'name="ft" type="floating"', "'ft' is floating, and .*"),
        ('name="ft" type="fixed"', 'name="ft" type="planar"', '"fixed" to hold it'),
        ('name="ft" type="fixed"', 'name="ft" type="hinge"', "'ft' has the type 'hinge'; revo"),
        ('name="ft" type="fixed"', 'name="ft"', "'ft' has the type None; revolute"),
        ('link name="tail"', 'link name="hand"', "two links named 'hand'; rename one"),
        ('joint name="wag"', 'joint name="turn"', "two joints named 'turn'; rename one"),
        ('link name="tail"', "link", "has a link without a name"),
        ('lower="-2"', 'lower="abc"', "'wag' has the limit lower='abc'; a number was"),
        ('upper="1.5"', 'upper="nan"', "'wag' has the limit upper='nan'"),
        ('lower="-2"', 'lower="2"', "'wag' has the limits 2 to 1.5; lower must not exceed"),
        ('velocity="3"', 'velocity="-3"', "'wag' has the limit velocity=-3; 0 or more"),
    ],
    ids=[
        "no-mass", "no-value", "text-mass", "nan-mass", "digits", "negative-mass", "short-com",
        "text-rpy", "no-ixx", "text-ixx", "no-inertia", "two-inertials", "floating", "planar",
        "unknown-type", "no-type", "links", "joints", "no-name", "text-limit", "nan-limit",
        "limits", "velocity",
    ],
)  # fmt: skip
def test_nothing_of_a_description_is_dropped_in_silence(old, new, sentence):
    assert old in TEXT
    with pytest.raises(ValueError, match=sentence):
        Robot(TEXT.replace(old, new, 1))


def test_limits_of_joints_that_do_not_move_are_not_asked_for():
    robot = Robot(TEXT.replace('lower="-2"', 'lower="abc"', 1), joints=("turn",))
    np.testing.assert_array_equal(robot.position_limits, [[-2, 1.5]])


def test_spaces_around_numbers_are_no_reason_to_lose_a_mass():
    """Pinocchio reads such a body as one without mass."""
    robot = Robot(TEXT.replace('value="0.5"', 'value=" 0.5 "'))
    np.testing.assert_array_equal(robot.parameters, Robot(TEXT).parameters)


@pytest.mark.parametrize("first", ["x", "y", "hook"])
def test_a_loop_apart_from_the_tree_is_refused(first):
    """Whichever of its links comes first: one of the loop, or one that hangs on it."""
    names = sorted(("x", "y", "hook"), key=lambda name: name != first)
    loop = "".join(f'<link name="{name}"/>' for name in names)
    for parent, child in (("x", "y"), ("y", "x"), ("x", "hook")):
        loop += joint(parent + child, "fixed", parent, child, "0 0 0", "0 0 0")
    with pytest.raises(ValueError, match=rf"'{first}' hangs on a loop of joints at '[xy]'"):
        Robot(TEXT.replace("</robot>", loop + "</robot>"))


def test_a_robot_without_joints_that_move_is_refused():
    with pytest.raises(ValueError, match="no joint that moves; a revolute"):
        Robot('<robot name="rock"><link name="rock"/></robot>')


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"joints": 3}, r"joints=3 must be names of joints, such as \['wag', 'turn'\]"),
        ({"locked": ["slide"]}, r"locked=\['slide'\] must be a mapping of joints to positions"),
        ({"sensor": ["ft"]}, r"sensor=\['ft'\] must be the name of a fixed joint"),
    ],
    ids=["joints", "locked", "sensor"],
)
def test_arguments_of_a_wrong_type_are_named(keywords, sentence):
    with pytest.raises(TypeError, match=sentence):
        Robot(TEXT, **keywords)


def test_one_name_is_one_joint():
    assert Robot(TEXT, joints="turn").joints == ("turn",)


# Joints that mimic others.

MIMIC = TEXT.replace(
    '<axis xyz="0 1 1"/>',
    '<axis xyz="0 1 1"/><mimic joint="spin" multiplier="2" offset="0.1"/>',
)


@pytest.mark.parametrize(
    ("locked", "grip"),
    [({}, 0.1), ({"spin": 0.3}, 0.7), ({"spin": 0.3, "grip": -0.2}, -0.2)],
    ids=["offset", "multiple", "named"],
)
def test_a_joint_that_mimics_a_locked_one_is_locked_where_that_one_puts_it(locked, grip):
    robot = Robot(MIMIC, joints=("turn",), locked=locked)
    places = {"spin": (locked.get("spin", 0.0), 0, 0), "grip": (grip, 0, 0)}
    expected = finger_tip(places)
    # Not at its origin, which is on the axis, but where the weight of its body is.
    np.testing.assert_allclose(robot.parameters[1:4], expected, rtol=0, atol=1e-12)


def finger_tip(places):
    """First moments about the joint "turn" of all that it carries, at its position 0."""
    links, _ = reference(TEXT, places, (0, 0, 0))
    one, total = links["one"], np.zeros(3)
    for name, link in links.items():
        if link.part is not None:
            mass = float(link.part.find("mass").get("value"))
            place = link.p + link.R @ numbers(link.part.find("origin"), "xyz")
            total += mass * one.R.T @ (place - one.p)
            assert name != "base"
    return total


@pytest.mark.parametrize(
    ("text", "keywords", "sentence"),
    [
        (MIMIC, {}, "'grip' mimics 'spin', which moves, and .* as locked={'grip': 0.0}"),
        (MIMIC, {"joints": ("grip",)}, "'grip' mimics 'spin' and does not move by itself"),
        (
            MIMIC.replace('="spin" m', '="elbow" m'),
            {"joints": ("turn",)},
            "'elbow', which is no",
        ),
        (MIMIC.replace('="spin" m', '="grip" m'), {"joints": ("turn",)}, "'grip', which is no"),
        (
            MIMIC.replace('offset="0.1"', 'offset="a"'),
            {"joints": ("turn",)},
            "<mimic offset='a'>",
        ),
    ],
    ids=["moves", "asked", "unknown", "itself", "text"],
)
def test_joints_that_would_have_to_move_together_are_refused(text, keywords, sentence):
    with pytest.raises(ValueError, match=sentence):
        Robot(text, **keywords)


def test_a_joint_that_mimics_one_that_moves_can_be_locked():
    robot = Robot(MIMIC, locked={"grip": 0.3})
    states = random_states(8, 4)
    expected = Robot(TEXT, joints=robot.joints, locked={"grip": 0.3}).inverse_dynamics(*states)
    np.testing.assert_array_equal(robot.inverse_dynamics(*states), expected)
    assert robot.joints == ("wag", "turn", "slide", "spin")


# Files.


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\x80\x81\xff", r"robot.urdf is no text in UTF-8; a URDF file was expected"),
        (b"", r"not well-formed XML .*; give a URDF file"),
        (
            b'<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arm/></robot>',
            "run xacro",
        ),
        (b"<robot><xacro:arm/></robot>", "written in xacro, not in URDF; run xacro first"),
    ],
    ids=["binary", "empty", "xacro", "xacro-without-namespace"],
)
def test_files_that_are_no_urdf_are_told(tmp_path, content, sentence):
    (tmp_path / "robot.urdf").write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        Robot(tmp_path / "robot.urdf")


def test_what_xacro_has_written_is_read(tmp_path):
    """It may leave the name of its namespace; editors leave a mark of the order of bytes."""
    text = TEXT.replace("<robot ", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" ')
    (tmp_path / "robot.urdf").write_bytes(b"\xef\xbb\xbf" + text.encode())
    robot = Robot(tmp_path / "robot.urdf")
    np.testing.assert_array_equal(robot.parameters, Robot(TEXT).parameters)


def test_what_is_neither_path_nor_text_is_refused(tmp_path):
    for empty in ("", " \n"):
        with pytest.raises(ValueError, match="urdf is empty; give the path of a URDF file"):
            Robot(empty)
    with pytest.raises(ValueError, match="is no URDF, which begins with <robot>"):
        Robot("robot:\n  links: []")
    with pytest.raises(ValueError, match="is no URDF, which begins with <robot>"):
        Robot("r" * 5000)
    with pytest.raises(TypeError, match="urdf=5 must be the path of a URDF file, its text"):
        Robot(5)
    with pytest.raises(FileNotFoundError, match="is a folder; give a file"):
        Robot(tmp_path)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"link_mass": None}, "arrays of a robot lack link_mass; add what is missing"),
        ({"link_mass": np.ones(3)}, r"link_mass has the shape \(3,\); \(8,\) was expected"),
        ({"link_com": np.ones((8, 2))}, r"link_com has the shape \(8, 2\); \(8, 3\)"),
        ({"joint_axis": np.ones(7)}, r"joint_axis has the shape \(7,\); \(7, 3\)"),
        ({"joint_types": ["fixed"]}, r"joint_types has the shape \(1,\); \(7,\)"),
        ({"link_mass": ["a"] * 8}, "link_mass must hold numbers only"),
        ({"joint_parent": np.full(7, -1)}, "joint_parent must .* whole and from 0 to 7"),
        ({"joint_child": np.full(7, 0.5)}, "joint_child must hold numbers of links"),
        ({"link_mass": np.full(8, -1.0)}, "'base' has the mass -1; 0 kg or more"),
        ({"link_inertia": np.full((8, 6), np.nan)}, "<inertia ixx='nan'>; a finite number"),
        ({"joint_types": ["free"] * 7}, "'wag' has the type 'free'"),
        ({"joint_limits": np.tile([2.0, 1.0], (7, 1))}, "'wag' has the limits 2 to 1"),
        ({"joint_names": ["a"] * 7}, "two joints named 'a'"),
    ],
    ids=[
        "missing", "few", "columns", "vector", "types", "text", "parent", "child", "mass",
        "nan", "type", "limits", "names",
    ],
)  # fmt: skip
def test_arrays_that_are_no_robot_are_named(tmp_path, changes, sentence):
    arrays = {
        key: part for key, part in (arrays_of_text() | changes).items() if part is not None
    }
    np.savez(tmp_path / "robot.npz", **arrays)
    for source in (arrays, tmp_path / "robot.npz"):
        with pytest.raises(ValueError, match=sentence):
            Robot.from_arrays(source)


def test_files_that_hold_no_arrays_are_told(tmp_path):
    path = tmp_path / "robot.npz"
    path.write_text("link_mass: 3")
    with pytest.raises(ValueError, match=r"robot.npz is no NPZ file; save the arrays"):
        Robot.from_arrays(path)
    np.save(tmp_path / "robot.npy", np.ones(3))
    with pytest.raises(ValueError, match=r"robot.npy is no NPZ file"):
        Robot.from_arrays(tmp_path / "robot.npy")
    np.savez(path, link_names=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match=r"damaged or holds Python objects .*; save plain"):
        Robot.from_arrays(path)
    np.savez(path, **arrays_of_text())
    content = bytearray(path.read_bytes())
    content[300] ^= 255
    path.write_bytes(content)
    with pytest.raises(ValueError, match="damaged or holds Python objects"):
        Robot.from_arrays(path)
    with pytest.raises(FileNotFoundError, match=r"no file .*folder with the arrays"):
        Robot.from_arrays(tmp_path / "folder")
    with pytest.raises(TypeError, match="arrays=5 must be a mapping of names to arrays"):
        Robot.from_arrays(5)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("abc", "one row .* for each joint, not 'abc'"),
        ([(0, 0, 0, 0), (0, 0)], "one row .* for each joint, not"),
        ([(0, 0, 0, np.nan)], "not NaN or infinity"),
        ([], r"not the shape \(0,\)"),
    ],
    ids=["text", "ragged", "nan", "empty"],
)
def test_tables_that_are_no_denavit_hartenberg_rows_are_refused(rows, sentence):
    with pytest.raises(ValueError, match=sentence):
        Robot.from_dh(rows)


def test_missing_files_and_unknown_names_are_told():
    with pytest.raises(FileNotFoundError, match=r"no file nowhere/robot.urdf"):
        Robot("nowhere/robot.urdf")
    pytest.importorskip("icub_models")
    with pytest.raises(FileNotFoundError, match="nor a robot known by name; names are iCub"):
        Robot("R2D2")
    with pytest.raises(FileNotFoundError):
        Robot.from_arrays("nowhere/robot.npz")
    with pytest.raises(ValueError, match=r"not the shape \(2, 3\)"):
        Robot.from_dh(np.zeros((2, 3)))


@pytest.mark.parametrize("method", ["regressor", "inverse_dynamics"])
@pytest.mark.parametrize(
    ("states", "sentence"),
    [
        ((np.full((2, 5), np.nan),), "q holds NaN"),
        ((np.zeros(5), np.full(5, np.inf)), "dq holds NaN"),
        ((np.zeros((2, 4)),), r"q has the shape \(2, 4\); one column .* 5 joints wag, turn"),
        ((np.zeros((1, 2, 5)),), r"q has the shape \(1, 2, 5\)"),
        ((0.0,), r"q has the shape \(\)"),
        ((np.zeros((2, 5)), np.zeros((3, 5))), r"dq has the shape \(3, 5\) and q has \(2, 5\)"),
        ((np.zeros(5), None, np.zeros((1, 5))), r"ddq has the shape \(1, 5\)"),
        ((np.zeros(5), None, np.full(5, np.nan)), "ddq holds NaN"),
        (("abc",), "q='abc' must be an array of numbers"),
        ((np.zeros(5), [[1, 2], [3]]), "dq=.* must be an array of numbers"),
    ],
    ids=[
        "nan",
        "infinite",
        "columns",
        "axes",
        "scalar",
        "rows",
        "mixed",
        "third",
        "text",
        "ragged",
    ],
)
def test_bad_states_are_named(method, states, sentence):
    with pytest.raises(ValueError, match=sentence):
        getattr(Robot(TEXT), method)(*states)


def test_unknown_frames_are_named():
    for method in (Robot(TEXT).position, Robot(TEXT).jacobian):
        with pytest.raises(ValueError, match=r"no link or joint 'toe'; it has .*finger"):
            method(np.zeros(5), "toe")
        with pytest.raises(ValueError, match="no link or joint 3; it has"):
            method(np.zeros(5), 3)
