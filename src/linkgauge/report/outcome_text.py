"""The verdict at the end of a run: what is wrong, what to do first, how many cells are well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from shlex import quote

import msgspec
from rich.console import RenderableType
from rich.text import Text

from linkgauge.engine.journal import JOURNAL_FILE
from linkgauge.judge.doctor import failed
from linkgauge.judge.findings import Finding
from linkgauge.judge.outcome import Outcome
from linkgauge.model.result import CellResult, NotJudged, Result, Run, Status, Verdict, exit_code
from linkgauge.model.units import count_of, unit_of

from .expectations import HELD_STYLE, STYLES, is_held, lowest_share
from .findings_text import Group, groups_of, headline, summary
from .matrix import shown
from .program import program
from .remedies import Command, Step, steps
from .remedy_text import Block
from .run_notes import Missed, missed_precision, naming
from .run_text import simulated
from .sentences import QUIET, first_of
from .shading import STATUS_STYLES
from .verdicts import nothing_wrong
from .wrapping import Hanging

INDENT = 11
"""Columns of what names a line, such as `do first:`."""
MOST_LOW = 3
_VERDICTS: dict[Verdict, str] = {
    "ok": "ok",
    "low": "low",
    "high": "high",
    "unknown": "not judged",
}
_NO_REFERENCE = "no reference"
_WHY_NOT: dict[NotJudged, str] = {
    "start": "too small",
    "shared": "links in use by others",
    "unsure": "perhaps low",
}
_UNMEASURED: tuple[Status, ...] = ("error", "timeout", "skip")
_BROKEN: tuple[Status, ...] = ("error", "timeout", "fail")


class Wrong(msgspec.Struct, frozen=True):
    """The worst that is to be said of a run; if a finding says or explains it, that one's group."""

    what: Text
    group: Group | None = None
    cause: Text | None = None


class Ending(msgspec.Struct, frozen=True):
    """The verdict of a command that judges more than cells, and its counts, which stand instead of
    those of cells."""

    verdict: Text
    tally: str
    is_low: bool = False


def outcome_lines(
    run: Run,
    outcome: Outcome,
    kept: Path | None = None,
    *,
    by_doctor: bool = False,
    scripted: bool = False,
    ending: Ending | None = None,
) -> Iterator[RenderableType]:
    """What is wrong, why, and what to do first; the cells furthest below what is expected, and
    where the precision was missed; which command says more of a run in the folder `kept`; then how
    many cells are how well. `by_doctor`: below all findings; `scripted`: their remedies have just
    been written as a script."""
    wrong = worst_of(run, outcome, ending)
    if wrong is not None:
        yield from _wrong_lines(wrong)
    elif outcome.verdict:
        yield _named("verdict", _well(run) if ending is None else ending.verdict)
    if outcome.verdict:
        yield from _lowest_lines(run)
    if (missed := missed_precision(run)) is not None:
        yield _named("precision", Text(f"{what_precision(missed)}; {QUIET}"))
    if (command := next_command(run, wrong, kept, by_doctor, scripted)) is not None:
        yield Block((command,), INDENT, _label("next"))
    yield Hanging(_tally(run, outcome, ending), INDENT)


def results_line(path: Path) -> Text:
    """The last line: where a run is kept. It stays one, however long."""
    return Text(f"results: {path}", no_wrap=True, overflow="ignore")


def alarm_lines(run: Run, outcome: Outcome) -> Iterator[RenderableType]:
    """What is wrong with a run, where no status of its cells says so."""
    wrong = worst_of(run, outcome)
    if wrong is not None and outcome.code and not exit_code(run):
        yield from _wrong_lines(wrong)
        yield from _lowest_lines(run)


def _wrong_lines(wrong: Wrong) -> Iterator[RenderableType]:
    yield _named("verdict", wrong.what)
    yield from _about(wrong)


def uncounted_lines(outcome: Outcome) -> Iterator[RenderableType]:
    """The failures found on a run's machine that are not the run's."""
    others = [f for f in outcome.found if f.severity == "fail" and f not in outcome.findings]
    if others:
        names = first_of([f"{finding.check} {finding.subject}" for finding in others], ", ")
        text = f"not counted, because the run did not measure it: {names}"
        yield Hanging(Text(text), INDENT)


def machine_verdict(
    findings: Sequence[Finding], then: Command | None = None
) -> Iterator[RenderableType]:
    """Of a machine without a run: its first failure, else its first warning, and what to do; `then`
    is what to type next."""
    grave = [finding for finding in findings if finding.severity in ("fail", "warn")]
    if (wrong := _worst_finding(groups_of(grave))) is not None:
        yield _named("verdict", wrong.what)
        yield from _about(wrong)
    else:
        ok = Text.assemble(("ok", "green"), ": the setup shows no fault")
        yield _named("verdict", ok)
    if then is not None:
        yield Block((then,), INDENT, _label("next"))


def worst_of(run: Run, outcome: Outcome, ending: Ending | None = None) -> Wrong | None:
    """A lost rank, else the first finding that is a failure, else the first cell that failed or is
    low, else an `ending` that is, else the first finding; None where nothing is wrong."""
    if run.lost is not None:
        lost = Text.assemble(("lost", STATUS_STYLES["error"]), f": {run.lost}; the run ended there")
        return Wrong(lost)
    if run.soak is not None and run.soak.stopped == "temperature":
        too_hot = "too hot", STATUS_STYLES["fail"]
        return Wrong(Text.assemble(too_hot, f": {run.soak.reason}; the run ended there"))
    if not outcome.verdict:
        return None
    groups = groups_of(outcome.findings)
    low = _worst_cell(run, known=bool(groups))
    if low is None and ending is not None and ending.is_low:
        low = ending.verdict
    if not failed(outcome.findings) and low is not None:
        return Wrong(low, groups[0], headline(groups[0].alike)) if groups else Wrong(low)
    return _worst_finding(groups)


def _worst_finding(groups: Sequence[Group]) -> Wrong | None:
    """The first failure, else the first of all; what explains it is its cause."""
    said = [(alike, group) for group in groups for alike in (group.alike, *group.explained)]
    worst = [(alike, group) for alike, group in said if alike[0].severity == "fail"] or said
    if not worst:
        return None
    alike, group = worst[0]
    cause = None if alike is group.alike else headline(group.alike)
    return Wrong(headline(alike), group, cause)


def next_command(
    run: Run, wrong: Wrong | None, kept: Path | None, by_doctor: bool, scripted: bool
) -> Command | None:
    """What to type now; None where nothing more is to be said of the run."""
    if kept is None:
        return None
    folder = quote(str(kept))
    if can_go_on(run, kept):
        count = len(run.machine.ranks)
        by_all = f"by all {count} ranks, launched as before" if count else ""
        return Command((program(), "run", "--resume", folder), by_all)
    if by_doctor:
        can_mend = (
            not scripted
            and wrong is not None
            and wrong.group is not None
            and wrong.group.first.remedy
        )
        words = (program(), "doctor", folder, "--fix-script", "fix.sh")
        return Command(words) if can_mend else None
    return Command((program(), "doctor", folder)) if wrong is not None else None


def can_go_on(run: Run, folder: Path) -> bool:
    """Whether it was interrupted, or the loss of a rank cost a part of it, and it can be
    resumed."""
    lost = run.lost is not None or any(cell.lost is not None for _, cell in _cells(run))
    broke_off = run.finished is None or (lost and bool(run.machine.ranks))
    return broke_off and (folder / JOURNAL_FILE).exists()


def _about(wrong: Wrong) -> Iterator[RenderableType]:
    if wrong.cause is not None:
        yield _named("cause", wrong.cause)
    if wrong.group is None:
        return
    first = wrong.group.first
    if wrong.cause is None:
        grave = [alike for alike in wrong.group.explained if alike[0].severity == "fail"]
        for alike in grave[:1]:
            yield _named("explains", headline(alike))
    if first.why:
        yield _named("why", Text(first.why))
    if first.remedy:
        yield Block(tuple(_first_steps(first.remedy)), INDENT, _label("do first"))


def _first_steps(remedy: Sequence[str]) -> Iterator[Step]:
    """The prose before the first command, and that one. Where it changes or sets something, all up
    to the next prose: it may do nothing without them. Of prose alone, the first line."""
    found = list(steps(remedy))
    if not any(isinstance(step, Command) for step in found):
        yield from found[:1]
        return
    prose = list(takewhile(lambda step: not isinstance(step, Command), found))
    yield from prose
    commands = list(takewhile(lambda step: isinstance(step, Command), found[len(prose) :]))
    first = commands[0]
    alone = isinstance(first, Command) and first.only_looks and not first.sets
    yield from commands[:1] if alone else commands


def _well(run: Run) -> Text:
    text, kind = nothing_wrong(run)
    if kind == "skip":
        return Text(text, STATUS_STYLES["skip"])
    label = ("ok", "green") if kind == "ok" else ("not judged", "dim")
    return Text.assemble(label, f": {text}")


def _worst_cell(run: Run, *, known: bool) -> Text | None:
    """The first cell that was not measured as it should be, or is low, and how many more there
    are."""
    name = naming(run)
    broken = [(result, cell) for result, cell in _cells(run) if cell.status in _BROKEN]
    if broken:
        result, cell = broken[0]
        status = Text(cell.status, STATUS_STYLES[cell.status])
        what = f" {name(result)} {cell.place}: {cell.reason or ''}{_more(broken)}"
        return status.append(what)
    low = lowest_cells(run)
    if not low:
        return None
    share, _, where = low[0]
    why = "" if known else "; no check explains it"
    return Text.assemble(
        ("low", STYLES["low"]), f" {where} {share:.0%} of what is expected{_more(low)}{why}"
    )


def _more(of: Sequence[object]) -> str:
    return f", and {len(of) - 1} more" if len(of) > 1 else ""


def lowest_cells(run: Run) -> list[tuple[float, str, str]]:
    """The share of what is expected, the figure and the name of each low cell, the lowest first."""
    name = naming(run)
    found = [
        (low.share, f"{shown(low.figure, result.unit)} {unit_of(result.unit).shown}",
         f"{name(result)} {low.name}")
        for result, cell in _cells(run)
        if cell.verdict == "low" and (low := lowest_share(cell)) is not None
    ]  # fmt: skip
    return sorted(found, key=lambda one: one[0])


def _lowest_lines(run: Run) -> Iterator[RenderableType]:
    """The lowest cells, the first behind the name of the lines."""
    low = lowest_cells(run)[:MOST_LOW]
    width = max((len(figure) for _, figure, _ in low), default=0)
    label = _label("lowest")
    for share, figure, where in low:
        text = f"{share:>3.0%} {figure:>{width}}  {where}"
        yield Hanging(Text.assemble(label, " " * (INDENT - len(label)), text), INDENT + 4)
        label = Text()


def _label(name: str) -> Text:
    return Text(f"{name}:", "bold")


def _named(name: str, text: Text) -> Hanging:
    label = _label(name)
    return Hanging(Text.assemble(label, " " * (INDENT - len(label)), text), INDENT)


def what_precision(missed: Missed) -> str:
    """How many cells missed it, and the one that is the furthest from it."""
    furthest = f", furthest by {missed.cells[0]}" if missed.cells else ", without an interval"
    return f"±{missed.asked:.2%} missed by {count_of(missed.number)}{furthest}"


def _tally(run: Run, outcome: Outcome, ending: Ending | None) -> Text:
    """`42 measured: 30 ok, 2 low, 10 not judged (no reference); 3 skip; findings: 1 fail`."""
    statuses = Counter(cell.status for _, cell in _cells(run))
    statuses["skip"] += sum(not result.cells for result in run.results)
    measured = statuses["pass"] + statuses["fail"]
    parts = list(_judged_parts(run, measured)) if outcome.verdict else []
    if ending is not None:
        parts = [Text(ending.tally)] if outcome.verdict else []
    if statuses["fail"]:
        parts.append(Text(f"{statuses['fail']} fail", STATUS_STYLES["fail"]))
    line = Text(f"{measured} measured" if measured else "nothing measured")
    if parts:
        line.append(": ").append(Text(", ").join(parts))
    for status in _UNMEASURED:
        if statuses[status]:
            line.append("; ").append(f"{statuses[status]} {status}", STATUS_STYLES[status])
    if outcome.verdict and outcome.findings:
        line.append("; ").append(summary(outcome.findings, "findings"))
    if run.finished is None:
        line.append(" (interrupted)", "yellow")
    return line.append(" ").append(simulated()) if run.simulated else line


def _judged_parts(run: Run, measured: int) -> Iterator[Text]:
    """How many cells have each verdict; those whose links run below their best apart."""
    verdicts = Counter(cell.verdict for _, cell in _cells(run) if cell.status == "pass")
    held = sum(is_held(cell) for _, cell in _cells(run))
    as_peers = sum(cell.is_as_peers for _, cell in _cells(run))
    verdicts["ok"] -= held + as_peers
    for by, name in _VERDICTS.items():
        if verdicts[by] or (by != "high" and measured):
            why = f" ({_why_not(run)})" if by == "unknown" and verdicts[by] else ""
            yield Text(f"{verdicts[by]} {name}{why}", _style(by) if verdicts[by] else "default")
        if by == "ok" and held:
            yield Text(f"{held} slowed by links below their best", HELD_STYLE)
        if by == "ok" and as_peers:
            yield Text(f"{as_peers} as their peers", "green")


def _why_not(run: Run) -> str:
    """`no reference`, or `3 too small, 2 no reference`."""
    cells = [cell for _, cell in _cells(run) if cell.status == "pass" and cell.verdict == "unknown"]
    counts = Counter(_WHY_NOT.get(cell.not_judged or "path", _NO_REFERENCE) for cell in cells)
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{count} {why}" for why, count in counts.most_common())


def _style(by: Verdict) -> str:
    return "green" if by == "ok" else STYLES[by]


def _cells(run: Run) -> Iterator[tuple[Result, CellResult]]:
    for result in run.results:
        for cell in result.cells:
            yield result, cell
