"""A robot made by hand, and Newton's and Euler's laws for it without any library."""

from xml.etree import ElementTree as ET

import numpy as np

ARM = ("r_shoulder_pitch", "r_shoulder_roll", "r_shoulder_yaw", "r_elbow")
ALL = ("turn", "slide", "spin", "grip", "wag")


def inertial(mass, com, moments, rpy="0 0 0"):
    keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    parts = " ".join(f'{key}="{value}"' for key, value in zip(keys, moments, strict=True))
    return (
        f'<inertial><origin xyz="{com}" rpy="{rpy}"/><mass value="{mass}"/>'
        f"<inertia {parts}/></inertial>"
    )


def joint(name, kind, parent, child, xyz, rpy, axis="1 0 0", limit="-2 1.5"):
    low, high = limit.split()
    limits = f'<limit lower="{low}" upper="{high}" velocity="3" effort="10"/>'
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>'
        f"{'' if kind in ('fixed', 'continuous') else limits}</joint>"
    )


# Two branches, a bracket and a hand on fixed joints, and axes of any length.
TEXT = (
    '<robot name="made by hand">'
    '<link name="base"/><link name="one">'
    + inertial(2.0, "0.1 0.02 -0.03", (0.02, 0.001, -0.002, 0.03, 0.0005, 0.025), "0.3 -0.2 1")
    + '</link><link name="bracket">'
    + inertial(0.4, "0 0.05 0.01", (0.001, 0, 0, 0.002, 0, 0.0015))
    + '</link><link name="two">'
    + inertial(1.2, "-0.05 0.1 0.2", (0.01, 0, 0.001, 0.02, 0, 0.015), "0 0.5 0")
    + '</link><link name="three">'
    + inertial(0.9, "0.01 0 0.15", (0.006, 0, 0, 0.006, 0, 0.001))
    + '</link><link name="hand">'
    + inertial(0.5, "0.02 -0.01 0.06", (0.002, 0.0001, 0, 0.0015, 0, 0.001), "1 2 3")
    + '</link><link name="finger">'
    + inertial(0.1, "0 0.03 0", (1e-4, 0, 0, 2e-5, 0, 1e-4))
    + '</link><link name="tail">'
    + inertial(0.3, "0.1 0 0", (1e-4, 0, 0, 1e-3, 0, 1e-3))
    + "</link>"
    + joint("wag", "revolute", "one", "tail", "0 -0.1 0.2", "0 1.2 0", "1 0 0")
    + joint("turn", "revolute", "base", "one", "0 0 0.3", "0.4 -0.3 0.2", "0 0 2")
    + joint("screwed", "fixed", "one", "bracket", "0.1 0 0.1", "0 0.7 0.1")
    + joint("slide", "prismatic", "one", "two", "0.2 0 0.1", "0 0 1", "1 1 0", "-0.3 0.3")
    + joint("spin", "continuous", "two", "three", "0 0.1 0.3", "1.1 0 0", "0 -3 0.5")
    + joint("ft", "fixed", "three", "hand", "0.01 0.02 0.2", "0.5 1.5707963 -0.4")
    + joint("grip", "revolute", "hand", "finger", "0 0 0.1", "0 0 0.3", "0 1 1")
    + "</robot>"
)
GRAVITY = (0.7, -1.1, -9.4)


# A reference: all links in the root frame, by Newton and Euler, without any library.


def turned(axis, angle):
    K = np.cross(np.eye(3), axis)  # K v = axis × v; Rodrigues' formula
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * (K @ K)


def of_rpy(rpy):
    x, y, z = np.eye(3)
    return turned(z, rpy[2]) @ turned(y, rpy[1]) @ turned(x, rpy[0])


def numbers(element, key, default="0 0 0"):
    text = default if element is None else element.get(key, default)
    return np.array([float(part) for part in text.split()])


class Link:
    """Place, velocities and accelerations of a link, gravity being an acceleration upwards."""

    def __init__(self, R, p, w, v, alpha, a, element):
        self.R, self.p, self.w, self.v, self.alpha, self.a = R, p, w, v, alpha, a
        self.below, self.part = [], element.find("inertial")

    def wrench(self, about):
        """Force and torque about a point that move this link and all below it."""
        force, torque = np.zeros(3), np.zeros(3)
        if self.part is not None:
            origin = self.part.find("origin")
            m, c = float(self.part.find("mass").get("value")), self.R @ numbers(origin, "xyz")
            xx, xy, xz, yy, yz, zz = (
                float(self.part.find("inertia").get(key))
                for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
            )
            turn = self.R @ of_rpy(numbers(origin, "rpy"))
            inertia = turn @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn.T
            a = self.a + np.cross(self.alpha, c) + np.cross(self.w, np.cross(self.w, c))
            force = m * a
            torque = inertia @ self.alpha + np.cross(self.w, inertia @ self.w)
            torque = torque + np.cross(self.p + c - about, force)
        for link in self.below:
            f, t = link.wrench(about)
            force, torque = force + f, torque + t
        return force, torque


def reference(text, states, gravity):
    """Return links and joints' (axis, kind) for states {joint: (q, dq, ddq)}; others are 0."""
    root = ET.fromstring(text)
    elements = {link.get("name"): link for link in root.findall("link")}
    joints = root.findall("joint")
    (base,) = set(elements) - {j.find("child").get("link") for j in joints}
    zero = np.zeros(3)
    up = -np.array(gravity, float)
    links, axes = {base: Link(np.eye(3), zero, zero, zero, zero, up, elements[base])}, {}
    while len(links) < len(elements):
        for j in joints:
            parent, child = j.find("parent").get("link"), j.find("child").get("link")
            if parent not in links or child in links:
                continue
            on, name, kind = links[parent], j.get("name"), j.get("type")
            q, dq, ddq = states.get(name, (0.0, 0.0, 0.0))
            R = on.R @ of_rpy(numbers(j.find("origin"), "rpy"))
            axis = numbers(j.find("axis"), "xyz", "1 0 0")
            axis = R @ (axis / np.linalg.norm(axis))
            arm, w, alpha = on.R @ numbers(j.find("origin"), "xyz"), on.w, on.alpha
            slides = kind == "prismatic"
            arm = arm + slides * q * axis
            v = on.v + np.cross(w, arm) + slides * dq * axis
            a = on.a + np.cross(alpha, arm) + np.cross(w, np.cross(w, arm))
            a = a + slides * (ddq * axis + 2 * np.cross(w, dq * axis))
            if kind in ("revolute", "continuous"):
                alpha = alpha + ddq * axis + np.cross(w, dq * axis)
                w, R = w + dq * axis, turned(axis, q) @ R
            links[child] = Link(R, on.p + arm, w, v, alpha, a, elements[child])
            on.below.append(links[child])
            axes[name] = (axis, kind, links[child])
    return links, axes


def torque_of(axes, name):
    axis, kind, link = axes[name]
    force, torque = link.wrench(link.p)
    return axis @ (force if kind == "prismatic" else torque)


def wrench_of(axes, name):
    _, _, link = axes[name]
    return np.concatenate([link.R.T @ part for part in link.wrench(link.p)])


def states_of(names, q, dq, ddq, locked=None):
    fixed = {name: (position, 0.0, 0.0) for name, position in (locked or {}).items()}
    return fixed | {name: (q[i], dq[i], ddq[i]) for i, name in enumerate(names)}


def random_states(seed, n_joints, n=5):
    return np.random.default_rng(seed).uniform(-1.5, 1.5, (3, n, n_joints)) * [
        [[1.0]],
        [[2.0]],
        [[5.0]],
    ]
