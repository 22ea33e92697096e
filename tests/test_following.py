"""What feeds a learner: positions that survive, files that grow, rows that cannot be used."""

import json
import os

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imparo import IncrementalClassifier, RandomFeatures, RecursiveRegressor, lifelong
from imparo.data import Frame
from imparo.data.readers import BadRows
from imparo.errors import FileFormatError
from imparo.preparation import KernelInputs
from imparo.tabular.following import (
    ChangedFileWarning,
    Feeding,
    Files,
    Formats,
    Keeper,
    Pace,
    Positions,
    open_kept,
)
from imparo.tabular.following import positions as positions_module

SMALL = {"features": 20, "sync": "never"}


def table(n, seed=0, start=0):
    """Rows of two numbers and a category, with an output."""
    rng = np.random.default_rng(seed)
    u, v = rng.normal(size=(2, n)).round(4)
    c = rng.choice(["left", "right", "up"], n)
    y = (np.sin(u) + v * (c == "up") + 3).round(4)
    frame = Frame({"u": u, "v": v, "c": c.astype(object), "y": y})
    return frame[start:]


def written(frame):
    """A frame as lines of CSV, without names."""
    columns = [frame[name].tolist() for name in frame.columns]
    return [",".join(map(str, row)) + "\n" for row in zip(*columns, strict=True)]


def as_file(path, frame):
    path.write_text(",".join(frame.columns) + "\n" + "".join(written(frame)))
    return path


def append(path, text):
    with open(path, "a") as file:
        file.write(text)


def fed(folder, data, target=None, *, bad="stop", block=7, warmup=50, follow=False, **more):
    """Learn what there is; return the rows learned in all, and the bad ones."""
    pace = {k: more.pop(k) for k in ("stop_after", "idle", "poll") if k in more}
    files = {k: more.pop(k) for k in ("on_rotate",) if k in more}
    formats, rows = Formats(), BadRows(bad)
    with Keeper(folder, target, **{**SMALL, **more}) as keeper:
        states = {} if keeper.model is None else keeper.positions.totals.states
        source = Files(
            data, formats, states, follow=follow, poll=pace.get("poll", 0.5), **files
        )
        try:
            Feeding(keeper, source, formats, Pace(block, warmup, **pace), rows).run()
        finally:
            source.close()
        return keeper.rows, rows


def reference(frame, warmup=50, features=20, target="y"):
    """Predictions of one learner that was shown all rows, made without any of this."""
    names = [name for name in frame.columns if name != target]
    first = frame[:warmup]
    inputs = KernelInputs().fit(first.select(names))
    y = frame[target]
    is_class = y.dtype == object
    center, scale = (0, 1) if is_class else (y[:warmup].mean(), y[:warmup].std())
    map = RandomFeatures(n_features=features, random_state=0)
    map = map.fit(inputs.transform(first.select(names))).map_
    learner = IncrementalClassifier(map) if is_class else RecursiveRegressor(map)
    X = inputs.transform(frame.select(names))
    learner.fit(X, y if is_class else (y - center) / scale)
    return lambda rows: (
        learner.predict(inputs.transform(rows.select(names)))
        if is_class
        else center + scale * learner.predict(inputs.transform(rows.select(names)))
    )


def assert_learned(folder, frame, **options):
    """The folder holds a learner that was shown these rows, each once."""
    model = open_kept(folder)
    probe = table(40, seed=9)
    assert model.machine.learner.n_seen_ == len(frame)
    expected = reference(frame, **options)(probe)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(model.predict(probe), expected, rtol=1e-7)
    else:
        assert model.predict(probe).tolist() == expected.tolist()
    model.close()


# Positions.


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_positions_follow_the_learner_wherever_it_stopped(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("log") / "positions.log"
    learned, offset, states = 0, 0, {0: {}}
    for _ in range(data.draw(st.integers(1, 4))):
        log = Positions(path, learned, sync=False)
        assert log.skip == 0
        assert log.totals.states == states[learned]
        first = learned
        for _ in range(data.draw(st.integers(0, 5))):
            rows = data.draw(st.integers(1, 9))
            offset += 10
            log.write(rows, {"a": {"offset": offset}})
            learned += rows
            states[learned] = {"a": {"offset": offset}}
        log.drop()
        # It may have died before any of the blocks, or a power cut may have undone some.
        learned = data.draw(st.sampled_from([n for n in states if n >= first]))
        states = {n: state for n, state in states.items() if n <= learned}
        if data.draw(st.booleans()):
            append(path, '0bad {"seen": 1')  # half a line


def test_rows_learned_after_the_last_line_that_is_left_are_skipped(tmp_path):
    frame = table(120)
    file = as_file(tmp_path / "a.csv", frame)
    fed(tmp_path / "kept", file, "y", stop_after=84)
    log = tmp_path / "kept" / "positions.log"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:5]))  # a power cut took the rest, the end included
    assert fed(tmp_path / "kept", file)[0] == 120
    assert_learned(tmp_path / "kept", frame)


def test_rows_that_somebody_else_taught_are_not_skipped(tmp_path):
    frame = table(120)
    file = as_file(tmp_path / "a.csv", frame[:80])
    fed(tmp_path / "kept", file, "y")
    with Keeper(tmp_path / "kept", **SMALL) as keeper:
        keeper.learn(table(10, seed=3))
        width = keeper.model.prepared(frame).shape[1]
    with lifelong.open(tmp_path / "kept") as learner:  # past the log
        learner.learn(np.zeros((4, width)), np.zeros(4))
    append(file, "".join(written(frame[80:])))
    assert fed(tmp_path / "kept", file)[0] == 80 + 10 + 4 + 40


def test_a_log_that_is_gone_or_begins_too_late_is_told(tmp_path):
    file = as_file(tmp_path / "a.csv", table(60))
    fed(tmp_path / "kept", file, "y")
    log = tmp_path / "kept" / "positions.log"
    content = log.read_bytes()
    log.unlink()
    with pytest.raises(FileFormatError, match="nobody knows which rows"):
        Keeper(tmp_path / "kept")
    log.write_bytes(content)
    with pytest.raises(FileFormatError, match="knows nothing before row"):
        Positions(log, 60).close() or Positions(log, 3)


def test_a_long_log_is_shortened_and_still_goes_back(tmp_path, monkeypatch):
    monkeypatch.setattr(positions_module, "_KEPT", 10)
    path = tmp_path / "positions.log"
    log = Positions(path, 0, sync=False)
    for number in range(1, 96):
        log.write(2, {f"file {number % 7}": {"offset": number}})
    log.drop()
    assert len(path.read_bytes().splitlines()) <= 21
    states = Positions(path, 2 * 90, sync=False).totals.states
    assert states == {f"file {n % 7}": {"offset": n} for n in range(84, 91)}


# Files.


@settings(max_examples=5, deadline=None)
@given(cuts=st.lists(st.integers(1, 3500), max_size=4), block=st.integers(1, 60))
def test_a_file_that_grows_by_any_pieces_is_learned_once(tmp_path_factory, cuts, block):
    folder = tmp_path_factory.mktemp("growing")
    frame = table(150)
    content = as_file(folder / "whole.csv", frame).read_bytes()
    file, choices = folder / "a.csv", {"task": "regression", "sigma": 1.0}
    for end in [*sorted(cut for cut in cuts if cut < len(content)), len(content)]:
        file.write_bytes(content[:end])  # may end within a line, within the names even
        rows, _ = fed(
            folder / "kept", file, "y", block=block, follow=True, idle=0, poll=0.01, **choices
        )
        lines = content[:end].count(b"\n")
        assert rows == max(0, lines - 1)


def test_blocks_and_stops_do_not_change_what_is_learned(tmp_path):
    frame = table(130)
    file = as_file(tmp_path / "a.csv", frame)
    for stop in (13, 29, 61, None):
        fed(tmp_path / "kept", file, "y", stop_after=stop)
    # The first run saw thirteen rows, and decided by them.
    assert_learned(tmp_path / "kept", frame, warmup=13)


def test_a_last_line_without_an_end_is_a_row_and_may_not_go_on(tmp_path):
    frame = table(60)
    file = as_file(tmp_path / "a.csv", frame)
    file.write_text(file.read_text()[:-1])
    assert fed(tmp_path / "kept", file, "y")[0] == 60
    append(file, "\n" + written(table(61, start=60))[0])
    assert fed(tmp_path / "kept", file)[0] == 61
    file.write_text(file.read_text()[:-1])
    append(file, "7\n")
    with pytest.raises(ValueError, match="a\\.csv holds something else now"):
        fed(tmp_path / "kept", file)


@pytest.mark.parametrize("change", ["cut", "replaced", "overwritten"])
def test_a_file_that_was_cut_or_replaced_is_told_or_begun_anew(tmp_path, change):
    file = as_file(tmp_path / "a.csv", table(60))
    fed(tmp_path / "kept", file, "y")
    new = table(20, seed=5) if change == "cut" else table(90, seed=5)
    if change == "replaced":
        file.rename(tmp_path / "old.csv")
    as_file(file, new)
    with pytest.raises(ValueError, match=r"a\.csv .*--on-rotate continue"):
        fed(tmp_path / "kept", file)
    with pytest.warns(ChangedFileWarning, match="from its beginning"):
        assert fed(tmp_path / "kept", file, on_rotate="continue")[0] == 60 + len(new)
    assert fed(tmp_path / "kept", file)[0] == 60 + len(new)


def test_what_was_appended_before_a_file_was_moved_away_is_learned(tmp_path):
    frame = table(80)
    file = as_file(tmp_path / "a.csv", frame[:60])
    formats = Formats()
    source = Files(file, formats, {}, follow=True, on_rotate="continue")
    while source.read(100) is not None:
        pass
    append(file, "".join(written(frame[60:]))[:-1])
    file.rename(tmp_path / "a.csv.1")
    as_file(file, table(10, seed=2))
    assert len(source.read(100)) == 19
    assert len(source.read(100)) == 1  # it has no end, and never will
    with pytest.warns(ChangedFileWarning):
        assert len(source.read(100)) == 10
    source.close()


def test_a_file_that_was_copied_or_renamed_goes_on(tmp_path):
    frame = table(90)
    file = as_file(tmp_path / "a.csv", frame[:60])
    fed(tmp_path / "kept", file, "y")
    copy = file.read_bytes()
    file.unlink()
    file.write_bytes(copy)  # as an editor saves it
    append(file, "".join(written(frame[60:75])))
    assert fed(tmp_path / "kept", file)[0] == 75
    moved = file.rename(tmp_path / "b.csv")
    append(moved, "".join(written(frame[75:])))
    assert fed(tmp_path / "kept", moved)[0] == 90
    assert_learned(tmp_path / "kept", frame)


def test_files_of_a_folder_come_in_natural_order_and_once(tmp_path):
    frame, data = table(200), tmp_path / "data"
    data.mkdir()
    as_file(data / "part-2.csv", frame[:60])
    as_file(data / "part-10.csv", frame[60:90])
    as_file(data / ".hidden.csv", frame)
    (data / "notes.md").write_text("not data")
    assert fed(tmp_path / "kept", data, "y")[0] == 90
    (data / "part-2.csv").unlink()  # no longer needed
    lines = [
        {name: frame[name][i].item() if name != "c" else frame[name][i] for name in "uvcy"}
        for i in range(90, 120)
    ]
    (data / "part-11.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    pd.DataFrame({name: frame[name][120:150] for name in "uvcy"}).to_parquet(
        data / "part-12.parquet"
    )
    append(data / "part-10.csv", "".join(written(frame[150:160])))
    assert fed(tmp_path / "kept", data)[0] == 160
    order = np.r_[0:90, 150:160, 90:150]
    assert_learned(tmp_path / "kept", frame[order])
    pd.DataFrame({name: frame[name][:5] for name in "uvcy"}).to_parquet(
        data / "part-12.parquet"
    )
    with pytest.warns(ChangedFileWarning, match="part-12"):
        assert fed(tmp_path / "kept", data)[0] == 160


def test_a_file_that_is_read_as_a_whole_goes_on_where_it_was(tmp_path):
    frame = table(100)
    file = tmp_path / "a.parquet"
    pd.DataFrame({name: frame[name] for name in "uvcy"}).to_parquet(file)
    for stop in (55, 11, None):
        fed(tmp_path / "kept", file, "y", stop_after=stop)
    assert_learned(tmp_path / "kept", frame)
    with pytest.raises(ValueError, match="cannot be followed"):
        fed(tmp_path / "kept", file, follow=True)


# Rows.


BAD = {
    "cells": "1,2\n",
    "text": "1,2,up,what\n",
    "missing": "1,2,up,\n",
    "infinite": "inf,2,up,1\n",
    "encoding": b"1,2,\xff\xfe,1\n",
    "huge": "1e300,2,up,1\n",
}


# A huge number among the first rows is the size of its column.
@pytest.mark.parametrize(
    ("kind", "place"),
    [(kind, place) for kind in BAD for place in (20, 100) if (kind, place) != ("huge", 20)],
)
def test_rows_before_a_bad_one_are_learned_and_it_is_named(tmp_path, kind, place):
    frame, line = table(130), BAD[kind]
    lines = [text.encode() for text in written(frame)]
    lines.insert(place, line if isinstance(line, bytes) else line.encode())
    file = tmp_path / "a.csv"
    file.write_bytes(b"u,v,c,y\n" + b"".join(lines))
    for _ in range(2):  # it stays there
        with pytest.raises(ValueError, match=rf"a\.csv, line {place + 2}\b"):
            fed(tmp_path / "kept", file, "y")
        assert Keeper(tmp_path / "kept").rows == place
    rows, bad = fed(tmp_path / "kept", file, bad="skip")
    assert (rows, bad.count) == (130, 1)
    assert_learned(tmp_path / "kept", frame, warmup=min(50, place))


def test_bad_rows_among_the_first_are_left_out_of_the_decision(tmp_path):
    frame = table(80)
    lines = written(frame)
    lines[10:10] = ["1,2,up,\n", "x\n"]
    (tmp_path / "a.csv").write_text("u,v,c,y\n" + "".join(lines))
    rows, bad = fed(tmp_path / "kept", tmp_path / "a.csv", "y", bad="skip", warmup=52)
    assert (rows, bad.count) == (80, 2)
    assert_learned(tmp_path / "kept", frame, warmup=50)


def test_new_classes_and_new_categories_are_learned_at_once(tmp_path):
    frame = table(200)
    y = np.where(frame["u"] > 0, "high", "low").astype(object)
    y[150:] = np.where(np.arange(50) % 2, "new", y[150:])
    c = frame["c"].copy()
    c[170:] = "down"
    frame = frame.with_column("y", y).with_column("c", c)
    file = as_file(tmp_path / "a.csv", frame)
    assert fed(tmp_path / "kept", file, "y")[0] == 200
    assert open_kept(tmp_path / "kept").classes == ["high", "low", "new"]
    assert_learned(tmp_path / "kept", frame)


def test_columns_of_numbers_that_were_text_before_stay_text(tmp_path):
    frame = table(60)
    data = tmp_path / "data"
    data.mkdir()
    as_file(data / "1.csv", frame)
    lines = ["1.0,2.0,7,3.0\n"] * 5  # all codes are numbers here
    (data / "2.csv").write_text("u,v,c,y\n" + "".join(lines))
    (data / "3.jsonl").write_text('{"u": 1, "c": 7, "y": 3}\n{"y": 1, "c": null}\n')
    assert fed(tmp_path / "kept", data, "y")[0] == 67
    (data / "4.csv").write_text("u,c,y\n1,up,2\n")
    with pytest.raises(ValueError, match=r"4\.csv.*'v'"):
        fed(tmp_path / "kept", data)


# The keeper.


def test_the_error_is_that_of_predictions_made_before_learning(tmp_path):
    frame, losses = table(120), []
    with Keeper(tmp_path / "kept", "y", **SMALL) as keeper:
        keeper.learn(frame[:50])
        assert np.isnan(keeper.error)
        for start in range(50, 90, 8):
            part = frame[start : start + 8]
            losses.append(np.square(reference(frame[:start])(part) - part["y"]))
            keeper.learn(part)
        assert keeper.error == pytest.approx(np.sqrt(np.concatenate(losses).mean()), rel=1e-6)
    with Keeper(tmp_path / "kept", **SMALL) as keeper:  # it is remembered
        assert keeper.error == pytest.approx(np.sqrt(np.concatenate(losses).mean()), rel=1e-6)
        assert np.isnan(keeper.recent)


def test_a_folder_refuses_other_targets_choices_and_writers(tmp_path):
    frame = table(60)
    with Keeper(tmp_path / "kept", "y", **SMALL) as keeper:
        keeper.learn(pd.DataFrame({name: frame[name] for name in "uvcy"}))
        with pytest.raises(BlockingIOError, match=f"another process \\({os.getpid()}"):
            Keeper(tmp_path / "kept")
        reader = open_kept(tmp_path / "kept")
        keeper.learn(frame)
        assert reader.refresh() == 120
        assert reader.predict(frame).tolist() == keeper.predict(frame).tolist()
        with pytest.raises(ValueError, match=r"row 1: the target 'y' is missing"):
            keeper.learn(Frame({**{n: frame[n][:2] for n in "uvc"}, "y": [1.0, np.nan]}))
        assert keeper.rows == 120
    for wrong, words in (({"target": "u"}, "learns 'y'"), ({"features": 21}, "features 20")):
        with pytest.raises(ValueError, match=words):
            Keeper(tmp_path / "kept", **wrong)
    with pytest.raises(FileFormatError, match="holds nothing that imparo learn keeps"):
        open_kept(tmp_path)


def test_a_process_that_died_before_the_first_row_begins_again(tmp_path, monkeypatch):
    frame, folder = table(60), tmp_path / "kept"
    for name in ("open_learner", "Positions"):
        with monkeypatch.context() as patched:
            patched.setattr(f"imparo.tabular.following.keeper.{name}", _fail)
            with pytest.raises(OSError, match="no space"):
                Keeper(folder, "y", **SMALL).learn(frame)
    assert (folder / "table.imparo").exists()
    fed(folder, as_file(tmp_path / "a.csv", frame), "y", warmup=9)
    assert_learned(folder, frame, warmup=60)  # what was decided stays


def _fail(*args, **kwargs):
    raise OSError(28, "no space")


@pytest.mark.parametrize("where", ["positions", "journal"])
def test_a_full_disk_loses_nothing_and_learns_nothing_twice(tmp_path, monkeypatch, where):
    frame = table(130)
    file = as_file(tmp_path / "a.csv", frame)
    fed(tmp_path / "kept", file, "y", stop_after=70)
    real, left = os.write, [9 if where == "positions" else 8]

    def write(handle, content):
        left[0] -= 1
        if left[0] == 0:
            real(handle, bytes(content)[: len(content) // 2])
            raise OSError(28, "No space left on device")
        return real(handle, content)

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write)
        with pytest.raises(OSError, match="No space"):
            fed(tmp_path / "kept", file)
    assert left[0] <= 0
    assert fed(tmp_path / "kept", file)[0] == 130
    assert_learned(tmp_path / "kept", frame)
