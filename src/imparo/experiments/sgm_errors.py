"""Table 6.2: hinge loss, errors and times of SGM and SIGM beside those of LIBSVM."""

import warnings
from functools import partial
from typing import Any

import numpy as np

from imparo import SGMClassifier
from imparo.errors import SelectionWarning
from imparo.experiments.shared.account import Account
from imparo.experiments.shared.data import Data, Split
from imparo.experiments.shared.experiment import Case, Experiment
from imparo.experiments.shared.results import Results
from imparo.experiments.shared.trials import timed
from imparo.experiments.shared.verdicts import Printed

_WAYS: dict[str, dict[str, Any]] = {
    "SGM C": {},
    "SGM D": {"decay": "auto"},
    "SIGM C": {"step": "nonsmooth-constant", "epochs": "auto"},
    "SIGM D": {"step": 0.25, "decay": 0.5, "epochs": "auto"},
}
_SVM = "LIBSVM"
# Data set, width, rows (None: all), and the thesis' hinge loss and error in per cent, each
# with its deviation, and seconds.
_SETS: dict[str, tuple[str, float, int | None, dict[str, tuple[Any, ...]]]] = {
    "breastCancer": ("breast-cancer-thesis", 0.4, None, {
        "SGM C": ("0.127", 0.022, "3.1", 1.1, 1.7), "SGM D": ("0.135", 0.024, "3.0", 1.1, 1.4),
        "SIGM C": ("0.131", 0.023, "3.2", 1.1, 1.4),
        "SIGM D": ("0.204", 0.017, "3.9", 1.0, 1.8), _SVM: ("", 0, "2.8", 1.3, 0.2)}),
    "adult, n = 1000": ("adult", 4.0, 1000, {
        "SGM C": ("0.380", 0.003, "16.6", 0.3, 5.7),
        "SGM D": ("0.378", 0.002, "16.2", 0.2, 5.4),
        "SIGM C": ("0.383", 0.002, "16.1", 0.0, 3.2),
        "SIGM D": ("0.450", 0.002, "23.6", 0.0, 1.6), _SVM: ("", 0, "18.7", 0.0, 5.8)}),
    "ijcnn1, n = 1000": ("ijcnn1", 0.6, 1000, {
        "SGM C": ("0.199", 0.016, "8.4", 0.8, 3.9), "SGM D": ("0.199", 0.009, "9.1", 0.1, 3.8),
        "SIGM C": ("0.205", 0.010, "9.3", 0.5, 1.7),
        "SIGM D": ("0.267", 0.006, "9.4", 0.6, 2.2), _SVM: ("", 0, "7.1", 0.7, 0.6)}),
    "adult": ("adult", 4.0, None, {
        "SGM C": ("0.342", 0.001, "15.2", 0.8, 320.0),
        "SGM D": ("0.340", 0.001, "15.1", 0.7, 332.1),
        "SIGM C": ("0.343", 0.001, "15.7", 0.9, 366.2),
        "SIGM D": ("0.364", 0.001, "17.1", 0.8, 442.4), _SVM: ("", 0, "15.3", 0.7, 6938.7)}),
    "ijcnn1": ("ijcnn1", 0.6, None, {
        "SGM C": ("0.041", 0.002, "1.5", 0.0, 564.9),
        "SGM D": ("0.059", 0.000, "1.7", 0.0, 578.9),
        "SIGM C": ("0.098", 0.001, "4.7", 0.1, 522.2),
        "SIGM D": ("0.183", 0.000, "9.5", 0.0, 519.3), _SVM: ("", 0, "0.9", 0.0, 770.4)}),
}  # fmt: skip
_LARGE = ("adult", "ijcnn1")


def cases(quick: bool) -> list[Case]:
    """Return a case for each part of the table; the large ones are not for the quick."""
    found = []
    for name, (data, sigma, n, _) in _SETS.items():
        settings = {"data": data, "sigma": sigma, "rows": n}
        if name not in _LARGE:
            more = {"passes": 100, "costs": [0.1, 1.0, 10.0, 100.0]}
            found.append(Case(name, 2 if quick else 10, settings | more))
        elif not quick:
            found.append(Case(name, 1, settings | {"passes": 25, "costs": [1.0]}))
    return found


def trial(case: Case, seed: int, data: Data) -> dict[str, Any]:
    """Fit all five, and test them."""
    split, held = _drawn(case, seed, data)
    found: dict[str, Any] = {}
    # Loops are compiled at the first call, which is not to be counted.
    SGMClassifier(features="exact", average=False).fit(split.X[:100], np.arange(100) % 2)
    for way, settings in _WAYS.items():
        if "epochs" in settings:
            settings = settings | {"epochs": range(1, case.settings["passes"] + 1)}
        model = SGMClassifier(
            sigma=case.settings["sigma"], features="exact", average=False, validation=held,
            random_state=seed, **settings,
        )  # fmt: skip
        with warnings.catch_warnings():
            # That the last pass was the best is told by the passes in the table.
            warnings.simplefilter("ignore", SelectionWarning)
            seconds, _ = timed(partial(model.fit, split.X, split.y))
        F = model.decision_function(split.X_test)
        found |= {
            f"{way} hinge": float(np.mean(np.maximum(0, 1 - split.y_test * F))),
            f"{way} error": 100 * float(np.mean((F > 0) != (split.y_test > 0))),
            f"{way} seconds": seconds,
            f"{way} passes": model.epochs_,
        }
    return found | _svm(case, split, held)


def _drawn(case: Case, seed: int, data: Data) -> tuple[Split, Any]:
    """Return the rows of a trial, and what is held out of them."""
    split, n = data.split(case.settings["data"]), case.settings["rows"]
    rng = np.random.default_rng(seed)
    if case.name == "breastCancer":
        X, y = np.vstack([split.X, split.X_test]), np.append(split.y, split.y_test)
        order, n = rng.permutation(len(y)), len(split.y)
        X, y = X[order], y[order]
        return Split(X[:n], y[:n], X[n:], y[n:]), 0.2
    if n is not None:
        rows = rng.permutation(len(split.y))[:n]
        return Split(split.X[rows], split.y[rows], split.X_test, split.y_test), 0.2
    # Half of the memory; losses agree to four digits.
    small = Split(*(part.astype(np.float32) for part in split))
    if case.name != "ijcnn1":
        return small, 0.2
    # Rows are a series: any held out at random would be copies of their neighbours.
    places, cut = np.arange(len(split.y)), len(split.y) * 4 // 5
    return small, [(places[:cut], places[cut:])]


def _svm(case: Case, split: Split, held: Any) -> dict[str, float]:
    """Return what scikit-learn's SVC, which is LIBSVM, comes to."""
    from sklearn.model_selection import train_test_split
    from sklearn.svm import SVC

    gamma, costs = 1 / (2 * case.settings["sigma"] ** 2), case.settings["costs"]

    def chosen() -> SVC:
        best = costs[0]
        if len(costs) > 1:
            X, X_held, y, y_held = train_test_split(
                split.X, split.y, test_size=held, random_state=0, stratify=split.y
            )
            scores = [SVC(C=C, gamma=gamma).fit(X, y).score(X_held, y_held) for C in costs]
            best = costs[int(np.argmax(scores))]
        return SVC(C=best, gamma=gamma).fit(split.X, split.y)

    seconds, model = timed(chosen)
    wrong = float(np.mean(model.predict(split.X_test) != split.y_test))
    return {f"{_SVM} error": 100 * wrong, f"{_SVM} seconds": seconds}


def tell(results: Results) -> Account:
    """Put losses and errors beside the thesis', and times beside LIBSVM's."""
    account, rows = Account(), []
    for name in (name for name in _SETS if name in results):
        printed, trials = _SETS[name][3], len(results.trials[name])
        base, other = results.mean(name, f"{_SVM} seconds"), printed[_SVM][4]
        for way, (hinge, of_hinge, error, of_error, seconds) in printed.items():
            told = [("hinge", hinge, of_hinge, ".3f"), ("error", error, of_error, ".1f")]
            for what, text, deviation, digits in told if hinge else told[1:]:
                key, unit = f"{way} {what}", " (%)" if what == "error" else ""
                account.compare(
                    f"{name}, {way}, {what}{unit}",
                    Printed(text, deviation), results.mean(name, key),
                    results.deviation(name, key), trials, _because(name, way),
                    substituted=results.substituted(name), digits=digits,
                )  # fmt: skip
            passes = f"{results.mean(name, f'{way} passes'):.0f}" if way != _SVM else ""
            ours = results.mean(name, f"{way} seconds") / base
            rows.append([name, way, passes, f"{ours:.3g}", f"{seconds / other:.3g}"])
        _judge(account, results, name)
    account.table(
        "Passes and times",
        "The passes chosen, and the time with all selection over LIBSVM's in the same run.",
        ["data", "way", "passes", "time / LIBSVM's", "thesis"],
        rows,
    )
    account.notes += [
        "LIBSVM is scikit-learn's SVC with the same width; its C is chosen among 0.1, 1, 10 "
        "and 100 by hold-out on the small sets and is 1, with a single fit, on the large ones. "
        "The thesis does not say its C.",
        "With a decaying step, the thesis' 0.450 and 23.6 % on adult with n = 1000 what "
        "ours has after five passes, when the more frequent class is all that is answered: "
        "23.6 % is the share of the other. Ours stop when the rows held out say so.",
        "The quick version leaves out the large sets."
        if results.quick
        else "On the large sets one trial is made, with at most 25 passes.",
    ]
    return account


def _because(name: str, way: str) -> str:
    """Return why a number may differ from the thesis', as far as it is known."""
    if (name, way) == ("breastCancer", "SGM D"):
        return (
            "on breastCancer no decay at all is best for η = 1/4, and one pass over 400 rows "
            "is still too short with it; how the thesis came to 0.135 is not known"
        )
    if name == "adult":
        return (
            "the last iterate of a pass over adult scatters with the order of the rows (0.355 "
            "and 0.362 in two orders), more than the 0.001 that the thesis prints"
        )
    if name != "adult, n = 1000":
        return ""
    return (
        "draws of 1000 rows of adult differ by more than the deviations that the thesis "
        "prints, which may be those of the same rows in other orders"
    )


def _judge(account: Account, results: Results, name: str) -> None:
    """Check on one data set what the text of the thesis says."""
    errors = {way: results.mean(name, f"{way} error") for way in (*_WAYS, _SVM)}
    near = [abs(errors[way] - errors[_SVM]) for way in ("SGM C", "SGM D", "SIGM C")]
    account.check(
        f"{name}: SGM and SIGM with a constant step are in line with LIBSVM",
        max(near) <= 1.5,
        "errors: " + ", ".join(f"{way} {error:.1f} %" for way, error in errors.items()),
        "the thesis has LIBSVM ahead on these 1000 rows as well, by 1.3 to 2.2 %, and choosing "
        "C by hold-out helps it further: with C = 1 it has 9.6 % too"
        if name == "ijcnn1, n = 1000"
        else "",
    )
    hinge = {way: results.mean(name, f"{way} hinge") for way in _WAYS}
    account.check(
        f"{name}: SIGM with a decaying step has the largest loss",
        max(hinge, key=lambda way: hinge[way]) == "SIGM D",
        "hinge losses: " + ", ".join(f"{way} {loss:.3f}" for way, loss in hinge.items()),
    )
    base = results.mean(name, f"{_SVM} seconds")
    for kind in ("SGM", "SIGM"):
        times = [results.mean(name, f"{kind} {step} seconds") / base for step in "CD"]
        large = name in _LARGE
        account.check(
            f"{name}: {kind} is {'faster than' if large else 'comparable in time with'} LIBSVM",
            max(times) < (1 if large else 10),
            f"it takes {times[0]:.2g} (C) and {times[1]:.2g} (D) times as long",
            "LIBSVM is fitted once here, without a choice of C, and up to 25 passes are made "
            "twice, for the choice and on all rows"
            if large
            else "a support vector machine of a few hundred rows takes milliseconds, and up to "
            "100 passes are made where the thesis seems to have stopped earlier",
        )


EXPERIMENT = Experiment(
    name="sgm-errors",
    chapter=6,
    place="Table 6.2",
    title="Stochastic gradients against support vector machines",
    finding="One pass with a chosen step, or many passes with a fixed one, have the errors of "
    "LIBSVM, and on large sets they take much less time; many passes with a decaying step are "
    "worse.",
    setting="breastCancer (n = 400, σ = 0.4), adult (n = 1000 and 32,562, σ = 4), ijcnn1 (n = "
    "1000 and 49,990, σ = 0.6); SGM: one pass, 30 step sizes (C) or decays with η = 1/4 (D); "
    "SIGM: η = 1/√n (C) or η = 1/4, θ = 1/2 (D), stopped early; hold-out of 20 %; 10 trials.",
    cases=cases,
    trial=trial,
    tell=tell,
    data=("breast-cancer-thesis", "adult", "ijcnn1"),
    minutes=20,
)
