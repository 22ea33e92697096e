"""The book: one page with all experiments, chapter by chapter, for readers of the thesis."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from imparo.experiments.shared.account import Account
from imparo.experiments.shared.experiment import CHAPTERS, Experiment
from imparo.experiments.shared.results import Results
from imparo.experiments.shared.verdicts import BETTER, DIFFERS, OTHER, REPRODUCED, Comparison
from imparo.reports import Page

_TONES = {REPRODUCED: "good", BETTER: "good", DIFFERS: "bad", OTHER: ""}
NOT_RUN = "not run"


class Told(NamedTuple):
    """An experiment with its results, and what they tell; None where there are none."""

    experiment: Experiment
    results: Results
    account: Account | None

    @property
    def verdict(self) -> str:
        """The verdict, or that it was not run."""
        return NOT_RUN if self.account is None else self.account.verdict

    @property
    def mark(self) -> str:
        """The verdict in few words: of what differs, how much of it."""
        if self.account is None or self.verdict != DIFFERS:
            return self.verdict
        judged = [one.verdict for one in self.account.judged if one.verdict != OTHER]
        return f"differs in {judged.count(DIFFERS)} of {len(judged)}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        about = self.experiment
        return {
            "name": about.name,
            "place": about.place,
            "title": about.title,
            "finding": about.finding,
            "setting": about.setting,
            "quick": self.results.quick,
            "trials": {name: len(found) for name, found in self.results.trials.items()},
            "seconds": round(self.results.seconds, 1),
            "data": self.results.notes,
            "missing": self.results.missing,
            "verdict": self.verdict,
        } | ({} if self.account is None else self.account.to_dict())


def book(told: Sequence[Told], about: dict[str, Any]) -> Page:
    """Return the page of some experiments, or of one.

    Parameters
    ----------
    told : sequence of Told
        In the order of the thesis.
    about : dict
        Of the machine: :func:`imparo.measuring.surroundings`.

    Returns
    -------
    Page
    """
    page = Page(
        _title(told), _lead(told), kind="imparo reproduce",
        data={"machine": about, "experiments": [one.to_dict() for one in told]},
        footer=_footer(about),
    )  # fmt: skip
    if any(one.results.quick for one in told):
        page.warn(
            "This is the quick version: fewer rows, sizes and trials than the thesis has. "
            "Leave out --quick for its settings."
        )
    if len(told) > 1:
        _cards(page, told)
    for one in told:
        _add(page, one, alone=len(told) == 1)
    return page


def _title(told: Sequence[Told]) -> str:
    if len(told) == 1:
        return told[0].experiment.title
    return "Large-scale kernel methods and lifelong robot learning, reproduced"


def _lead(told: Sequence[Told]) -> str:
    if len(told) == 1:
        return f"{told[0].experiment.place} of the thesis. {told[0].experiment.finding}"
    return (
        "The tables and figures of R. Camoriano's thesis (2017), computed anew by imparo: the "
        "thesis' numbers beside ours, its figures drawn from our runs, and what came of it."
    )


def _footer(about: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    return (
        f"Made on {about['processor']}, {about['cores']} cores, {about['system']}; {versions}. "
        "Times are compared within one run only, never with those of the thesis."
    )


def _cards(page: Page, told: Sequence[Told]) -> None:
    made = [one.account for one in told if one.account is not None]
    numbers = [c for account in made for c in account.comparisons if c.verdict != OTHER]
    findings = [c for account in made for c in account.checks]
    fine = sum(account.verdict in (REPRODUCED, BETTER) for account in made)
    page.card(f"{len(made)} of {len(told)}", "experiments made")
    page.card(f"{fine} of {len(made)}", "reproduced, or better", "good" if fine else "")
    within = sum(one.verdict != DIFFERS for one in numbers)
    page.card(f"{within} of {len(numbers)}", "numbers within the thesis' deviation, or better")
    held = sum(one.holds for one in findings)
    page.card(f"{held} of {len(findings)}", "findings that hold")


def _add(page: Page, told: Told, *, alone: bool) -> None:
    """Add an experiment to the page: verdict, pictures, numbers, findings, settings."""
    experiment, results, account = told
    heading = f"{experiment.place}: {experiment.title}"
    chapter = f"Chapter {experiment.chapter} · {CHAPTERS[experiment.chapter]}"
    if alone:
        page.part("What came of it")
    else:
        page.part(heading, experiment.finding, chapter, told.mark, _TONES.get(told.verdict, ""))
    if account is None:
        why = list(dict.fromkeys(results.missing.values())) or ["It was not asked for yet."]
        page.sentences("Not made", f"imparo reproduce {experiment.name}", why)
        return
    for picture in account.pictures:
        page.add(picture)
    if account.comparisons:
        page.table(
            "The thesis' numbers and ours", account.sentence,
            ["", "thesis", "ours", "trials", "verdict"],
            [_row(one) for one in account.comparisons],
        )  # fmt: skip
    if account.checks:
        page.table(
            "Findings", "" if account.comparisons else account.sentence,
            ["the thesis finds", "ours", "verdict"],
            [[c.claim, c.evidence, c.verdict] for c in account.checks],
        )  # fmt: skip
    for table in account.tables:
        page.table(table.heading, table.text, table.header, table.rows)
    notes = [*account.notes, *_of_data(results)]
    page.facts("How it was made", "", [
        ("thesis", experiment.setting),
        ("here", _made(results)),
        ("command", f"imparo reproduce {experiment.name}{' --quick' * results.quick}"),
    ])  # fmt: skip
    if notes:
        page.sentences("To be said", "", notes)


def _row(one: Comparison) -> list[str]:
    return [one.what, str(one.thesis), one.shown, str(one.trials), one.verdict]


def _of_data(results: Results) -> list[str]:
    """Return what is to be said of data: substitutes, and cases that were not made."""
    notes = [note for case in results for note in results.notes.get(case, ())]
    missing = [f"{case} was not made: {why}" for case, why in results.missing.items()]
    return list(dict.fromkeys([*notes, *missing]))


def _made(results: Results) -> str:
    counts = {name: len(found) for name, found in results.trials.items()}
    if len(set(counts.values())) == 1:
        count = next(iter(counts.values()))
        trials = f"{count} trial{'s' * (count > 1)}"
    else:
        trials = "trials: " + ", ".join(f"{name} {count}" for name, count in counts.items())
    minutes = results.seconds / 60
    took = f"{minutes:.0f} min" if minutes >= 2 else f"{results.seconds:.0f} s"
    return f"{'quick version; ' * results.quick}{trials}; {took} in all"
