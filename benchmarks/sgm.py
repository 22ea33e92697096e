"""Stochastic gradients: against support vector machines on adult, and the thesis' table."""

import os
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from benchmarks.common import machine, measure_and_ask, show
from imparo import SGMClassifier
from imparo.data.sources import ArraySource
from imparo.estimators.sgm_rows import PointRows
from imparo.estimators.sgm_steps import steps_of
from imparo.estimators.sgm_training import Task, Walk
from imparo.kernels import Gaussian
from imparo.losses import Hinge
from imparo.paths import pyplot
from imparo.scores import Misclassification
from imparo.sgm import Slope
from imparo.sgm.recursion import fixed_point

SIGMA = 4.0
GAMMA = 1 / (2 * SIGMA**2)

# Table 6.2 of the thesis: hinge loss and error in per cent; LIBSVM has the error alone.
THESIS = {
    "breast cancer": {
        "SGM C": (0.127, 3.1), "SGM D": (0.135, 3.0), "SIGM C": (0.131, 3.2),
        "SIGM D": (0.204, 3.9),
    },
    "adult, n = 1000": {
        "SGM C": (0.380, 16.6), "SGM D": (0.378, 16.2), "SIGM C": (0.383, 16.1),
        "SIGM D": (0.450, 23.6),
    },
    "adult": {
        "SGM C": (0.342, 15.2), "SGM D": (0.340, 15.1), "SIGM C": (0.343, 15.7),
        "SIGM D": (0.364, 17.1),
    },
    "ijcnn1": {
        "SGM C": (0.041, 1.5), "SGM D": (0.059, 1.7), "SIGM C": (0.098, 4.7),
        "SIGM D": (0.183, 9.5),
    },
}  # fmt: skip
MODES: dict[str, dict[str, Any]] = {
    "SGM C": {"average": False},
    "SGM D": {"average": False, "decay": "auto"},
    "SIGM C": {"average": False, "step": "nonsmooth-constant", "epochs": "auto"},
    "SIGM D": {"average": False, "step": 0.25, "decay": 0.5, "epochs": "auto"},
    "SGM, averaged": {},
    "SIGM, averaged": {"step": [1.0, 2.0, 4.0, 8.0], "epochs": "auto"},
}
# On all rows of these, passes are limited and those with ever smaller steps left out.
LARGE, PASSES = ("adult", "ijcnn1"), range(1, 26)


def folder() -> Path:
    if "IMPARO_DATA" not in os.environ:
        raise SystemExit("the data are read from the folder that IMPARO_DATA names; set it")
    return Path(os.environ["IMPARO_DATA"])


def adult(dtype: str = "float64") -> tuple[np.ndarray, ...]:
    data = np.load(folder() / "adult.npz")
    X, X_test = (2 * data[f"X_{part}"].astype(dtype) - 1 for part in ("train", "test"))
    return X, data["y_train"], X_test, data["y_test"]


def svc() -> Any:
    return SVC(gamma=GAMMA)


def fast_svc() -> Any:
    from sklearnex.svm import SVC as FastSVC

    return FastSVC(gamma=GAMMA)


def nystroem_sgd() -> Any:
    return make_pipeline(
        Nystroem(gamma=GAMMA, n_components=1000, random_state=0),
        SGDClassifier(random_state=0),
    )


def on_centers() -> Any:
    return SGMClassifier(sigma=SIGMA, features="nystrom", n_features=1000, random_state=0)


def on_waves() -> Any:
    return SGMClassifier(sigma=SIGMA, features="fourier", n_features=4000, random_state=0)


def on_rows() -> Any:
    return SGMClassifier(sigma=SIGMA, features="exact", random_state=0)


def fit(make: Callable[[], Any], dtype: str) -> Callable[[], Any]:
    X, y, X_test, y_test = adult(dtype)

    def work() -> Callable[[], tuple[float, float]]:
        model = make().fit(X, y)

        def ask() -> tuple[float, float]:
            start = time.perf_counter()
            predicted = model.predict(X_test)
            return time.perf_counter() - start, 100 * float(np.mean(predicted != y_test))

        return ask

    return work


def against_machines() -> None:
    """Show seconds and errors on adult, model selection over 30 steps included for ours."""
    contestants = [("SVC", "one fit", svc, "float64", 1)]
    if find_spec("sklearnex") is not None:
        contestants.append(("SVC of scikit-learn-intelex", "one fit", fast_svc, "float64", 1))
    contestants.append(
        ("Nystroem(1000) + SGDClassifier", "one fit", nystroem_sgd, "float64", 1)
    )
    for name, make in (
        ("imparo, 1000 centers", on_centers),
        ("imparo, 4000 random features", on_waves),
        ("imparo, all rows", on_rows),
    ):
        contestants += [(name, f"30 steps, {t}", make, t, 3) for t in ("float64", "float32")]
    rows, first = [], None
    for name, what, make, dtype, repeats in contestants:
        seconds, memory, (predicting, error) = measure_and_ask(
            fit, make, dtype, repeats=repeats
        )
        first = first or (seconds, predicting)
        rows.append(
            [
                name, what, f"{seconds:.2f} s", f"{first[0] / seconds:.1f}×",
                f"{predicting:.2f} s", f"{first[1] / predicting:.1f}×", f"{error:.2f} %",
                f"{memory / 1e9:.2f} GB",
            ]
        )  # fmt: skip
    header = ["model", "what", "fit", "vs SVC", "predict", "vs SVC", "test error", "memory"]
    show(f"adult, n = 32,562, σ = 4 ({machine()})", header, rows)


def trials(name: str) -> list[tuple[np.ndarray, ...]]:
    """Return rows, outputs, width and hold-out of every trial of a data set."""
    rng = np.random.RandomState(0)
    if name == "breast cancer":
        data = np.load(folder() / "breastcancer_thesis.npz")
        X = np.concatenate([data["X_train"], data["X_test"]])
        y = np.concatenate([data["y_train"], data["y_test"]])
        orders = [rng.permutation(len(y)) for _ in range(10)]
        return [(X[o[:400]], y[o[:400]], X[o[400:]], y[o[400:]], 0.4, 0.2) for o in orders]
    if name == "ijcnn1":
        data = np.load(folder() / "ijcnn1.npz")
        X, y = data["X_train"].astype("float32"), data["y_train"]
        X_test, y_test = data["X_val"].astype("float32"), data["y_val"]
        # A series: rows held out at random would be copies of their neighbours.
        held = [(np.arange(28_000), np.arange(28_000, 35_000))]
        return [(X, y, X_test, y_test, 0.6, held)]
    X, y, X_test, y_test = adult("float32")
    if name == "adult":
        return [(X, y, X_test, y_test, SIGMA, 0.2)]
    chosen = [rng.permutation(len(y))[:1000] for _ in range(10)]
    return [(X[rows], y[rows], X_test, y_test, SIGMA, 0.2) for rows in chosen]


def against_thesis() -> None:
    """Show the thesis' table: hinge loss and error of one pass and of many."""
    rows = []
    for name, figures in THESIS.items():
        for mode, settings in MODES.items():
            if name in LARGE and "epochs" in settings:
                if "decay" in settings:
                    continue
                settings = {**settings, "epochs": PASSES}
            losses, errors, passes, start = [], [], [], time.perf_counter()
            for seed, (X, y, X_test, y_test, sigma, held) in enumerate(trials(name)):
                model = SGMClassifier(
                    sigma=sigma,
                    features="exact",
                    validation=held,
                    random_state=seed,
                    **settings,
                ).fit(X, y)
                F = model.decision_function(X_test)
                codes = np.where(y_test == model.classes_[1], 1.0, -1.0)
                losses.append(Hinge().value(codes, F).mean())
                errors.append(100 * np.mean((F > 0) != (codes > 0)))
                passes.append(model.epochs_)
            seconds = (time.perf_counter() - start) / len(errors)
            loss, error = figures.get(mode, (None, None))
            rows.append(
                [
                    name, mode, "" if loss is None else f"{loss:.3f}",
                    f"{np.mean(losses):.3f} ± {np.std(losses):.3f}",
                    "" if error is None else f"{error:.1f} %",
                    f"{np.mean(errors):.1f} ± {np.std(errors):.1f} %",
                    f"{np.mean(passes):.0f}", f"{seconds:.1f} s",
                ]
            )  # fmt: skip
    header = [
        "data",
        "mode",
        "hinge, thesis",
        "ours",
        "error, thesis",
        "ours",
        "passes",
        "time",
    ]
    show(f"Table 6.2 of the thesis ({machine()})", header, rows)


def inner_loops() -> None:
    """Time the recursion of 32 rows and 30 steps: by products, or by loops."""
    rng = np.random.default_rng(0)
    Phi = rng.normal(size=(32, 1000)) / np.sqrt(1000)
    L, Y = np.tril(Phi @ Phi.T, -1), np.repeat(np.sign(rng.normal(size=(32, 1))), 30, axis=1)
    step = np.broadcast_to(np.geomspace(1e-4, 8, 30), (32, 30)).copy()
    start, slope = rng.normal(size=(32, 30)), Slope(Hinge())

    def looped() -> Any:
        F, C = start.copy(), np.zeros((32, 30))
        for i in range(32):
            F[i] += L[i, :i] @ C[:i]
            C[i] = -step[i] * slope(Y[i], F[i])
        return C

    ways = {
        "fixed point by products": lambda: fixed_point(start.copy(), L, step, Y, slope),
        "loop of NumPy": looped,
    }
    loop = slope.loop()
    if loop is not None:
        ways["loop of numba"] = lambda: loop(start.copy(), L, step, Y)
    rows = []
    for name, way in ways.items():
        assert np.allclose(way(), looped())
        best = min(_seconds(way) for _ in range(5))
        rows.append([name, "32 rows, 30 steps", f"{1e6 * best:.0f} µs"])
    show(f"The recursion of a block ({machine()})", ["way", "what", "time"], rows)


def _seconds(way: Callable[[], Any], repeats: int = 50) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        way()
    return (time.perf_counter() - start) / repeats


def regularization() -> None:
    """Draw figures 6.1 and 6.2 of the thesis: adult, n = 1000, to ``docs/sgm.png``."""
    X, y, X_test, y_test = adult("float32")
    panels: list[tuple[str, dict[str, Any]]] = [
        ("passes, η = 1/√n", {"step": "nonsmooth-constant", "epochs": np.arange(1, 101)}),
        ("passes, η = ¼, θ = ½", {"step": 0.25, "decay": 0.5, "epochs": np.arange(1, 101)}),
        ("step η, one pass", {"step": np.geomspace(1e-3, 1, 30)}),
        ("decay θ, one pass, η = ¼", {"step": 0.25, "decay": np.linspace(0, 1, 30)}),
    ]
    plt = pyplot()
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.2), layout="constrained", sharey=True)
    for ax, (title, settings) in zip(axes, panels, strict=True):
        for average, style in ((False, "-"), (True, "--")):
            losses = []
            for seed in range(10):
                rows = np.random.RandomState(seed).permutation(len(y))[:1000]
                X_all, y_all = np.concatenate([X[rows], X_test]), np.append(y[rows], y_test)
                walk = _losses(X_all, y_all, seed, average, settings)
                losses.append(walk)
            mean = np.mean(losses, axis=0)
            grid = settings.get("epochs", settings["step"])
            grid = settings["decay"] if np.ndim(settings.get("decay")) else grid
            label = "average" if average else "last"
            ax.plot(grid, mean, style, label=f"{label}: least at {grid[mean.argmin()]:.3g}")
        ax.set(title=title, ylim=(0.36, 0.6))
        if title.startswith("step"):
            ax.set_xscale("log")
        ax.legend(frameon=False, fontsize="small")
    axes[0].set_ylabel("hinge loss on test rows")
    figure.savefig(Path(__file__).parents[1] / "docs" / "sgm.png", dpi=110)


def _losses(
    X: np.ndarray, y: np.ndarray, seed: int, average: bool, settings: dict[str, Any]
) -> np.ndarray:
    """Return test losses along a path: test rows are those held out."""
    split = [(np.arange(1000), np.arange(1000, len(y)))]
    codes = np.where(y > 0, 1.0, -1.0)[:, None].astype(X.dtype)
    loss = Hinge()
    steps = steps_of(
        settings["step"], settings.get("decay", 0.0), 1.0, loss, 1.0, codes[:1000], 1.0,
        averaged=average,
    )  # fmt: skip
    problem = Task(
        codes, np.ones(len(y)), np.arange(1000), loss, 1.0, steps, "shuffled", 1, average,
        False, 1, None, False,
    )  # fmt: skip
    rows = PointRows(ArraySource(X, X.dtype), Gaussian(SIGMA), None, 2**33, 1)
    walk = Walk(problem, rows, split, Misclassification(), None, seed)
    walk.run(np.asarray(settings.get("epochs", [1])))
    return walk.losses.ravel()


def main() -> None:
    """Show all tables."""
    inner_loops()
    against_machines()
    against_thesis()
