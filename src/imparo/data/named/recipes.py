"""Where the originals of data sets are published, and what becomes of them."""

from imparo.data.named import conversions
from imparo.data.named.registry import Original, Recipe

_UCI = "https://archive.ics.uci.edu/static/public"
_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
_GPML = "https://gaussianprocess.org/gpml/data"
_GITHUB = "https://raw.githubusercontent.com"
_MNIST = (
    "https://storage.googleapis.com/cvdf-datasets/mnist",
    "https://ossci-datasets.s3.amazonaws.com/mnist",
)
_MB = 10**6


def _one(name: str, address: str, most_megabytes: float) -> Original:
    return Original(name, (address,), int(most_megabytes * _MB))


def _mnist_file(name: str, file: str) -> Original:
    return Original(name, tuple(f"{base}/{file}-ubyte.gz" for base in _MNIST), 20 * _MB)


def _computer_activity(file: str, columns: int) -> Recipe:
    commit = "c59f172882592bb58982cc54d2d3c8a2b57e9b73"
    address = f"{_GITHUB}/renatopp/arff-datasets/{commit}/regression/{file}"
    shapes = {"X": (8192, columns), "y": (8192,)}
    return Recipe((_one("data", address, 5),), conversions.computer_activity, shapes, 1)


def _pumadyn(variant: str) -> Recipe:
    folder = f"{_GITHUB}/raffaello-camoriano/Enitor/HEAD/dataset/pumadyn"
    address = f"{folder}/pumadyn-{variant}/Dataset.data.gz"
    shapes = {"X": (8192, 32), "y": (8192,)}
    return Recipe((_one("data", address, 10),), conversions.pumadyn, shapes, 1.5)


def _parts(columns: int, **rows: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for part, n in rows.items():
        shapes |= {f"X_{part}": (n, columns), f"y_{part}": (n,)}
    return shapes


MNIST = Recipe(
    (
        _mnist_file("train images", "train-images-idx3"),
        _mnist_file("train labels", "train-labels-idx1"),
        _mnist_file("test images", "t10k-images-idx3"),
        _mnist_file("test labels", "t10k-labels-idx1"),
    ),
    conversions.mnist, _parts(784, train=60_000, test=10_000), 11.6,
)  # fmt: skip
ADULT = Recipe(
    (_one("train", f"{_LIBSVM}/a9a", 10), _one("test", f"{_LIBSVM}/a9a.t", 5)),
    conversions.adult, _parts(123, train=32_561, test=16_281), 3.5,
)  # fmt: skip
IJCNN1 = Recipe(
    (
        _one("train", f"{_LIBSVM}/ijcnn1.tr.bz2", 20),
        _one("val", f"{_LIBSVM}/ijcnn1.val.bz2", 10),
        _one("test", f"{_LIBSVM}/ijcnn1.t.bz2", 40),
    ),
    conversions.ijcnn1, _parts(22, train=35_000, val=14_990, test=91_701), 11,
)  # fmt: skip
INSURANCE = Recipe(
    (_one("archive", f"{_UCI}/125/insurance+company+benchmark+coil+2000.zip", 5),),
    conversions.insurance, _parts(85, train=5822, test=4000), 0.3,
)  # fmt: skip
COVTYPE = Recipe(
    (
        _one(
            "data",
            "https://archive.ics.uci.edu/ml/machine-learning-databases/covtype/covtype.data.gz",
            30,
        ),
    ),
    conversions.covtype, {"X": (581_012, 54), "y": (581_012,)}, 11,
)  # fmt: skip
CPU_SMALL = _computer_activity("cpu.small.arff", 12)
CPU_ACT = _computer_activity("cpu.act.arff", 21)
PUMADYN32NH = _pumadyn("32nh")
PUMADYN32NM = _pumadyn("32nm")
KIN40K = Recipe(
    (
        _one(
            "data",
            f"{_GITHUB}/treforevans/uci_datasets/HEAD/uci_datasets/kin40k/data.csv.gz",
            10,
        ),
    ),
    conversions.kin40k, {"X": (40_000, 8), "y": (40_000,)}, 1.3,
)  # fmt: skip
YEAR_PREDICTION = Recipe(
    (_one("archive", f"{_UCI}/203/yearpredictionmsd.zip", 400),),
    conversions.year_prediction, _parts(90, train=463_715, test=51_630), 211,
)  # fmt: skip
CT_SLICES = Recipe(
    (_one("archive", f"{_UCI}/206/relative+location+of+ct+slices+on+axial+axis.zip", 100),),
    conversions.ct_slices, {"X": (53_500, 384), "y": (53_500,)}, 14,
)  # fmt: skip
SARCOS = Recipe(
    (
        _one("train", f"{_GPML}/sarcos_inv.mat", 50),
        _one("test", f"{_GPML}/sarcos_inv_test.mat", 10),
    ),
    conversions.sarcos,
    {
        "X_train": (44_484, 21), "y_train": (44_484, 7),
        "X_test": (4449, 21), "y_test": (4449, 7),
    },
    12,
)  # fmt: skip
