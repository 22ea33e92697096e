"""Robot descriptions made of tables: of arrays, or of Denavit–Hartenberg parameters."""

import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
from scipy.spatial.transform import Rotation

from imparo.dynamics.urdf_elements import MOMENTS, MOVING, rpy_of, text_of

# Columns of each array; 0 for vectors.
_NAMES = {"link": ("link_names",), "joint": ("joint_names", "joint_types")}
_LINKS = {"link_mass": 0, "link_com": 3, "link_inertial_rpy": 3, "link_inertia": 6}
_JOINTS = {
    "joint_parent": 0, "joint_child": 0, "joint_xyz": 3, "joint_rpy": 3, "joint_axis": 3,
    "joint_limits": 2,
}  # fmt: skip


def read_arrays(source: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the arrays of an NPZ file.

    Parameters
    ----------
    source : str or path-like
    """
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(
            f"arrays={source!r:.60} must be a mapping of names to arrays, or the path of an "
            "NPZ file of them"
        )
    path = Path(source)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path} with the arrays of a robot (NPZ)")
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is no NPZ file; save the arrays of a robot with numpy.savez")
    try:
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(
            f"{path} is damaged or holds Python objects ({error}); save plain arrays of a "
            "robot with numpy.savez"
        ) from None


def urdf_of_arrays(arrays: Mapping[str, Any]) -> str:
    """Return URDF text of a tree given as arrays.

    Parameters
    ----------
    arrays : mapping
        ``link_names``, ``link_mass``, ``link_com`` (3), ``link_inertial_rpy`` (3),
        ``link_inertia`` (ixx ixy ixz iyy iyz izz), ``joint_names``, ``joint_types``,
        ``joint_parent`` and ``joint_child`` (numbers of links), ``joint_xyz``, ``joint_rpy``,
        ``joint_axis``, ``joint_limits`` (2; equal where there are none).
    """
    table = _checked(arrays)
    robot = ET.Element("robot", {"name": "robot"})
    names = table["link_names"]
    for i, name in enumerate(names):
        inertial = ET.SubElement(ET.SubElement(robot, "link", {"name": name}), "inertial")
        pose = {"xyz": table["link_com"][i], "rpy": table["link_inertial_rpy"][i]}
        ET.SubElement(inertial, "origin", {key: text_of(value) for key, value in pose.items()})
        ET.SubElement(inertial, "mass", {"value": repr(float(table["link_mass"][i]))})
        moments = [repr(float(value)) for value in table["link_inertia"][i]]
        ET.SubElement(inertial, "inertia", dict(zip(MOMENTS, moments, strict=True)))
    for i, name in enumerate(table["joint_names"]):
        kind = table["joint_types"][i]
        joint = ET.SubElement(robot, "joint", {"name": name, "type": kind})
        ET.SubElement(joint, "parent", {"link": names[int(table["joint_parent"][i])]})
        ET.SubElement(joint, "child", {"link": names[int(table["joint_child"][i])]})
        pose = {"xyz": table["joint_xyz"][i], "rpy": table["joint_rpy"][i]}
        ET.SubElement(joint, "origin", {key: text_of(value) for key, value in pose.items()})
        if kind in MOVING:
            ET.SubElement(joint, "axis", {"xyz": text_of(table["joint_axis"][i])})
            low, high = (float(end) for end in table["joint_limits"][i])
            if low != high:
                ET.SubElement(joint, "limit", {"lower": repr(low), "upper": repr(high)})
    return ET.tostring(robot, encoding="unicode")


def urdf_of_dh(rows: Any) -> str:
    """Return URDF text of a serial robot by its modified (Craig's) Denavit–Hartenberg table.

    Joint i is placed by Rot_x(α) Trans_x(a) Trans_z(d) Rot_z(θ + q). Inertias are 0: they are
    there to be learned.

    Parameters
    ----------
    rows : array of shape (J, 4)
        a (m), α (rad), d (m), θ (rad) of each joint.
    """
    expected = (
        "a Denavit-Hartenberg table has one row (a, alpha, d, theta) of finite numbers for "
        "each joint"
    )
    try:
        table = np.asarray(rows, float)
    except (TypeError, ValueError):
        raise ValueError(f"{expected}, not {rows!r:.60}") from None
    if table.ndim != 2 or table.shape[1] != 4 or not len(table):
        raise ValueError(f"{expected}, not the shape {table.shape}")
    if not np.isfinite(table).all():
        raise ValueError(f"{expected}, not NaN or infinity")
    robot = ET.Element("robot", {"name": "robot"})
    ET.SubElement(robot, "link", {"name": "link_0"})
    for i, (a, alpha, d, theta) in enumerate(table, start=1):
        ET.SubElement(robot, "link", {"name": f"link_{i}"})
        joint = ET.SubElement(robot, "joint", {"name": f"joint_{i}", "type": "continuous"})
        ET.SubElement(joint, "parent", {"link": f"link_{i - 1}"})
        ET.SubElement(joint, "child", {"link": f"link_{i}"})
        turn = Rotation.from_euler("x", alpha)
        place = turn.apply([a, 0.0, d])
        pose = turn * Rotation.from_euler("z", theta)
        ET.SubElement(joint, "origin", {"xyz": text_of(place), "rpy": text_of(rpy_of(pose))})
        ET.SubElement(joint, "axis", {"xyz": "0 0 1"})
    return ET.tostring(robot, encoding="unicode")


def _checked(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return arrays of the right shapes; what their numbers mean is for the reader of URDF."""
    missing = [
        key for key in (*_NAMES["link"], *_LINKS, *_NAMES["joint"], *_JOINTS)
        if key not in arrays
    ]  # fmt: skip
    if missing:
        raise ValueError(
            f"the arrays of a robot lack {', '.join(missing)}; add what is missing"
        )
    table: dict[str, Any] = {}
    for kind, shapes in (("link", _LINKS), ("joint", _JOINTS)):
        rows = np.size(arrays[f"{kind}_names"])
        for key in _NAMES[kind]:
            _check_shape(key, np.shape(arrays[key]), (rows,), kind)
            table[key] = [str(name) for name in arrays[key]]
        for key, columns in shapes.items():
            try:
                table[key] = np.asarray(arrays[key], float)
            except (TypeError, ValueError):
                raise ValueError(f"{key} must hold numbers only; correct it") from None
            shape = (rows, columns) if columns else (rows,)
            _check_shape(key, table[key].shape, shape, kind)
    links = len(table["link_names"])
    for key in ("joint_parent", "joint_child"):
        if not np.isin(table[key], np.arange(links)).all():
            raise ValueError(
                f"{key} must hold numbers of links, whole and from 0 to {links - 1}; correct it"
            )
    return table


def _check_shape(
    key: str, shape: tuple[int, ...], expected: tuple[int, ...], kind: str
) -> None:
    if shape != expected:
        raise ValueError(
            f"{key} has the shape {shape}; {expected} was expected, one row for each of the "
            f"{kind}s that {kind}_names names"
        )
