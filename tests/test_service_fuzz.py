"""Thousands of malformed requests leave the service up and its learners as they were."""

import json
import random
import sys
from pathlib import Path

import pytest

# Tests may be run by ``pytest`` too, which does not put the checkout on the path.
ROOT = str(Path(__file__).parents[1])
sys.path.extend([ROOT] * (ROOT not in sys.path))

from benchmarks.service_fuzz import BATCH, ROW, Maker, _framed, fuzz  # noqa: E402

from service_tools import drawing, in_process, populate  # noqa: E402


@pytest.mark.parametrize(
    ("number", "seed"), [(6000, 0), pytest.param(100_000, 1, marks=pytest.mark.slow)]
)
def test_malformed_requests_change_nothing(tmp_path, number, seed):
    report = fuzz(tmp_path, number, seed, seconds=600)
    assert report.problems == []
    # Each was answered, or its connection closed.
    assert sum(report.statuses.values()) >= number
    assert {"400", "403", "404", "405", "413", "415", "422", "WS 422", "closed"} <= set(
        report.statuses
    )
    # Well-formed questions with damaged pictures are few.
    assert report.statuses["200"] < number / 50


@pytest.mark.parametrize(
    ("sent", "problems"),
    [
        (
            {
                "/toys/teach": {"inputs": ROW, "labels": "mug"},
                "/arm/teach": {"inputs": ROW, "outputs": [1.0, 2.0]},
            },
            {"toys was changed", "arm was changed"},
        ),
        (
            {
                "/toys/rename": {"label": "car", "new": "bus"},
                "": {"name": "new", "kind": "classifier"},
            },
            {"toys was changed", "new is new"},
        ),
    ],
)
def test_requests_that_are_right_are_found_out(tmp_path, sent, problems):
    right = tuple(
        _framed("POST", f"/api/learners{path}", json.dumps(body).encode())
        for path, body in sent.items()
    )
    report = fuzz(tmp_path, BATCH, 0, seconds=60, more=right)
    assert sorted(report.problems) == sorted(problems)


def test_the_same_seed_sends_the_same(tmp_path):
    with in_process(tmp_path / "learners") as client:
        populate(client)
        samples = {"export": client.get("/api/learners/toys/export").content}
    samples |= {kind: drawing(1, kind) for kind in ("PNG", "JPEG", "WEBP")}
    sent = []
    for seed in (3, 3, 4):
        maker, rng = Maker(samples), random.Random(seed)
        made = [make(rng) for make in (maker.request, maker.noise, maker.message) * 50]
        sent.append(made)
    assert sent[0] == sent[1] != sent[2]
    assert len(set(sent[0])) > 120
