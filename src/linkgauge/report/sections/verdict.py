"""First of all: what is wrong, why, and what to do; else that nothing is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from shlex import quote

from linkgauge.judge.findings import Finding
from linkgauge.judge.outcome import Outcome
from linkgauge.model.result import Run
from linkgauge.model.units import count_of
from linkgauge.report.blocks import (
    Block,
    Column,
    Entry,
    Line,
    Problem,
    Span,
    Table,
    Tile,
    Tiles,
    Tone,
    line_of,
    plain,
)
from linkgauge.report.expectations import HELD, is_held
from linkgauge.report.findings_text import Group, groups_of, subjects_of
from linkgauge.report.outcome_text import (
    lowest_cells,
    what_precision,
    worst_of,
)
from linkgauge.report.remedies import Command, Prose, Step, steps
from linkgauge.report.results import label, named, title_of
from linkgauge.report.run_notes import missed_precision
from linkgauge.report.sentences import first_of
from linkgauge.report.verdicts import Word, nothing_wrong

from . import OneRun, Section, SeveralRuns

TONES: dict[str, Tone] = {"fail": "bad", "warn": "warn", "note": "name", "unknown": "dim"}
MOST_LOW = 12
MOST_STEPS = 40
"""Lines of a remedy."""


def _blocks(one: OneRun) -> Iterator[Block]:
    run, outcome = one.run, one.outcome
    wrong = worst_of(run, outcome)
    told: Group | None = None
    if wrong is None:
        if outcome.verdict:
            yield _well(nothing_wrong(run))
    elif wrong.group is None:
        yield Problem("", "bad", "", line_of(wrong.what), first=True)
    elif wrong.cause is not None:
        told = wrong.group
        said = (("cause", line_of(wrong.cause)), _afterwards(run), *_more(told))
        taken = _steps(told.first)
        do = _first_words(run, taken)
        yield Problem("", "bad", "", line_of(wrong.what), said, taken, do, first=True)
    else:
        told = wrong.group
        problem = problem_of(told)
        do = _first_words(run, problem.steps)
        said = (*problem.said, _afterwards(run))
        yield problem._replace(said=said, do=do, first=True)
    yield Tiles(tuple(_tiles(one)))
    if outcome.verdict:
        yield from _others(outcome, told)
        yield from _lowest(one)


def _first_words(run: Run, taken: Sequence[Step]) -> str:
    """What stands above the verdict's steps: on which machine, unless the first one says it."""
    if taken and isinstance(taken[0], Prose) and taken[0].text.startswith("On "):
        return "Do this first"
    simulated = " (SIMULATED)" if run.simulated else ""
    return f"Do this first, on {named(run.machine)}{simulated}"


def _afterwards(run: Run) -> tuple[str, Line]:
    """How one sees that it helped."""
    command = f"linkgauge compare {quote(title_of(run.label))} fixed"
    return "then", (
        Span("measure again with "), Span("--label fixed", "strong"), Span("; "),
        Span(command, "strong"), Span(" shows whether it helped"),
    )  # fmt: skip


def _others(outcome: Outcome, told: Group | None) -> Iterator[Problem]:
    """The findings but the one that was `told`. Steps that stand on the page are not repeated."""
    seen = {} if told is None else {_steps(told.first): told.first.check}
    for group in groups_of(outcome.findings):
        problem = problem_of(group)
        if group == told:
            continue
        fixed = tuple(problem.steps)
        if fixed and fixed in seen:
            above = plain(f"as above, under {seen[fixed]}")
            problem = problem._replace(said=(*problem.said, ("to fix it", above)), steps=())
        else:
            seen[fixed] = group.first.check
        yield problem


def _well(word: Word) -> Problem:
    """Of a run in which nothing is wrong, or nothing was measured."""
    text = f"not judged: {word.text}" if word.kind == "unknown" else word.text
    is_ok = word.kind == "ok"
    found = plain(_sentence(text))
    return Problem("ok" if is_ok else "", "good" if is_ok else "dim", "", found, first=True)


def problem_of(group: Group) -> Problem:
    """A finding with all that is said of it."""
    finding = group.first
    return Problem(
        finding.severity,
        TONES[finding.severity],
        f"{finding.check} · {subjects_of(group)}",
        plain(_sentence(finding.found)),
        tuple(_more(group)),
        _steps(finding),
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _more(group: Group) -> Iterator[tuple[str, Line]]:
    finding = group.first
    if finding.why:
        yield "why", plain(finding.why)
    if finding.cells:
        yield "cells", plain(first_of(finding.cells, ", "))
    for line in finding.lines[:4]:
        yield "log", plain(line)
    for alike in group.explained:
        yield "causes", _said_of(alike)


def _said_of(alike: Sequence[Finding]) -> Line:
    first = alike[0]
    subject = subjects_of(Group(alike))
    return Span(f"{first.check} {subject}: ", "strong"), Span(first.found)


def _steps(finding: Finding) -> tuple[Step, ...]:
    return tuple(steps(finding.remedy[:MOST_STEPS]))


def _tiles(one: OneRun) -> Iterator[Tile]:
    cells = [cell for result in one.run.results for cell in result.cells]
    statuses = Counter(cell.status for cell in cells)
    verdicts = Counter(cell.verdict for cell in cells if cell.status == "pass")
    yield Tile(f"{statuses['pass'] + statuses['fail']:,}", "measured")
    if one.outcome.verdict:
        held = sum(map(is_held, cells))
        as_peers = sum(cell.is_as_peers for cell in cells)
        well = verdicts["ok"] - held - as_peers
        yield Tile(f"{well:,}", "ok", "good" if well else "dim")
        if held:
            yield Tile(f"{held:,}", f"slowed by links {HELD}", "warn")
        if as_peers:
            yield Tile(f"{as_peers:,}", "as their peers", "good")
        yield Tile(f"{verdicts['low']:,}", "low", "warn" if verdicts["low"] else "dim")
        if verdicts["high"]:
            yield Tile(f"{verdicts['high']:,}", "high", "simulated")
        yield Tile(f"{verdicts['unknown']:,}", "not judged", "dim")
    for status in ("fail", "error", "timeout"):
        if statuses[status]:
            yield Tile(f"{statuses[status]:,}", status, "bad")
    skipped = statuses["skip"] + sum(not result.cells for result in one.run.results)
    yield Tile(f"{skipped:,}", "skipped", "dim")
    for severity, count in Counter(found.severity for found in one.outcome.findings).items():
        yield Tile(f"{count:,}", f"findings: {severity}", TONES[severity])


def _lowest(one: OneRun) -> Iterator[Block]:
    low = lowest_cells(one.run)
    if low:
        rows = [
            (Entry(f"{share:.0%}", share, "warn"), Entry(figure), Entry(title_of(where)))
            for share, figure, where in low[:MOST_LOW]
        ]
        more = f", of {count_of(len(low))}" if len(low) > MOST_LOW else ""
        heads = (Column("of expected", True), Column("figure", True), Column("cell"))
        yield Table(plain(f"The lowest cells{more}"), heads, rows)
    if (missed := missed_precision(one.run)) is not None:
        yield Problem("precision", "name", "", plain(what_precision(missed)))


def _of_runs(several: SeveralRuns) -> Iterator[Block]:
    """What is wrong with the last run of each configuration, and what to do first."""
    rows = []
    for comparison in several.comparisons:
        for configuration in comparison.configurations:
            one = several.last[comparison.accelerator, configuration.label]
            wrong = worst_of(one.run, one.outcome)
            if wrong is not None:
                remedy = wrong.group.first.remedy if wrong.group is not None else ()
                rows.append((
                    Entry(label(configuration.label), tone="strong"),
                    Entry(label(comparison.accelerator)),
                    Entry(title_of(wrong.what.plain), tone="bad"),
                    Entry(title_of(_first_command(remedy))),
                ))  # fmt: skip
    if rows:
        heads = ("configuration", "accelerator", "what is wrong", "do first")
        yield Table(plain("The last run of each"), tuple(map(Column, heads)), rows)


def _first_command(remedy: Sequence[str]) -> str:
    return next((step.line for step in steps(remedy) if isinstance(step, Command)), "")


SECTION = Section("verdict", "Verdict", 10, of_run=_blocks, of_runs=_of_runs)
