"""Answers to what many clients asked together."""

from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.service.jobs import AskJob


def answers_of(learner: Any, jobs: list[AskJob]) -> list[dict[str, Any]]:
    """Return the answer to each of several questions, by one product for all.

    Parameters
    ----------
    learner : DurableLearner
    jobs : list of AskJob
        Whose rows fit the learner.
    """
    X = jobs[0].X if len(jobs) == 1 else np.concatenate([job.X for job in jobs])
    ends = np.cumsum([len(job.X) for job in jobs])
    parts = [slice(end - len(job.X), end) for end, job in zip(ends, jobs, strict=True)]
    if not hasattr(learner, "assess"):
        F, deviations = learner.predict(X, return_std=True)
        F, deviations = (np.asarray(a).reshape(len(X), -1) for a in (F, deviations))
        results = [{"outputs": F[p].tolist(), "deviations": _plain(deviations[p])}
                   for p in parts]  # fmt: skip
    else:
        results = _labels(learner, X, jobs, parts)
    for job, part, result in zip(jobs, parts, results, strict=True):
        if job.novelty and hasattr(learner, "novelty"):
            result["novelty"] = learner.novelty(X[part]).tolist()
    return results


def _labels(
    learner: Any, X: Array, jobs: list[AskJob], parts: list[slice]
) -> list[dict[str, Any]]:
    alphas = None
    if any(job.recoding is not None for job in jobs):
        usual = float(learner.recoding_)
        alphas = np.concatenate([
            np.full(len(job.X), usual if job.recoding is None else job.recoding)
            for job in jobs
        ])  # fmt: skip
    found = learner.assess(X, alphas)
    classes = found.classes.tolist()
    return [
        {
            "answers": found.answers[part].tolist(),
            "confidence": found.confidence[part].tolist(),
            "classes": classes,
            "probabilities": found.probabilities[part].tolist(),
        }
        for part in parts
    ]


def _plain(numbers: Array) -> list[list[float | None]]:
    """Return numbers for JSON, which has no NaN."""
    return [[x if np.isfinite(x) else None for x in row] for row in numbers.tolist()]
