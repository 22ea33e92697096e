"""Many clients at once: one learner, one thread, nothing lost, nothing done twice."""

import asyncio
import errno
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import imparo.lifelong
from imparo import IncrementalClassifier
from imparo.service.errors import Begun, Busy, Conflict, Refused, Unavailable
from imparo.service.live import LiveLearner
from imparo.service.metrics import Metrics
from imparo.service.settings import Limits
from test_durable_kills import bits


@pytest.fixture
def make(tmp_path):
    """A function that opens a learner at work; closed at the end."""
    opened = []

    def make(learner=None, **limits):
        folder = tmp_path / "toys"
        if not folder.exists():
            imparo.lifelong.open(folder / "learner", learner or classifier()).close()
        live = LiveLearner(folder, sync="never", limits=Limits(**limits), metrics=Metrics())
        opened.append(live)
        return live

    yield make
    for live in opened:
        live.close()


def classifier():
    return IncrementalClassifier(penalty=1.0, recoding=0.5)


def examples(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] > 0, "a", "b").tolist()


def blocks_learned(live):
    """How often the learner was called, and with how many rows."""
    learn, sizes = live.learner.learn, []

    def counted(X, y):
        sizes.append(len(X))
        return learn(X, y)

    live.learner.learn = counted
    return sizes


class Held:
    """Work that keeps the learner's thread until it is let go."""

    def __init__(self):
        import threading

        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self):
        self.begun.set()
        assert self.go_on.wait(20)


async def until(event):
    assert await asyncio.to_thread(event.wait, 20)


async def settled():
    for _ in range(3):
        await asyncio.sleep(0)


def test_what_waits_together_is_learned_together(make):
    live, (X, y), held = make(), examples(40), Held()

    async def run():
        first = asyncio.create_task(live.change(held))
        await until(held.begun)
        waiting = [asyncio.create_task(live.teach(X[i : i + 1], [y[i]])) for i in range(40)]
        await settled()
        held.go_on.set()
        await first
        return await asyncio.gather(*waiting)

    live.desk.room, sizes = 1000, blocks_learned(live)
    done = asyncio.run(run())
    assert sizes == [40]
    assert {job.number for job in done} == {1}  # one record, and one sync to disk
    assert bits(live.learner) == bits(classifier().partial_fit(X, y))


def test_asked_together_is_answered_as_one_by_one(make):
    live, (X, y) = make(), examples(60)

    async def run():
        await live.teach(X, y)
        alphas = [None, 0.0, 1.0, 0.3] * 10
        together = await asyncio.gather(*(live.ask(X[i : i + 2], alphas[i]) for i in range(40)))
        return together, [await live.ask(X[i : i + 2], alphas[i]) for i in range(40)]

    together, alone = asyncio.run(run())
    for a, b in zip(together, alone, strict=True):
        assert a["answers"] == b["answers"]
        assert np.allclose(a["probabilities"], b["probabilities"], atol=1e-12)


def test_who_has_taught_asks_with_it_known(make):
    live = make()

    async def run():
        for k in range(30):
            await live.teach(np.eye(3)[[k % 3]], [f"thing {k}"])
            found = await live.ask(np.eye(3)[[k % 3]])
            assert f"thing {k}" in found["classes"]

    asyncio.run(run())


@pytest.mark.parametrize("bad", [np.full((1, 3), 1e200), np.ones((1, 2))])
def test_one_bad_example_does_not_spoil_those_beside_it(make, bad):
    live, (X, y), held = make(), examples(20), Held()

    async def run():
        first = asyncio.create_task(live.change(held))
        await until(held.begun)
        rows = [*(X[i : i + 1] for i in range(10)), bad, *(X[i : i + 1] for i in range(10, 20))]
        labels = [*y[:10], "bad", *y[10:]]
        tasks = [
            asyncio.create_task(live.teach(row, [label]))
            for row, label in zip(rows, labels, strict=True)
        ]
        await settled()
        held.go_on.set()
        await first
        return await asyncio.gather(*tasks, return_exceptions=True)

    live.desk.room = 1000
    done = asyncio.run(run())
    assert [isinstance(one, Refused) for one in done].index(True) == 10
    assert sum(isinstance(one, Exception) for one in done) == 1
    assert bits(live.learner) == bits(classifier().partial_fit(X, y))


def test_a_long_block_is_learned_in_parts_and_others_are_answered_between(make):
    live, (X, y) = make(), examples(500)
    sizes, order = blocks_learned(live), []

    async def run():
        await live.teach(X[:20], y[:20])
        sizes.clear()
        live.desk.room = 20
        live.desk._pace = lambda rows, seconds: None

        async def long():
            job = await live.teach(X, y)
            order.append("taught")
            return job

        async def ask():
            await live.ask(X[:1])
            order.append("answered")

        task = asyncio.create_task(long())
        await settled()
        await ask()
        return await task

    job = asyncio.run(run())
    assert order == ["answered", "taught"]
    assert set(sizes) == {20}
    assert sum(sizes) == job.done == len(job.answers) == 500
    both = np.concatenate([X[:20], X]), y[:20] + y
    assert bits(live.learner) == bits(classifier().partial_fit(*both))


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=8),
    room=st.integers(1, 40),
    paced=st.booleans(),
)
def test_each_row_is_learned_once_whatever_blocks_come_together(sizes, room, paced):
    X, y = examples(sum(sizes))
    ends = np.cumsum(sizes)
    parts = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]

    async def run():
        waiting = [asyncio.create_task(live.teach(X[part], y[part])) for part in parts]
        return await asyncio.gather(*waiting)

    with tempfile.TemporaryDirectory() as folder:
        imparo.lifelong.open(f"{folder}/toys/learner", classifier()).close()
        live = LiveLearner(
            Path(folder) / "toys", sync="never", limits=Limits(), metrics=Metrics()
        )
        live.desk.room = room
        if not paced:
            live.desk._pace = lambda rows, seconds: None
        try:
            done = asyncio.run(run())
            learned = bits(live.learner)
        finally:
            live.close()
    assert [len(job.answers) for job in done] == [job.done for job in done] == sizes
    assert [job.seen for job in done] == sorted(job.seen for job in done)
    assert done[-1].seen == sum(sizes)
    assert learned == bits(classifier().partial_fit(X, y))


def test_one_bad_question_does_not_spoil_those_beside_it(make):
    live = make(IncrementalClassifier(penalty=1.0, recoding=0.5, dtype="float32"))
    (X, y), held = examples(20), Held()

    async def run():
        await live.teach(X, y)
        alone = [await live.ask(X[:1]), await live.ask(X[1:2])]
        first = asyncio.create_task(live.look(held))
        await until(held.begun)
        rows = [X[:1], np.full((1, 3), 1e60), X[1:2]]  # beyond float32
        tasks = [asyncio.create_task(live.ask(row)) for row in rows]
        await settled()
        held.go_on.set()
        await first
        return alone, await asyncio.gather(*tasks, return_exceptions=True)

    alone, (one, bad, other) = asyncio.run(run())
    assert isinstance(bad, Refused)
    assert [one["answers"], other["answers"]] == [found["answers"] for found in alone]


def test_what_waits_too_long_is_not_learned_and_what_has_begun_is(make):
    live, (X, y), held = make(answer_seconds=0.2), examples(2), Held()

    async def run():
        begun = asyncio.create_task(live.change(held))
        await until(held.begun)
        with pytest.raises(Busy, match="nothing was done"):
            await live.teach(X[:1], y[:1])
        assert not begun.done()  # it has begun, and whoever sent it waits for its end
        held.go_on.set()
        await begun
        return await live.teach(X[1:], y[1:])

    assert asyncio.run(run()).seen == 1


def test_more_than_may_wait_is_refused_at_once(make):
    live, (X, y), held = make(waiting=5), examples(10), Held()

    async def run():
        first = asyncio.create_task(live.change(held))
        await until(held.begun)
        tasks = [asyncio.create_task(live.teach(X[i : i + 1], [y[i]])) for i in range(5)]
        await settled()
        with pytest.raises(Busy) as caught:
            await live.teach(X[5:6], y[5:6])
        held.go_on.set()
        await asyncio.gather(first, *tasks)
        return caught.value

    error = asyncio.run(run())
    assert error.status == 503
    assert error.retry_after >= 1
    assert live.desk.n_seen == 5


def test_a_full_disk_is_told_and_nothing_is_learned(make, monkeypatch):
    live, (X, y) = make(), examples(30)
    before = []

    async def run():
        await live.teach(X, y)
        before.append(bits(live.learner))

        def full(payload):
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(live.learner._journal, "append", full)
            with pytest.raises(Unavailable, match="No space left"):
                await live.teach(X[:1], ["new"])
        assert bits(live.learner) == before[0]
        return await live.teach(X[:1], ["new"])

    assert asyncio.run(run()).seen == 31


def test_a_bug_is_told_and_the_thread_goes_on(make, monkeypatch):
    live, (X, y) = make(), examples(30)

    async def run():
        await live.teach(X, y)

        def broken(*_):
            raise ZeroDivisionError("oh")

        with monkeypatch.context() as patch:
            patch.setattr(live.desk, "answer", broken)
            with pytest.raises(Exception, match="a bug of imparo"):
                await live.ask(X)
        return await live.ask(X)

    assert len(asyncio.run(run())["answers"]) == 30


def test_changes_keep_their_place_among_lessons(make):
    live, (X, y), held = make(), examples(20), Held()

    async def run():
        first = asyncio.create_task(live.change(held))
        await until(held.begun)
        work = [
            live.teach(X[:10], y[:10]),
            live.change(lambda: live.learner.rename("a", "c")),
            live.teach(X[10:], y[10:]),
        ]
        tasks = [asyncio.create_task(one) for one in work]
        await settled()
        held.go_on.set()
        await asyncio.gather(first, *tasks)

    asyncio.run(run())
    local = (
        classifier().partial_fit(X[:10], y[:10]).rename("a", "c").partial_fit(X[10:], y[10:])
    )
    assert bits(live.learner) == bits(local)


def test_closing_finishes_what_waits_and_refuses_the_rest(make):
    live, (X, y), held = make(), examples(20), Held()

    async def run():
        first = asyncio.create_task(live.change(held))
        await until(held.begun)
        tasks = [asyncio.create_task(live.teach(X[i : i + 1], [y[i]])) for i in range(20)]
        await settled()
        closing = asyncio.create_task(asyncio.to_thread(live.close))
        while not live._closing:
            await asyncio.sleep(0.001)
        with pytest.raises(Unavailable, match="is ending"):
            await live.teach(X[:1], y[:1])
        held.go_on.set()
        await asyncio.gather(first, closing)
        return await asyncio.gather(*tasks)

    assert max(job.seen for job in asyncio.run(run())) == 20
    again = make()
    assert again.desk.n_seen == 20


def test_nothing_known_is_a_conflict(make):
    with pytest.raises(Conflict, match="teach some examples first"):
        asyncio.run(make().ask(np.ones((1, 3))))


def test_watchers_hear_of_changes_and_of_nothing_else(make):
    live, (X, y) = make(), examples(5)

    async def run():
        event = live.watch()
        await live.teach(X, y)
        await settled()
        assert event.is_set()
        event.clear()
        await live.ask(X)
        await settled()
        assert not event.is_set()
        live.unwatch(event)
        await live.teach(X, y)
        await settled()
        assert not event.is_set()

    asyncio.run(run())


def test_blocks_grow_while_they_are_quick_and_shrink_when_they_are_not(make):
    desk = make().desk
    desk.room = 8
    desk._pace(8, 0.001)
    assert desk.room == 16
    desk._pace(3, 0.001)  # less came than there was room for: that tells nothing
    assert desk.room == 16
    desk._pace(16, 0.03)
    assert desk.room == 16
    desk._pace(16, 0.1)
    assert desk.room == 8
    for _ in range(10):
        desk._pace(1, 1.0)
    assert desk.room == 1


def test_a_block_that_ends_in_the_middle_says_how_far_it_came(make, monkeypatch):
    live, (X, y) = make(), examples(100)
    live.desk.room, live.desk._pace = 30, lambda rows, seconds: None
    append = live.learner._journal.append

    def full(payload):
        if live.learner.number == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return append(payload)

    monkeypatch.setattr(live.learner._journal, "append", full)
    with pytest.raises(Begun, match="60 of 100 rows were learned") as caught:
        asyncio.run(live.teach(X, y))
    assert "nothing was done" not in str(caught.value)
    monkeypatch.undo()
    assert bits(live.learner) == bits(classifier().partial_fit(X[:60], y[:60]))
