"""A durable learner survives real kills: its process is killed again and again, at any moment.

Run as a script, this file is that process.
"""

import copy
import os
import random
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

from imparo import IncrementalClassifier, RecursiveRegressor, lifelong
from imparo.errors import RecoveryWarning
from imparo.lifelong import durable
from imparo.persistence import fingerprint

LEARNERS = {
    "classifier": lambda: IncrementalClassifier(
        penalty=[0.1, 1.0], holdout=3, holdout_size=8, drift="forget"
    ),
    "regressor": lambda: RecursiveRegressor(penalty=[0.1, 1.0], forgetting=0.99),
}


def bits(learner):
    """A digest of every bit of a learner, durable or not, but what predictions leave behind."""
    if isinstance(learner, lifelong.DurableLearner):
        learner = learner._learner
    learner = copy.deepcopy(learner)
    learner.__dict__ = dict(sorted(vars(learner).items()))
    for recursion in vars(learner).get("_recursions", []):
        recursion._errors = recursion._errors[:0]
    return fingerprint(learner)


def change(learner, number):
    """Make the change of this number, to a durable learner or any other."""
    rng = np.random.default_rng(number)
    X = rng.normal(size=(rng.choice([1, 1, 2, 7, 40]), 3))
    classes = getattr(learner, "classes_", np.empty(0)).tolist()
    kind = number % 13
    if kind == 12:
        other = copy.deepcopy(MERGED["classifier" if classes else "regressor"])
        learner.merge(other.partial_fit(X, np.arange(len(X)) % 3))
    elif kind == 11 and len(classes) > 1:
        learner.forget(classes[number % len(classes)])
    elif kind == 10 and len(classes) > 1:
        learner.rename(classes[0], classes[-1] if number % 2 else 5)
    elif kind == 9:
        learner.learn_one(X[0], number % 5)
    elif kind == 8:
        weight = rng.uniform(0.5, 2.0, len(X))
        learner.partial_fit(X, np.arange(len(X)) % 5, sample_weight=weight)
    else:
        learner.partial_fit(X, rng.integers(0, 4, len(X)))


MERGED = {name: make() for name, make in LEARNERS.items()}


def live(name, folder, sync):
    """Learn until killed, and print each number that was acknowledged."""
    os.write(1, b"pid %d\n" % os.getpid())
    durable._LEAST_RECORDS = 3000
    robot = lifelong.open(folder, LEARNERS[name](), sync=sync)
    while True:
        change(robot, robot.number + 1)
        os.write(1, b"%d\n" % robot.number)


def serve():
    """Live once for each line that is read; forked, so that the library is imported once."""
    warnings.simplefilter("ignore", RecoveryWarning)
    for make in LEARNERS.values():  # compile before the first life
        make().partial_fit(np.ones((2, 3)), [0, 1])
    for line in sys.stdin:
        name, folder, sync = line.split()
        child = os.fork()
        if child == 0:
            try:
                live(name, folder, float(sync) if sync[0].isdigit() else sync)
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(1)
        os.write(1, b"end %d\n" % os.waitpid(child, 0)[1])


def unfinished(folder):
    """Names of files of snapshots that are being written, or never will be."""
    return {path.name for path in folder.glob("*unfinished-*")}


def until_a_snapshot_is_written(folder, old, seconds=5.0):
    patience = time.monotonic() + seconds
    while time.monotonic() < patience and unfinished(folder) <= old:
        pass


@pytest.mark.parametrize(
    "kills", [12, pytest.param(int(os.environ.get("IMPARO_KILLS", 30)), marks=pytest.mark.slow)]
)
def test_a_killed_learner_has_learned_exactly_what_it_acknowledged(tmp_path, kills):
    rng = random.Random(0)
    acknowledged, referred = dict.fromkeys(LEARNERS, 0), dict.fromkeys(LEARNERS, 0)
    references = {name: make() for name, make in LEARNERS.items()}
    bases, interrupted = set(), 0
    process = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        for kill in range(kills):
            name = list(LEARNERS)[kill % 2]
            folder = tmp_path / name
            sync, old = ("always", "0.01", "never")[kill // 2 % 3], unfinished(folder)
            process.stdin.write(f"{name} {folder} {sync}\n")
            process.stdin.flush()
            word, child = process.stdout.readline().split()
            assert word == "pid"
            # An early death meets recovery, a late one learning, and every third a snapshot.
            if kill % 3 == 2:
                until_a_snapshot_is_written(folder, old)
                time.sleep(rng.random() * 0.002)
            else:
                time.sleep(rng.random() * rng.choice([0.005, 0.2]))
            os.kill(int(child), signal.SIGKILL)
            for line in process.stdout:
                if line.startswith("end"):
                    assert int(line.split()[1]) == signal.SIGKILL
                    break
                assert int(line) == acknowledged[name] + 1  # none left out, none twice
                acknowledged[name] = int(line)
            if not any(folder.glob("snapshot-*")):
                assert acknowledged[name] == 0
                continue
            several = len(list(folder.glob("snapshot-*"))) > 1
            interrupted += several or not unfinished(folder) <= old
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RecoveryWarning)
                reader = lifelong.open(folder, writable=False)
            bases.add(reader._journal.snapshot_path.name)
            assert reader.number in (acknowledged[name], acknowledged[name] + 1)
            for number in range(referred[name] + 1, reader.number + 1):
                change(references[name], number)
            assert bits(reader) == bits(references[name])
            acknowledged[name] = referred[name] = reader.number
        process.stdin.close()
    assert sum(acknowledged.values()) > kills
    assert len(bases) > kills // 10
    assert interrupted > kills // 20


if __name__ == "__main__":
    serve()
