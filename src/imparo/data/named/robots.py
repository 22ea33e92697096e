"""Data of robots: dynamics, and objects before their cameras."""

from imparo.data.named import recipes
from imparo.data.named.contents import CONTENTS
from imparo.data.named.registry import NamedDataset, Part

_ARM = ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow")
_SARCOS = tuple(f"{what}{j}" for what in ("q", "dq", "ddq") for j in range(1, 8))
_RECORDING = "As a log, with its robot and a split: imparo.dynamics.recordings.recording({!r})."
_DERIVED = "Accelerations are derived from velocities, not measured."
_FEATURES = (
    "Section 7.6: features of CaffeNet's layer fc7. Here they are of another network; the "
    "data are the nearest ones that can be had."
)
_VIEWS = {
    "all": Part(3577),
    "train": Part(1764, column="view", low=0, high=36),
    "test": Part(1813, column="view", low=36, high=73),
}
_TURNTABLE = (
    "train and test are views 0 to 35 and 36 to 72 of the turntable, 5° apart: neighbouring "
    "views must not be in both.",
    "One of the 50 published objects is a copy of another and is left out: 49 classes.",
)
_CAMERA = (
    "M. Kirtay and others, GitHub muratkrty/iCub-camera-dataset, as images; the features are "
    "not published"
)

ROBOTS = (
    NamedDataset(
        "sarcos", "Inverse dynamics of the SARCOS arm", "regression", 21,
        "torques of 7 joints", {
            "train": Part(44_484, suffix="train"), "test": Part(4449, suffix="test"),
        },
        "S. Vijayakumar; C. Rasmussen and C. Williams, gaussianprocess.org/gpml/data",
        "none stated", archives=("sarcos_inv.npz", "sarcos_inv_test_only.npz"),
        notes=(
            "Copies in IMPARO_DATA may have the part test alone: split it at random.",
            "The official test rows are reported to be among the training rows, too: an error "
            "on them is too small. Hold out rows of train instead.",
        ),
        column_names=_SARCOS, target_names=tuple(f"tau{j}" for j in range(1, 8)),
        recipe=recipes.SARCOS, checksums=CONTENTS["sarcos_inv_test_only"],
    ),
    NamedDataset(
        "icub-arm", "Right arm of iCub, force and torque in the upper arm", "regression", 12,
        "3 forces (N) and 3 torques (Nm)", {"all": Part(1405)},
        "R. Camoriano, history of GitHub raffaello-camoriano/parametricInvDyn", "none stated",
        archives=("icub_arm_ft_small.npz",), aliases=("icub", "icubdyn"),
        thesis="Chapter 8 uses the same arm, columns and outputs, as a stream of 10,000 + "
        "10,000 samples. Scaling: columns to about [-1, 1]; RMSE over outputs.",
        notes=(
            "A small subsample in no order of time: it cannot replay the thesis' stream.",
            "Degrees, degrees/s and degrees/s²; offsets of the sensor are not removed.",
            _RECORDING.format("icub"),
        ),
        arrays=("X", "Y"),
        column_names=tuple(f"{what}_{joint}" for what in ("q", "dq", "ddq") for joint in _ARM),
        target_names=("fx", "fy", "fz", "tx", "ty", "tz"),
        checksums=CONTENTS["icub_arm_ft_small"],
    ),
    NamedDataset(
        "icub-circles", "Right arm of iCub on two circles, 10 Hz", "regression", 12,
        "3 forces (N) and 3 torques (Nm)", {
            "train": Part(10_000, suffix="train"), "test": Part(10_000, suffix="test"),
        },
        "the thesis' recording was not published; `imparo dynamics simulate` makes one of a "
        "simulated iCub", "not published", aliases=("icub-xy-xz",),
        thesis="Section 8.4: train on an XY circle, then test and update on ten pieces of an "
        "XZ circle.",
        arrays=("X", "y"),
    ),
    NamedDataset(
        "ur10e", "UR10e, 39 recordings at 94 Hz", "regression", 18,
        "motor currents of 6 joints (A)", {"all": Part(120_649)},
        "Innopolis University, GitHub shamilmamedov/dynamic_calibration", "none stated",
        archives=("ur10e_dynamics.npz",), arrays=("q", "dq", "ddq_derived", "current"),
        notes=(
            _DERIVED, "Recordings follow one another; some carry a payload.",
            _RECORDING.format("ur10e"),
        ),
        checksums=CONTENTS["ur10e_dynamics"],
    ),
    NamedDataset(
        "panda", "Franka Emika Panda, one motion at 1 kHz", "regression", 21,
        "torques of 7 joints (Nm)", {"all": Part(20_544)},
        "C. Gaz and others (2019), GitHub marcocognetti/FrankaEmikaPandaDynModel", "GPL-3.0",
        archives=("panda_dynamics.npz",), arrays=("q", "dq", "ddq_derived", "tau"),
        notes=(_DERIVED, _RECORDING.format("panda")), checksums=CONTENTS["panda_dynamics"],
    ),
    NamedDataset(
        "tx40", "Stäubli TX40, 9 s at 5 kHz", "regression", 6,
        "motor currents of 6 joints (A)", {"all": Part(45_000)},
        "GitHub thanhndv212/figaroh-examples", "Apache-2.0", archives=("tx40_dynamics.npz",),
        arrays=("motor_pos", "motor_current"),
        notes=("Positions alone, of motors.", _RECORDING.format("tx40")),
        checksums=CONTENTS["tx40_dynamics"],
    ),
    NamedDataset(
        "tiago", "PAL TIAGo, torso and arm at 100 Hz", "regression", 16,
        "motor currents of 8 joints", {"all": Part(8022)},
        "GitHub thanhndv212/figaroh-examples", "Apache-2.0", archives=("tiago_dynamics.npz",),
        arrays=("q", "dq", "effort"),
        notes=("Logged velocities lag by 0.2 s.", _RECORDING.format("tiago")),
        checksums=CONTENTS["tiago_dynamics"],
    ),
    NamedDataset(
        "icub-camera49", "49 objects before iCub's camera, features of a network",
        "classification", 1280, "the object, 0 to 48", _VIEWS, _CAMERA, "none stated",
        archives=("icub_camera49_effnetlite0.npz",), aliases=("icub-camera",),
        thesis=_FEATURES, notes=_TURNTABLE, target_names=("object",),
        checksums=CONTENTS["icub_camera49_effnetlite0"],
    ),
    NamedDataset(
        "icub-camera49-images", "49 objects before iCub's camera, 64 × 64 × 3 pixels",
        "classification", 12_288, "the object, 0 to 48", _VIEWS, _CAMERA, "none stated",
        archives=("icub_camera49_images64.npz",), notes=_TURNTABLE, target_names=("object",),
        checksums=CONTENTS["icub_camera49_images64"],
    ),
    NamedDataset(
        "icubworld28", "iCubWorld28, features of CaffeNet", "classification", 4096,
        "the object, 28 of them", {"all": Part(50_400)},
        "G. Pasquale and others (2015) published the images, robotology.github.io/iCubWorld; "
        "not the features that the thesis uses", "none stated",
        thesis="Section 7.6: 700 images a class to train and to test; the 28th class with 1 to "
        "500 images. Features of CaffeNet's layer fc7.",
        notes=(
            "About 1800 images a class; icub-camera49 is the nearest that can be had. Features "
            "of your own are read by the name of their file.",
        ),
        target_names=("object",),
    ),
    NamedDataset(
        "washington-rgbd", "Washington RGB-D, features of CaffeNet", "classification", 4096,
        "the category, 51 of them", {"all": Part(45_900)},
        "K. Lai and others (2011) published the images, rgbd-dataset.cs.washington.edu; not "
        "the features that the thesis uses", "for research", aliases=("rgb-d", "rgbd"),
        thesis="Section 7.6: 500 images a class to train, 400 to test; 'tomato' with 1 to 500 "
        "images. Features of CaffeNet's layer fc7.",
        notes=(
            "About 900 images a category. Features of your own are read by the name of their "
            "file.",
        ),
        target_names=("category",),
    ),
)  # fmt: skip
