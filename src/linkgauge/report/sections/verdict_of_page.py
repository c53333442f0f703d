"""Shows the verdict on a page, with all steps of the remedy, and with all other findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from linkgauge.model.documents.result import Run
from linkgauge.report.blocks import (
    Block,
    Column,
    Entry,
    Line,
    Problem,
    Span,
    Table,
    line,
    plain,
    text_of,
)
from linkgauge.report.results import label, named, title_of
from linkgauge.report.words.groups import FindingGroup, groups_of
from linkgauge.report.words.remedies import Command, RemedyText, Step
from linkgauge.report.words.worst import worst_of

from . import OneRun, Section, SeveralRuns
from .findings import once, problem_of, steps_of
from .verdict import DO_FIRST, Closing, verdict


def _of_page(one: OneRun) -> Iterator[Block]:
    run, outcome = one.run, one.outcome
    wrong = worst_of(run, outcome)
    reported = None if wrong is None else wrong.group
    for block in verdict(run, outcome, Closing()):
        if isinstance(block, Problem) and reported is not None:
            yield _whole(block, run, reported)
        else:
            yield block
    if not outcome.verdict:
        return
    given = {} if reported is None else {steps_of(reported.first): reported.first.name}
    for group in groups_of(outcome.findings):
        for equivalent in (group.equivalent, *group.explained):
            if wrong is None or equivalent not in (
                wrong.equivalent,
                reported and reported.equivalent,
            ):
                yield once(problem_of(equivalent), equivalent[0].name, given)


def _whole(block: Problem, run: Run, reported: FindingGroup) -> Problem:
    taken = steps_of(reported.first)
    said = [*block.said, _afterwards(run)]
    said += [each for each in problem_of(reported.equivalent).said if each[0] != "why"]
    return block._replace(said=said, steps=taken, do=_first_words(run, taken))


def _first_words(run: Run, taken: Sequence[Step]) -> str:
    if taken and isinstance(taken[0], RemedyText) and taken[0].text.startswith("On "):
        return "Do this first"
    simulated = " (SIMULATED)" if run.simulated else ""
    return f"Do this first, on {named(run.machine)}{simulated}"


def _afterwards(run: Run) -> tuple[str, Line]:
    command = f"linkgauge compare {quote(title_of(run.label))} fixed"
    return "then", line(
        "measure again with ", Span("--label fixed", "strong"), "; ",
        Span(command, "strong"), " shows whether it helped",
    )  # fmt: skip


def _of_runs(several: SeveralRuns) -> Iterator[Block]:
    rows = []
    for comparison in several.comparisons:
        for side in comparison.found.sides:
            one = several.last[comparison.accelerator, side.name]
            wrong = worst_of(one.run, one.outcome)
            if wrong is not None:
                taken = () if wrong.group is None else steps_of(wrong.group.first)
                command = next((step.line for step in taken if isinstance(step, Command)), "")
                rows.append((
                    Entry(label(side.name), tone="strong"),
                    Entry(label(comparison.accelerator)),
                    Entry(title_of(text_of(wrong.what)), tone="bad"),
                    Entry(title_of(command)),
                ))  # fmt: skip
    if rows:
        heads = ("configuration", "accelerator", "what is wrong", DO_FIRST)
        yield Table(plain("The last run of each"), tuple(map(Column, heads)), rows)


SECTION = Section("verdict", "Verdict", 10, of_run=_of_page, of_runs=_of_runs)
