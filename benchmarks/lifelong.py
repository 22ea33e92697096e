"""Learning one example at a time: speed against rivals, constant cost, rare classes."""

import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy.linalg import blas
from sklearn.linear_model import SGDClassifier

from benchmarks import confidence, rare_classes
from benchmarks.common import data_set, machine, show
from imparo import IncrementalClassifier, RandomFeatures, RecursiveRegressor
from imparo.engine import inverse_roots, one_thread


def main() -> None:
    with one_thread():
        updates()
        latency()
        streams()
    constant_cost()
    rare_classes.main()
    confidence.main()


# Speed.


def updates() -> None:
    """One row into an inverse factor: compiled, in panels, and by covariances."""
    rng, rows = np.random.default_rng(0), []
    for D in (500, 1000):
        X = rng.normal(size=(300, D))
        ways: dict[str, Callable[[np.ndarray], Any]] = {
            "covariance form, symv + syr (not square-root)": _covariance(D),
            "inverse root in panels, no numba": _panels(D),
        }
        if inverse_roots.compiled() is not None:
            ways["inverse root, compiled by numba"] = _compiled(D)
        times = {name: _median(way, X) for name, way in ways.items()}
        base = next(iter(times.values()))
        rows += [
            [f"D = {D}", name, f"{1e3 * t:.3f}", f"{t / base:.2f}"] for name, t in times.items()
        ]
    title = f"One row into a D x D factor\n{machine()}"
    show(title, ["size", "way", "milliseconds", "ratio"], rows)


def _covariance(D: int) -> Callable[[np.ndarray], Any]:
    P = np.asfortranarray(np.eye(D))

    def update(x: np.ndarray) -> None:
        g = blas.dsymv(1.0, P, x)
        blas.dsyr(-1 / (1 + x @ g), g, a=P, overwrite_a=1)

    return update


def _panels(D: int) -> Callable[[np.ndarray], Any]:
    L, absorb = np.eye(D), inverse_roots.absorb_by_panels
    return lambda x: absorb(L, x[None], np.zeros((1, D)), np.ones(1), 1.0, 1.0)


def _compiled(D: int) -> Callable[[np.ndarray], Any]:
    L = np.eye(D)
    return lambda x: inverse_roots.absorb_rows(L, x[None])


def _median(work: Callable[[np.ndarray], Any], rows: Iterable[np.ndarray]) -> float:
    seconds = []
    for row in rows:
        start = time.perf_counter()
        work(row)
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds[10:]))


def latency() -> None:
    """Learn and predict one sample, D = 1000 and T = 6, as a control loop does."""
    rng, rows = np.random.default_rng(0), []
    settings = {
        "one penalty": RecursiveRegressor(penalty=1.0, intercept=False),
        "one penalty, directional forgetting": RecursiveRegressor(
            penalty=1.0, intercept=False, forgetting=0.999, forgetting_kind="directional"
        ),
        "three penalties, best one predicts": RecursiveRegressor(intercept=False),
    }
    X, Y = rng.normal(size=(20_000, 1000)), rng.normal(size=(20_000, 6))
    for name, model in settings.items():
        model.partial_fit(X[:100], Y[:100])
        seconds = []
        for x, y in zip(X[100:], Y[100:], strict=True):
            start = time.perf_counter()
            model.predict_one(x)
            model.learn_one(x, y)
            seconds.append(time.perf_counter() - start)
        quantiles = 1e3 * np.quantile(seconds, [0.5, 0.99, 0.999])
        rows.append([name, *(f"{q:.3f}" for q in quantiles)])
    title = f"Learn and predict one sample, D = 1000, T = 6, one core: ms\n{machine()}"
    show(title, ["model", "median", "99 %", "99.9 %"], rows)


def constant_cost(samples: int = 1_000_000) -> None:
    """Ten classes and a thousand; after a thousand examples and after a million."""
    D, rng, rows = 1024, np.random.default_rng(0), []
    fixed = {"penalty": 1.0, "recoding": 0.7, "holdout": None, "intercept": False}
    block = rng.normal(size=(2000, D))

    def update(model: IncrementalClassifier, T: int) -> float:
        labels = rng.integers(T, size=len(block)).tolist()
        start = time.perf_counter()
        for x, y in zip(block, labels, strict=True):
            model.learn_one(x, y)
        return (time.perf_counter() - start) / len(block)

    for name, parameters in (("fixed λ and α", fixed), ("selected", {"intercept": False})):
        models = {T: IncrementalClassifier(**parameters) for T in (10, 1000)}
        for T, model in models.items():
            model.partial_fit(block, np.arange(len(block)) % T)
        # In turns, so that a slow moment of the machine does not fall on one of them.
        times = [{T: update(model, T) for T, model in models.items()} for _ in range(4)]
        ten, thousand = (min(time[T] for time in times) for T in (10, 1000))
        rows.append([name, "10 classes", f"{1e3 * ten:.3f}", "1.00"])
        ratio = f"{thousand / ten:.2f}"
        rows.append([name, "1,000 classes", f"{1e3 * thousand:.3f}", ratio])

    model = IncrementalClassifier(**fixed)
    A, done = np.eye(D), 0
    mixing = rng.normal(size=(D, D)) / np.sqrt(D) * np.geomspace(1, 1e-2, D)
    while done < samples:
        X = rng.normal(size=(1000, D)) @ mixing.T
        model.partial_fit(X, rng.integers(10, size=1000))
        A += X.T @ X
        done += 1000
        if done == 1000:
            early = update(model, 10)
            A += block.T @ block
    late = min(update(model, 10) for _ in range(2))
    for _ in range(2):
        A += block.T @ block
    rows.append(["fixed λ and α", "after 1,000 examples", f"{1e3 * early:.3f}", "1.00"])
    after = f"after {samples:,} examples"
    rows.append(["fixed λ and α", after, f"{1e3 * late:.3f}", f"{late / early:.2f}"])
    title = f"Learn one example, D = {D}: ms\n{machine()}"
    show(title, ["model", "case", "ms", "ratio"], rows)
    root = model._recursions[0].root
    exact = np.linalg.inv(np.linalg.cholesky(A))
    drift = np.linalg.norm(root - exact) / np.linalg.norm(exact)
    print(
        f"After {model.n_seen_:,} updates L has drifted by {drift:.1e} from the recomputed one."
    )


def streams(n: int = 10_000) -> None:
    """MNIST, one image at a time, predicted before it is learned."""
    data = data_set("mnist")
    if data is None:
        return
    order = np.random.default_rng(0).permutation(60_000)[:n]
    X = data["X_train"].reshape(-1, 784)[order] / 255.0
    y = data["y_train"][order].tolist()
    fourier = RandomFeatures(sigma=6.0, n_features=600, random_state=0)
    ours = {
        "pixels, fixed λ and α": IncrementalClassifier(
            penalty=100.0, recoding=0.7, holdout=None
        ),
        "pixels, λ and α selected": IncrementalClassifier(),
        "600 Fourier features, fixed": IncrementalClassifier(
            fourier, penalty=0.1, recoding=0.7, holdout=None
        ),
        "600 Fourier features, selected": IncrementalClassifier(fourier),
    }
    results = {}
    for name, model in ours.items():
        results[f"imparo, {name}"] = _prequential(model.predict_one, model.learn_one, X, y)
    part = 3000
    sgd = SGDClassifier(random_state=0)
    results["scikit-learn SGDClassifier.partial_fit"] = _prequential(
        lambda x: sgd.predict(x[None])[0],
        lambda x, label: sgd.partial_fit(x[None], [label], classes=range(10)),
        X[:part],
        y[:part],
    )
    results |= _river(X, y, part)
    river = [speed for name, (speed, *_) in results.items() if name.startswith("river")]
    slow = results["scikit-learn SGDClassifier.partial_fit"][0]
    rows = []
    for name, (speed, first, whole) in results.items():
        against = f"{speed / river[0]:.1f}×" if river else "-"
        rows.append(
            [name, f"{speed:,.0f}", f"{speed / slow:.1f}×", against, f"{first:.1%}",
             f"{whole:.1%}" if whole else "-"]
        )  # fmt: skip
    title = (
        f"MNIST as a stream, learn + predict one by one; accuracy before learning\n{machine()}"
    )
    header = ["model", "samples/s", "vs SGD", "vs river", f"first {part:,}", f"first {n:,}"]
    show(title, header, rows)


def _prequential(
    predict: Callable[[Any], Any], learn: Callable[[Any, Any], Any], X: Any, y: list[int]
) -> tuple[float, float, float]:
    learn(X[0], y[0])
    right = []
    start = time.perf_counter()
    for x, label in zip(X[1:], y[1:], strict=True):
        right.append(predict(x) == label)
        learn(x, label)
    seconds = time.perf_counter() - start
    whole = float(np.mean(right)) if len(right) > 3000 else 0.0
    return len(right) / seconds, float(np.mean(right[:2999])), whole


def _river(X: np.ndarray, y: list[int], part: int) -> dict[str, tuple[float, float, float]]:
    try:
        from river import linear_model, multiclass
    except ImportError:
        return {}
    rivals = {
        "river, logistic one-vs-rest": multiclass.OneVsRestClassifier(
            linear_model.LogisticRegression()
        ),
        "river, softmax": linear_model.SoftmaxRegression(),
    }
    rows = [dict(enumerate(row)) for row in X[:part].tolist()]
    return {
        name: _prequential(model.predict_one, model.learn_one, rows, y[:part])
        for name, model in rivals.items()
    }
