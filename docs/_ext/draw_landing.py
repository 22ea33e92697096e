"""Draw the picture of the landing page, light and dark: ``python docs/_ext/draw_landing.py``.

Three examples of the gallery in one row. Written to ``docs/_static``; run it again when one of
them changes.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

mpl.use("Agg")

import matplotlib.pyplot as plt

from imparo import (
    IncrementalClassifier,
    NystromRegressor,
    RandomFeatures,
    RecursiveRegressor,
)
from imparo.data import load_concrete

STATIC = Path(__file__).parent.parent / "_static"
COLOURS = {
    "light": {
        "ink": "#1d2330",
        "line": "#dde1e8",
        "one": "#b3123a",
        "two": "#1f5fa8",
        "three": "#e08a00",
    },
    "dark": {
        "ink": "#d7dbe3",
        "line": "#3a414e",
        "one": "#ff7d96",
        "two": "#7fb4f0",
        "three": "#f0b45a",
    },
}


def path():
    """Return the errors of a whole path."""
    concrete = load_concrete()
    X = StandardScaler().fit_transform(concrete.X)
    model = NystromRegressor(
        "gaussian", sigma=3.0, n_centers=np.unique(np.geomspace(10, 600, 36).astype(int)),
        penalty=np.geomspace(1e-1, 1e-10, 36), validation=5, intercept=True, random_state=0,
    )  # fmt: skip
    return model.fit(X, concrete.y).path_


def rare_digit():
    """Return how often a new digit is found, naively and with recoding."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    X, y = digits.data[order] / 16, digits.target[order]
    X_test, y_test, X, y = X[:500], y[:500], X[500:], y[500:]
    shown = {}
    for alpha in (0.0, 0.7):
        model = IncrementalClassifier(penalty=1.0, recoding=alpha)
        model.partial_fit(X[y != 3], y[y != 3])
        found = []
        for x in X[y == 3][:40]:
            model.learn_one(x, 3)
            found.append((model.predict(X_test[y_test == 3]) == 3).mean())
        shown[alpha] = found
    return shown


def pendulum():
    """Return times and windowed errors of physics, kernels and both."""
    rng = np.random.default_rng(0)
    t = np.arange(0, 24, 0.02)
    size = np.where(t < 12, 0.6, 1.5)
    q = size * (np.sin(2 * t) + 0.3 * np.sin(3.3 * t))
    dq = size * (2 * np.cos(2 * t) + 0.99 * np.cos(3.3 * t))
    ddq = -size * (4 * np.sin(2 * t) + 3.267 * np.sin(3.3 * t))
    y = 0.09 * ddq + 9.81 * 0.45 * np.sin(q) + 0.05 * dq + 0.5 * np.tanh(3 * (q - 0.4))
    y += 0.02 * rng.normal(size=len(t))
    Phi = np.column_stack([ddq, 9.81 * np.sin(q), dq])
    state = np.column_stack([q, dq / 2, ddq / 4])
    seen = RandomFeatures(sigma=0.7, n_features=150, random_state=0).fit(state[:1])
    physics = RecursiveRegressor(penalty=1e-3, intercept=False)
    kernels = RecursiveRegressor(seen, penalty=0.1, intercept=False)
    errors = np.zeros((len(t), 3))
    for i in range(len(t)):
        if i:
            p, (alone, *columns) = physics.predict_one(Phi[i]), kernels.predict_one(state[i])
            errors[i] = y[i] - np.array([p, alone, p + alone - columns @ physics.coef_])
        physics.learn_one(Phi[i], y[i])
        kernels.learn_one(state[i], np.append(y[i], Phi[i]))
    window = np.ones(60) / 60
    squares = [np.convolve(np.square(e), window, mode="valid") for e in errors.T]
    return t[59:], dict(zip(("physics", "kernels", "both"), np.sqrt(squares), strict=True))


def draw(mode, whole, shown, times, errors):
    """Write one picture."""
    c = COLOURS[mode]
    style = {
        "text.color": c["ink"], "axes.labelcolor": c["ink"], "axes.edgecolor": c["line"],
        "xtick.color": c["ink"], "ytick.color": c["ink"], "axes.spines.top": False,
        "axes.spines.right": False, "font.size": 10.5, "axes.titlesize": 12,
        "axes.titlelocation": "left", "axes.titleweight": "bold", "axes.titlepad": 10,
        "legend.frameon": False, "lines.linewidth": 2.2, "grid.color": c["line"],
        "xtick.minor.visible": False,
    }  # fmt: skip
    with mpl.rc_context(style):
        fig, (a, b, d) = plt.subplots(1, 3, figsize=(13, 3.5), layout="constrained")
        a.pcolormesh(
            whole.axes["n_centers"], whole.axes["penalty"], np.log(whole.errors),
            cmap="RdPu_r" if mode == "light" else "magma", shading="nearest", vmax=np.log(13),
        )  # fmt: skip
        best = whole.best
        a.plot(best["n_centers"], best["penalty"], "*", ms=15, color="white", mec="black")
        a.set(xscale="log", yscale="log", xlabel="centers m", ylabel="penalty λ")
        a.set_title(f"{whole.errors.size:,} models, one pass")
        b.plot(range(1, 41), shown[0.7], color=c["one"], label="recoded")
        b.plot(range(1, 41), shown[0.0], color=c["two"], label="naive")
        b.set(xlabel="times a new digit was shown", ylabel="found", ylim=(-0.02, 1.02))
        b.set_title("A new class, no retraining")
        b.legend()
        for name, colour in (("physics", "three"), ("kernels", "two"), ("both", "one")):
            d.semilogy(times, errors[name], color=c[colour], label=name)
        d.axvline(12, color=c["ink"], ls=":", lw=1)
        d.set(xlabel="seconds; from 12 on a motion never seen", ylabel="error before learning")
        d.set(ylim=(0.015, 1.3), yticks=[0.02, 0.1, 0.5], yticklabels=["0.02", "0.1", "0.5 Nm"])
        d.minorticks_off()
        d.set_title("Physics first, kernels for the rest")
        d.legend(ncols=3, loc="upper center", columnspacing=1, handlelength=1.2)
        for ax in (b, d):
            ax.grid(True, axis="y")
        fig.savefig(STATIC / f"landing-{mode}.png", dpi=140, transparent=True)
        plt.close(fig)


if __name__ == "__main__":
    drawn = (path(), rare_digit(), *pendulum())
    for mode in COLOURS:
        draw(mode, *drawn)
