"""Rows on a cluster that cannot be used: one clear sentence, and the model as it was."""

import asyncio
import time

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client

from cluster_tools import (
    CUTS,
    delayed,
    lazily,
    looks,
    pieces,
    shared_client,
    slow_parts,
    tasks_left,
    unchanged,
    wave,
)
from imparo import NystromClassifier, NystromRegressor
from imparo.errors import ClusterError

SEVEN = CUTS["seven"]


@pytest.fixture
def client(request):
    client = shared_client(request.config)
    with client.as_current():
        yield client


@pytest.fixture
def machine():
    """A fitted model, to see that it stays what it is."""
    X, y, _ = wave(60, seed=1)
    model = NystromRegressor(sigma=1.0, penalty=[1e-1, 1e-2], n_centers=10, random_state=0)
    return model.fit(X, y)


def refused(model, *rows, error=ValueError):
    """Return the sentence by which a fit is refused; the model must be as it was."""
    before = dict(vars(model))
    try:
        model.fit(*rows)
    except BaseException as told:
        if type(told) is not error:
            raise
        assert unchanged(model, before)
        return str(told)
    pytest.fail("nothing was refused")


# Values


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["arrays", "pairs", "on workers"])
def test_values_that_are_not_finite(client, machine, value, kind):
    X, y, _ = wave()
    X[3 * 43 + 5, 1] = value
    given = lazily(X, SEVEN), lazily(y, SEVEN)
    if kind == "pairs":
        given = (delayed(zip(pieces(X, SEVEN), pieces(y, SEVEN), strict=True)),)
    if kind == "on workers":
        given = client.persist(given)
    told = refused(machine, *given)
    what = "NaN" if np.isnan(value) else "infinity"
    assert f"X contains {what} in row 5 of partition 3 and must hold finite numbers" in told


def test_outputs_that_are_not_finite(client, machine):
    X, y, _ = wave()
    y[200] = np.nan
    assert "NaN" in refused(machine, lazily(X, SEVEN), lazily(y, SEVEN))


@pytest.mark.parametrize("value", [-1.0, np.nan])
def test_bad_weights(client, machine, value):
    X, y, weight = wave()
    weight[200] = value
    told = refused(machine, *(lazily(part, SEVEN) for part in (X, y, weight)))
    assert "sample_weight" in told


def test_text(client, machine):
    dd = pytest.importorskip("dask.dataframe")
    import pandas as pd

    X, y, _ = wave()
    frame = pd.DataFrame(X, columns=list("abc")).assign(city="Rome", road="Via Appia", y=y)
    parts = dd.from_pandas(frame, npartitions=3)
    told = refused(machine, parts[["a", "city", "b", "road"]], parts["y"])
    assert told.startswith("the columns city, road hold text and must hold numbers")
    told = refused(machine, parts[["a", "b"]], parts["city"])
    assert told.startswith("y holds text and a regressor needs numbers")
    told = refused(machine, delayed(pieces(X.astype(str), SEVEN)), y)
    assert told.startswith("X holds text and must hold numbers")


def test_text_of_frames_is_seen_before_anything_is_computed(client, machine, tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    import pandas as pd

    log = tmp_path / "log"

    def made(number):
        with open(log, "a") as file:
            file.write("0 0 0\n")
        return pd.DataFrame({"a": [1.0], "city": ["Rome"]})

    meta = pd.DataFrame({"a": [1.0], "city": ["Rome"]})
    frame = dd.from_map(made, range(3), meta=meta)
    assert "city" in refused(machine, frame, np.zeros(3))
    assert looks(log) == []


# Shapes


def test_columns_that_differ(client, machine):
    X, y, _ = wave()
    parts = pieces(X, SEVEN)
    parts[2] = parts[2][:, :2]
    told = refused(machine, delayed(parts), y)
    assert told == "partitions have 2 and 3 columns; every partition must have the same columns"


def test_rows_that_are_not_outputs(client, machine):
    X, y, weight = wave()
    rows, outputs = lazily(X, SEVEN), lazily(y, SEVEN)
    short = y[:-1]
    told = refused(machine, rows, da.from_array(short, chunks=100))
    assert "X has 300 rows and y has 299" in told
    assert "X has 300 rows and y has 299" in refused(machine, rows, short)
    told = refused(machine, rows, outputs, da.from_array(weight[:-1], chunks=100))
    assert "X has 300 rows and sample_weight has 299" in told
    told = refused(machine, rows, outputs, weight[:-1])
    assert "sample_weight" in told
    parts = pieces(y, SEVEN)
    parts[4] = parts[4][:-2]
    told = refused(machine, delayed(pieces(X, SEVEN)), delayed(parts))
    assert told.startswith("partition 4 has 43 rows and 41 outputs")
    parts = pieces(weight, SEVEN)
    parts[5] = parts[5][:, None]
    told = refused(machine, delayed(pieces(X, SEVEN)), y, delayed(parts))
    assert told.startswith("partition 5 has 43 rows and weights of shape (43, 1)")


def test_other_numbers_of_partitions(client, machine):
    X, y, _ = wave()
    told = refused(machine, delayed(pieces(X, SEVEN)), delayed(pieces(y, CUTS["two"])))
    assert told.startswith("X has 7 partitions and y has 2; give both in the same partitions")
    told = refused(machine, delayed(pieces(X, SEVEN)), y, delayed(pieces(y, CUTS["two"])))
    assert told.startswith("X has 7 partitions and sample_weight has 2")


def test_outputs_of_other_shapes(client, machine):
    X, y, _ = wave()
    parts = pieces(y, SEVEN)
    parts[1] = np.column_stack([parts[1], parts[1]])
    told = refused(machine, delayed(zip(pieces(X, SEVEN), parts, strict=True)))
    assert "outputs of different shapes" in told


def test_no_rows(client, machine):
    X, y, _ = wave()
    told = refused(machine, delayed([X[:0], X[:0]]), delayed([y[:0], y[:0]]))
    assert told == "the partitions hold no row; give at least one with rows"


def test_no_outputs(client, machine):
    X, y, _ = wave()
    assert "requires y to be passed" in refused(machine, lazily(X, SEVEN))
    assert "must give pairs (X, y)" in refused(machine, delayed(pieces(X, SEVEN)))
    machine.set_params(cluster=client)
    assert "X and y in memory" in refused(machine, X)
    assert "X and y in memory" in refused(machine, lambda: iter([(X, y)]))


def test_things_that_are_not_rows(client, machine):
    X, y, _ = wave()
    three = da.zeros((10, 2, 2), chunks=(5, 2, 2))
    assert "3 dimensions" in refused(machine, three, y[:10])
    assert "join them by dask.array.concatenate" in refused(
        machine, [lazily(X, SEVEN), lazily(X, SEVEN)], y
    )
    assert "delayed pairs" in refused(machine, [(dask.delayed(X),)])
    assert "2D" in refused(machine, lazily(y, SEVEN), y)


def test_a_class_too_few_in_a_partition_is_not_refused(client):
    X, y, _ = wave()
    order = np.argsort(y > 2, kind="stable")
    model = NystromClassifier(sigma=1.0, penalty=1e-2, n_centers=10, random_state=0)
    model.fit(lazily(X[order], SEVEN), lazily((y > 2)[order], SEVEN))
    assert len(model.classes_) == 2


# Recipes


def test_dates(client, machine):
    import dask.dataframe as dd
    import pandas as pd

    table = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "when": pd.Timestamp("2020-01-01")})
    with pytest.raises(ValueError, match="columns when hold dates"):
        machine.fit(dd.from_pandas(table, npartitions=2), np.arange(4.0))


def test_pairs_and_outputs_beside_them(client, machine):
    X, y = np.ones((4, 2)), np.arange(4.0)
    with pytest.raises(ValueError, match="given alone, without y"):
        machine.fit([dask.delayed((X, y))], y)


def test_an_error_of_the_recipe_is_told_as_it_is(client, machine):
    X, y, _ = wave()

    def made(number):
        if number == 2:
            raise LookupError("no page 2")
        return X[:10], y[:10]

    parts = [dask.delayed(made)(number) for number in range(4)]
    assert "no page 2" in refused(machine, parts, error=LookupError)
    assert tasks_left(client) == 0


def test_errors_in_later_passes(client, machine, tmp_path):
    """The model is as it was also where rows were read before."""
    X, y, _ = wave()
    log = tmp_path / "log"

    def made(number):
        with open(log, "a") as file:
            file.write("0 0 0\n")
        with open(log) as file:
            if len(file.readlines()) > 5:
                raise LookupError("gone")
        return X[:50], y[:50]

    assert "gone" in refused(machine, [dask.delayed(made)(n) for n in range(4)],
                             error=LookupError)  # fmt: skip
    assert tasks_left(client) == 0


@pytest.mark.parametrize("change", ["fewer", "more", "columns", "NaN"])
@pytest.mark.parametrize("since", [2, 3])
def test_rows_that_change_between_passes(client, machine, tmp_path, change, since):
    """Whichever pass it is that sees it: the second takes the centers, the third sums."""
    X, y, _ = wave()

    def made(number):
        marks = tmp_path / str(number)
        with open(marks, "a") as file:
            file.write("x")
        rows = X[:100].copy()
        if number == 1 and marks.stat().st_size >= since:
            rows = {"fewer": rows[:40], "more": X[:110], "columns": rows[:, :2]}.get(
                change, rows * np.nan
            )
        return rows, y[: len(rows)]

    machine.set_params(penalty=1e-2)
    told = refused(machine, [dask.delayed(made)(n) for n in range(3)])
    known = ("the same rows every time", "the same columns", "NaN", "changed")
    assert any(words in told for words in known), told


def test_a_task_that_fails_once_is_tried_again(client, machine, tmp_path):
    X, y, _ = wave()

    def made(number):
        marks = tmp_path / str(number)
        first = not marks.exists()
        marks.touch()
        if first:
            raise ConnectionError("try again")
        return X[number::3], y[number::3]

    parts = [dask.delayed(made)(number) for number in range(3)]
    assert "try again" in refused(machine, parts[:1], error=ConnectionError)
    with dask.annotate(retries=2):
        machine.fit(parts)
    assert len(list(tmp_path.iterdir())) == 3
    assert machine.n_features_in_ == 3


def test_files_that_workers_do_not_see(client, machine, tmp_path):
    X, y, _ = wave()
    np.save(tmp_path / "rows.npy", X)
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    (tmp_path / "rows.npy").unlink()
    machine.set_params(cluster=client)
    told = refused(machine, rows, y, error=OSError)
    assert "a worker cannot read" in told
    assert "rows.npy" in told


def test_progress_that_raises(client, machine, tmp_path):
    """Ctrl-C, wherever it comes, leaves no work behind and the model as it was."""
    X, y, _ = wave()

    def interrupt(done, total, what):
        raise KeyboardInterrupt

    machine.set_params(progress=interrupt)
    log, gate = tmp_path / "log", tmp_path / "gate"
    parts = slow_parts(X, y, SEVEN, log, seconds=0.1, gate=gate)
    refused(machine, parts, error=KeyboardInterrupt)
    assert tasks_left(client) == 0
    gate.touch()  # what a worker has begun it ends; what it has not, it never begins
    client.submit(time.sleep, 0.3, pure=False).result()
    assert 1 <= len(looks(log)) < 7


# What stands for a cluster


def test_things_that_are_no_cluster(machine):
    X, y, _ = wave()
    told = refused(machine.set_params(cluster=3), X, y, error=TypeError)
    assert "cluster=3 must be a dask.distributed.Client or the address" in told


def test_asynchronous_clients(client, machine):
    X, y, _ = wave()

    async def told():
        async with Client(
            client.scheduler.address, asynchronous=True, set_as_default=False
        ) as other:
            return refused(machine.set_params(cluster=other), X, y)

    assert "asynchronous" in asyncio.run(told())


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9"])
def test_addresses_where_nobody_answers(machine, monkeypatch, address):
    X, y, _ = wave()

    def hasty(address, timeout, **more):
        assert timeout == "10s"  # which would be too long for a test
        return Client(address, timeout="1s", **more)

    monkeypatch.setattr("distributed.Client", hasty)
    told = refused(machine.set_params(cluster=address), X, y, error=ClusterError)
    assert f"no scheduler of Dask answers at {address}" in told
    assert "\n" not in told


@pytest.mark.parametrize(
    "address", ["nonsense://somewhere", "no address", "10.0.0.1", "tcp://host"]
)
def test_what_is_no_address_is_told_at_once(machine, monkeypatch, address):
    """No client is made, which would have to be closed."""
    X, y, _ = wave(60)
    monkeypatch.setattr("distributed.Client", None)
    told = refused(machine.set_params(cluster=address), X, y, error=ClusterError)
    assert f"{address!r} is no address of a scheduler" in told
    assert "\n" not in told
