"""Figure 1.8: the bias-variance trade-off along λ, measured where the thesis sketches it."""

from typing import Any

import numpy as np

from imparo import KernelRegressor
from imparo.engine import Array
from imparo.engine.threads import one_thread
from imparo.estimators.decomposition import bias_variance
from imparo.experiments.shared.account import Account
from imparo.experiments.shared.data import Data
from imparo.experiments.shared.experiment import Case, Experiment
from imparo.experiments.shared.results import Results
from imparo.reports.drawing import Drawing, Theme

_BASE, _MORE, _NOISIER = "100 rows", "400 rows", "100 rows, twice the noise"
_SIGMA = 0.2
_POOL = 20_000


def cases(quick: bool) -> list[Case]:
    """Return a case for some rows, one for more of them, and one for noisier ones."""
    repeats, trials = (20, 10) if quick else (100, 20)
    return [
        Case(name, trials, {"rows": rows, "noise": noise, "repeats": repeats})
        for name, rows, noise in ((_BASE, 100, 0.5), (_MORE, 400, 0.5), (_NOISIER, 100, 1.0))
    ]


def _truth(X: Array) -> Array:
    """Return the function to be learned."""
    found: Array = np.sin(3 * np.pi * X[:, 0]) * np.exp(-X[:, 0])
    return found


def trial(case: Case, seed: int, data: Data) -> dict[str, Any]:
    """Choose λ on a hold-out of one sample, and measure bias and variance over many."""
    # Hundreds of small matrices: a second thread would only be waited for.
    with one_thread():
        return _measured(case, seed)


def _measured(case: Case, seed: int) -> dict[str, Any]:
    """Return bias and variance along λ, and the λ's chosen."""
    rows, noise, repeats = (case.settings[key] for key in ("rows", "noise", "repeats"))
    rng = np.random.default_rng(seed)
    X, X_test = (rng.uniform(-1, 1, (size, 1)) for size in (_POOL, 1000))
    y = _truth(X) + noise * rng.standard_normal(_POOL)
    model, folds = (
        KernelRegressor(
            sigma=_SIGMA, penalty=np.logspace(-7, 0, 29), validation=validation,
            random_state=seed,
        ).fit(X[:rows], y[:rows])
        for validation in (0.2, 5)
    )  # fmt: skip
    # Small parts of a large pool are samples of their own, and test outputs without noise
    # leave the bias alone.
    parts = bias_variance(
        model, X, y, X_test, _truth(X_test), repeats=repeats, share=rows / _POOL,
        random_state=seed,
    )  # fmt: skip
    # The average of few models varies as well: what it adds to the bias is variance.
    extra = parts.variance / (repeats - 1)
    return {
        "penalties": parts.penalties,
        "bias": parts.bias - extra,
        "variance": parts.variance + extra,
        "chosen": model.penalty_,
        "chosen by folds": folds.penalty_,
    }


def tell(results: Results) -> Account:
    """Look for the minimum between bias and variance, and for what the hold-out chooses."""
    account = Account()
    best, rows = {}, []
    steadier: list[tuple[float, float]] = []
    for name in results:
        penalties = np.array(results.trials[name][0]["penalties"])
        order = np.argsort(penalties)
        penalties = penalties[order]
        parts = [results.values(name, key)[:, order] for key in ("bias", "variance")]
        bias, variance = (part.mean(axis=0) for part in parts)
        total, chosen = bias + variance, results.values(name, "chosen")
        best[name] = float(penalties[np.argmin(total)])
        _check_shape(account, name, penalties, *parts)
        excess, by_folds = (
            total[np.searchsorted(penalties, 0.999 * results.values(name, key))] / total.min()
            for key in ("chosen", "chosen by folds")
        )
        account.check(
            f"{name}: the hold-out error chooses a good λ",
            float(np.median(excess)) <= 1.5,
            f"in the median of {len(chosen)} trials the expected error at the λ chosen is "
            f"{np.median(excess):.2f} times the least, at worst {excess.max():.2f} times; its "
            f"median λ is {np.median(chosen):.1e}, the best {best[name]:.1e}",
            "a fifth of the rows tells errors apart no better than their noise allows: the "
            "thesis says itself that a single split might be unstable",
        )
        steadier.append((float(excess.mean()), float(by_folds.mean())))
        rows.append([
            name, f"{results.cases[name].settings['noise']:g}", f"{best[name]:.1e}",
            f"{np.median(chosen):.1e}", f"{total.min():.3g}", f"{np.median(excess):.2f}",
            f"{np.median(by_folds):.2f}",
        ])  # fmt: skip
        account.picture(
            name,
            "Squared bias and variance against λ, complexity growing to the right as λ falls. "
            "Ticks at the bottom are the λ's that hold-outs of single samples chose.",
            _drawing(penalties, bias, variance, chosen),
            "As λ falls bias falls and variance grows; their sum is least at "
            f"{best[name]:.1e}.",
        )
    _check_preferences(account, best)
    if steadier:
        single, folds = np.mean(steadier, axis=0)
        account.check(
            "V-fold cross-validation is preferred to a single hold-out",
            folds < single,
            f"the expected error at the λ that 5 folds choose is {folds:.2f} times the least "
            f"on average, at that of a hold-out {single:.2f} times",
        )
    account.table(
        "The best λ and the one chosen",
        "The error is the expected squared one without the noise. The last columns say how "
        "many times the least it is at the λ that a hold-out and 5 folds choose (medians).",
        [
            "sample",
            "noise",
            "best λ",
            "median λ chosen",
            "least error",
            "hold-out, times",
            "5 folds, times",
        ],
        rows,
    )
    account.notes.append(
        "The thesis draws this figure without data. Here y = sin(3πx)·exp(−x) plus noise, x "
        f"uniform on [−1, 1], with the Gaussian kernel of width {_SIGMA:g}. Its variance is "
        "that of a model about the average model, its bias the distance of the average model "
        "to the truth."
    )
    return account


def _check_shape(
    account: Account, name: str, penalties: Array, biases: Array, variances: Array
) -> None:
    """Check that bias grows, variance falls, and their sum has its least value between."""
    bias, variance, total = (
        part.mean(axis=0) for part in (biases, variances, biases + variances)
    )
    drop = float(np.diff(bias).min()) / float(total.min())
    account.check(
        f"{name}: bias grows with λ",
        # Steps of a hundredth of the error are within what is measured.
        drop >= -0.02 and bool((biases[:, -1] > biases[:, 0]).all()),
        f"squared bias goes from {max(bias[0], 0):.2g} to {bias[-1]:.2g}; the largest step "
        f"down is {max(-drop, 0):.1%} of the least error",
    )
    account.check(
        f"{name}: variance falls with λ",
        bool((np.diff(variance) < 0).all()),
        f"variance goes from {variance[0]:.2g} to {variance[-1]:.2g}, falling at "
        f"{int((np.diff(variance) < 0).sum())} of {len(variance) - 1} steps",
    )
    i = int(np.argmin(total))
    sums = biases + variances
    # By counts: at the least λ single samples can have any error.
    between = (sums[:, 0] > sums[:, i]) & (sums[:, -1] > sums[:, i])
    account.check(
        f"{name}: their sum is least at a λ between",
        0 < i < len(total) - 1 and between.mean() >= 0.9,
        f"in {int(between.sum())} of {len(between)} trials it is lower there than at both "
        f"ends; on average it is {total[i]:.3g} at λ = {penalties[i]:.1e}, "
        f"{total[0] / total[i]:.1f} times that at the least λ and "
        f"{total[-1] / total[i]:.1f} times that at the largest",
    )


def _check_preferences(account: Account, best: dict[str, float]) -> None:
    """Check how the best λ depends on the number of rows and on the noise."""
    if _BASE in best and _MORE in best:
        account.check(
            "A larger bias is preferred when samples are few",
            best[_BASE] > best[_MORE],
            f"the best λ is {best[_BASE]:.1e} of 100 rows and {best[_MORE]:.1e} of 400",
        )
    if _BASE in best and _NOISIER in best:
        account.check(
            "A larger bias is preferred when samples are noisy",
            best[_NOISIER] > best[_BASE],
            f"the best λ is {best[_NOISIER]:.1e} with twice the noise and {best[_BASE]:.1e} "
            "without",
        )


def _drawing(penalties: Array, bias: Array, variance: Array, chosen: Array) -> Drawing:
    """Return a drawing of both parts and their sum, λ falling to the right."""

    def draw(figure: Any, theme: Theme) -> None:
        ax = figure.subplots()
        total = bias + variance
        ax.plot(penalties, total, color=theme.ink, lw=2, label="bias² + variance")
        ax.plot(penalties, bias, color=theme.blue, lw=1.8, label="bias²")
        ax.plot(penalties, variance, color=theme.orange, lw=1.8, label="variance")
        i = int(np.argmin(total))
        ax.plot(penalties[i], total[i], "o", color=theme.red, ms=7, label="best λ", zorder=3)
        top = min(8 * float(total.min()), 1.05 * float(total.max()))
        ax.plot(chosen, np.full(len(chosen), 0.02 * top), "|", color=theme.red, ms=11,
                mew=1.3, label="chosen by hold-out")  # fmt: skip
        ax.set(xscale="log", xlabel="penalty λ", ylabel="expected squared error",
               ylim=(0, top))  # fmt: skip
        ax.invert_xaxis()
        ax.legend(loc="upper center")

    return draw


EXPERIMENT = Experiment(
    name="bias-variance",
    chapter=1,
    place="Figure 1.8",
    title="The bias-variance trade-off",
    finding="Variance falls with λ and bias grows with it; the best λ has the least sum, and a "
    "hold-out error is a proxy for it. Few or noisy samples ask for a larger bias.",
    setting="A sketch without data; Tikhonov regularization, where a small λ yields a complex "
    "model.",
    cases=cases,
    trial=trial,
    tell=tell,
    minutes=0.5,
)
