"""``imparo learn`` in processes of its own: kills, signals, pipes, two at once.

Run as a script, this file is a server that runs the command in forks of itself.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest

from imparo.data import Frame
from imparo.tabular.following import Keeper, open_kept
from test_following import append, as_file, assert_learned, table, written

COMMAND = [sys.executable, "-m", "imparo", "learn"]
QUICK = ["--features", "20", "--warmup", "50", "--poll", "0.01"]


def serve():
    """Run the command once for each line that is read; the library is imported once."""
    from imparo.cli.learn import learn

    with tempfile.TemporaryDirectory() as folder, Keeper(folder, "y", features=20) as keeper:
        keeper.learn(table(60))  # so that everything is compiled
        keeper.learn(table(60))
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                learn(json.loads(line))
            except SystemExit as end:
                os._exit(int(end.code or 0))
            finally:
                os._exit(9)
        os.write(1, b"%d\n" % child)
        status = os.waitpid(child, 0)[1]
        os.write(1, b"%d\n" % status)


@pytest.mark.parametrize(
    "kills", [6, pytest.param(int(os.environ.get("IMPARO_KILLS", 15)), marks=pytest.mark.slow)]
)
def test_killed_at_any_moment_it_learns_every_row_of_a_growing_file_once(tmp_path, kills):
    rng = random.Random(0)
    frame = table(60 + 60 * kills)
    lines, file, kept = written(frame), tmp_path / "a.csv", tmp_path / "kept"
    as_file(file, frame[:60])
    written_so_far, seen, log = 60, set(), kept / "positions.log"
    server = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with server:
        for kill in range(kills):
            sync, block = ("always", "0.01", "never")[kill % 3], str(rng.choice([1, 3, 17]))
            arguments = [str(kept), str(file), "--target", "y", "--follow", *QUICK]
            server.stdin.write(
                json.dumps([*arguments, "--sync", sync, "--block", block]) + "\n"
            )
            server.stdin.flush()
            child = int(server.stdout.readline())
            # An early death meets the beginning and recovery, a late one learning.
            early, changes = kill % 3 == 0, rng.randint(1, 8)
            end, size = time.monotonic() + (rng.random() * 0.1 if early else 10), -1
            while time.monotonic() < end and changes:
                count = min(rng.randint(0, 4), len(lines) - written_so_far)
                text = "".join(lines[written_so_far : written_so_far + count])
                append(file, text[: len(text) // 2])
                append(file, text[len(text) // 2 :])
                written_so_far += count
                time.sleep(0.003)
                before, size = size, log.stat().st_size if log.exists() else -1
                changes -= size != before
            time.sleep(rng.random() * 0.003)
            os.kill(child, signal.SIGKILL)
            assert int(server.stdout.readline()) == signal.SIGKILL
            if any(kept.glob("snapshot-*")):
                model = open_kept(kept)
                seen.add(getattr(model.machine.learner, "n_seen_", 0))
                model.close()
        append(file, "".join(lines[written_so_far:]))
        server.stdin.write(json.dumps([str(kept), str(file), "--features", "20"]) + "\n")
        server.stdin.flush()
        server.stdout.readline()
        assert int(server.stdout.readline()) == 0
        server.stdin.close()
    assert len(seen) > kills // 4  # it was killed while it learned
    assert_learned(kept, frame)


def objects(frame):
    return [
        json.dumps({"u": u, "v": v, "c": c, "y": y})
        for u, v, c, y in zip(*(frame[name].tolist() for name in "uvcy"), strict=True)
    ]


def test_a_pipe_acknowledges_what_is_safe_and_goes_on_after_it(tmp_path):
    frame = table(160)
    rows = objects(frame)
    rows[100:100] = ['{"u": 1, "v": 2, "c": "up"}', "not JSON"]  # no target; no object
    options = [*QUICK, "--target", "y", "--ack", "--bad-rows", "skip", "--sync", "never"]
    command = [*COMMAND, str(tmp_path / "kept"), "-", *options, "--block", "8"]
    sent, kind = 0, {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **kind) as process:
        process.stdin.write("\n".join(rows[:130]) + "\n" + rows[130][:5])
        process.stdin.flush()
        for line in process.stdout:
            sent = json.loads(line)["ack"]
            if sent >= 110:
                break
        process.kill()
    with subprocess.Popen(command, **kind) as process:
        sent = json.loads(process.stdout.readline())["ack"]  # some more may have been learned
        assert 110 <= sent <= 130
        said, _ = process.communicate("\n".join(rows[sent:]) + "\n", timeout=60)
    last = json.loads(said.splitlines()[-1])
    assert (process.returncode, last["ack"], last["rows"]) == (0, 162, 160)
    assert_learned(tmp_path / "kept", frame)


def wait_for(process, rows):
    for line in process.stdout:
        if json.loads(line)["rows"] >= rows:
            return
    raise AssertionError(f"it ended: {process.stderr.read()}")


def test_a_folder_is_followed_until_a_signal_and_by_one_process_alone(tmp_path):
    frame, data, kept = table(200), tmp_path / "data", tmp_path / "kept"
    data.mkdir()
    as_file(data / "1.csv", frame[:60])
    command = [*COMMAND, str(kept), str(data), "--target", "y", "--follow", *QUICK, "--json"]
    command += ["--every", "1"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        wait_for(process, 60)
        as_file(data / "2.csv", frame[60:100])
        wait_for(process, 100)
        append(data / "2.csv", "".join(written(frame[100:120])))
        wait_for(process, 120)
        np.savez(data / "3.npz", **{name: np.asarray(frame[name][120:150]) for name in "uvy"},
                 c=frame["c"][120:150].astype(str))  # fmt: skip
        wait_for(process, 150)
        other = subprocess.run(command, capture_output=True, text=True)
        assert other.returncode == 4
        assert f"kept by another process ({process.pid})" in other.stderr
        process.send_signal(signal.SIGTERM)
        said, wrong = process.communicate(timeout=30)
    assert (process.returncode, wrong) == (0, "")
    assert json.loads(said.splitlines()[-1])["ended"] == "stopped"
    assert_learned(kept, frame[:150])


def test_an_interrupt_ends_after_the_block_and_says_how_to_go_on(tmp_path):
    frame, kept = table(60), tmp_path / "kept"
    command = [*COMMAND, str(kept), "-", "--target", "y", "--ack", *QUICK]
    kind = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, **kind) as process:
        process.stdin.write("\n".join(objects(frame)) + "\n")
        process.stdin.flush()
        wait_for(process, 60)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
        wrong = process.stderr.read()
    assert process.returncode == 130
    assert "The same command goes on from here." in wrong
    assert "Traceback" not in wrong
    assert_learned(kept, Frame({name: frame[name] for name in "uvcy"}))


if __name__ == "__main__":
    serve()
