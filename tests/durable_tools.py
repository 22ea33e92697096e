"""What the tests of durable learners share."""

import copy
import os
import signal
import threading
import traceback

import numpy as np
import pandas as pd

from imparo import IncrementalClassifier, RandomFeatures, RecursiveRegressor, lifelong
from imparo import persistence as files_of_models
from imparo.features import NystromMap
from imparo.kernels import Gaussian
from test_durable_kills import bits

CENTERS = np.random.default_rng(1).normal(size=(15, 4))
MAP = NystromMap(Gaussian(2.0), CENTERS)
WAVES = RandomFeatures(sigma=2.0, n_features=20, random_state=0)
MAKERS = {
    "classifier": lambda: IncrementalClassifier(drift="forget", holdout=3, holdout_size=20),
    "naive": lambda: IncrementalClassifier(penalty=1.0, recoding=0.0, holdout=None),
    "fading": lambda: IncrementalClassifier(MAP, forgetting=0.99, unknown_below=0.3),
    "directional": lambda: IncrementalClassifier(
        WAVES, penalty=[0.1, 1.0], forgetting=0.95, forgetting_kind="directional", drift=None
    ),
    "regressor": lambda: RecursiveRegressor(penalty=[1e-3, 0.1, 10.0], drift="forget"),
    "float32": lambda: RecursiveRegressor(dtype="float32", intercept=False),
    "waves": lambda: RecursiveRegressor(WAVES),
    "drawn": lambda: RecursiveRegressor(copy.deepcopy(WAVES).fit(CENTERS).map_, penalty=0.1),
    "nystrom": lambda: RecursiveRegressor(MAP, penalty=[0.01, 1.0], forgetting=0.98),
}
CLASSIFIERS = [name for name in MAKERS if isinstance(MAKERS[name](), IncrementalClassifier)]


def opened(path, learner=None, **options):
    return lifelong.open(path, learner, **{"sync": "never", **options})


def reopened_bits(path):
    with opened(path) as robot:
        return bits(robot)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def records(folder):
    return sorted(folder.glob("records-*"))


def blocks(name, n=420, seed=0):
    """Blocks of one to forty rows whose outputs mean something else in the second half."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    s = X[:, 0] + 0.5 * X[:, 1] ** 2
    if name in CLASSIFIERS:
        y = np.digitize(s, [-0.5, 0.5, 1.5])
        y[n // 2 :] = 3 - y[n // 2 :]
        y = np.array(["mug", "ball", "pen", "rare"])[y]
    else:
        y = np.where(np.arange(n) < n // 2, s, 5 - 3 * s) + 0.1 * rng.normal(size=n)
    start = 0
    while start < n:
        stop = start + int(rng.choice([1, 1, 3, 17, 40]))
        yield X[start:stop], y[start:stop]
        start = stop


def in_threads(*functions):
    """Run functions at once; raise what they raise; fail if one of them hangs."""
    errors = []

    def run(function):
        try:
            function()
        except BaseException:
            errors.append(traceback.format_exc())

    threads = [threading.Thread(target=run, args=(f,), daemon=True) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    assert not errors, "\n".join(errors)


def in_a_fork(function, seconds=20):
    """Return the text that a function returns or raises in a fork; it dies if it hangs."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(seconds)
            os.close(read)
            try:
                text = str(function())
            except BaseException:
                text = traceback.format_exc()
            os.write(write, text.encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    assert os.waitpid(child, 0)[1] == 0, f"the fork hangs: {text}"
    return text


def meanwhile(monkeypatch, where, name, act, before):
    """Let ``act`` happen once, just before or after the next call of a function."""
    real, due = getattr(where, name), [True]

    def acting(*args, **kwargs):
        now = due and due.pop()
        if now and before:
            act()
        result = real(*args, **kwargs)
        if now and not before:
            act()
        return result

    monkeypatch.setattr(where, name, acting)


class Slow:
    """Saving, which the test can hold up."""

    def __init__(self):
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()
        self.seconds, self.error = 20.0, None

    def hold(self):
        self.go_on.clear()

    def __call__(self, model, path):
        if threading.current_thread() is not threading.main_thread():
            self.begun.set()
            self.go_on.wait(self.seconds)
            if self.error is not None:
                raise self.error
        files_of_models.save(model, path)


def as_frame(X):
    return pd.DataFrame(X, columns=list("abcd"))
