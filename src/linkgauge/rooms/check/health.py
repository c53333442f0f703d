"""Judges whether a node is healthy by a brief run."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from linkgauge.judge.compare.earlier import held_against
from linkgauge.judge.compare.gate import FAILURES, GateCell, hold
from linkgauge.judge.compare.likeness import RunFigures, Runs, figures_of, unlike
from linkgauge.judge.compare.machine_state import Fact
from linkgauge.judge.doctor import failed
from linkgauge.judge.limits import Limit, apply
from linkgauge.judge.outcome import Outcome, outcome_of
from linkgauge.judge.verdict import judge
from linkgauge.model.cell_id import CellId, spoken
from linkgauge.model.documents.result import Run, RunVerdict, Status
from linkgauge.model.printable import BriefRepr, printable
from linkgauge.model.stats.changes import Aim
from linkgauge.model.units import count_of
from linkgauge.report.blocks import Block, Line, Prose, Span, line, text_of
from linkgauge.report.files import judged_document
from linkgauge.report.forms import cells_of
from linkgauge.report.sections.findings import blocks
from linkgauge.report.words.expectations import lowest_share
from linkgauge.report.words.figures import difference, said
from linkgauge.report.words.groups import groups_of, headline, of_waivers
from linkgauge.report.words.sentences import first_of
from linkgauge.report.words.worst import more_of, worst_of

from .bounded import Bounded

Reason = Literal[
    "LinksHealthy", "Busy", "CheckFailed", "Hung", "DeviceMissing", "MeasurementFailed",
    "WrongBytes", "BelowLimit", "FaultFound", "SlowTransfer", "UnlikeBaseline", "Regression",
    "NotMeasured", "NothingMeasured",
]  # fmt: skip
"""All but the first mean that the node is not healthy."""


class Health(BriefRepr, msgspec.Struct, frozen=True):
    """A node's health at a date and time (RFC 3339). `lost` has cells worse than the baseline, and
    `unlike` facts that differ from it. `devices` are the numbers of found and expected devices."""

    reason: Reason
    bounded: Bounded
    run: Run | None = None
    outcome: Outcome | None = None
    lost: tuple[GateCell, ...] = ()
    unlike: tuple[Fact, ...] = ()
    devices: tuple[int, int] | None = None
    at: str = ""

    @property
    def is_healthy(self) -> bool:
        return self.reason == "LinksHealthy"

    @property
    def verdict(self) -> RunVerdict:
        """Returns the run's verdict, or `fail` for a hang, lost devices or a missed baseline."""
        if self.reason in ("Regression", "DeviceMissing", "UnlikeBaseline", "Hung"):
            return "fail"
        return "not judged" if self.outcome is None else self.outcome.word

    @property
    def message(self) -> str:
        text = " ".join(printable(_cause(self)).split())[:MOST_MESSAGE]
        return f"{text} SIMULATED" if self.run is not None and self.run.simulated else text


_AIM = Aim(0.01, 0.05, 0.1)


def health_of(
    bounded: Bounded,
    limits: tuple[Limit, ...] = (),
    baseline: Sequence[RunFigures] = (),
    devices: int | None = None,
    timeout: float = 10.0,
) -> Health:
    """Judges a brief run. If a cell took more than `timeout` seconds, the node counts as hung."""
    if bounded.run is None:
        busy = bounded.error is not None and bounded.error.is_busy
        why: Reason = "Busy" if busy else "CheckFailed" if bounded.error else "Hung"
        return Health(why, bounded)
    run = apply(judge(bounded.run), limits)
    outcome = outcome_of(run)
    health = Health("LinksHealthy", bounded, run, outcome)
    there = sum(not device.is_cpu for device in run.machine.all_devices)
    if devices is not None and there < devices:
        return replace(health, reason="DeviceMissing", devices=(there, devices))
    if (reason := _by_run(bounded, run, outcome, timeout)) is not None:
        return replace(health, reason=reason)
    if baseline:
        health = _held(health, run, baseline)
    if health.is_healthy and bounded.missing:
        return replace(health, reason="NotMeasured")
    return health


def _by_run(bounded: Bounded, run: Run, outcome: Outcome, timeout: float) -> Reason | None:
    cells = [cell for result in run.results for cell in result.cells]
    has: set[Status] = {cell.status for cell in cells}
    if "timeout" in has or (bounded.doing is not None and bounded.doing[1] > timeout):
        return "Hung"
    if "error" in has or bounded.error is not None:
        return "MeasurementFailed"
    if "fail" in has:
        limit = all(cell.kind == "limit" for cell in cells if cell.status == "fail")
        return "BelowLimit" if limit else "WrongBytes"
    if "pass" not in has:
        return "NotMeasured" if bounded.missing else "NothingMeasured"
    if failed(outcome.findings):
        return "FaultFound"
    accepted = outcome.accepted
    low = any(
        cell.verdict == "low" and spoken(result, cell) not in accepted
        for result, cell in cells_of(run.results)
    )
    used = {one.name for one in outcome.findings if one.check == "processes"}
    if used and (low or any(not used.isdisjoint(one.explained_by) for one in outcome.findings)):
        return "Busy"
    return "SlowTransfer" if low else None


def _held(health: Health, run: Run, baseline: Runs) -> Health:
    current = figures_of(run)
    if facts := tuple(unlike([baseline, [current]])):
        return replace(health, reason="UnlikeBaseline", unlike=facts)
    measured = {cell.id for cell in current.cells}
    lost = hold(
        [_only(one, measured) for one in baseline], [current], [], _AIM, waivers=run.waivers or ()
    ).of(*FAILURES)
    if not lost:
        return health
    since = held_against(baseline, current)
    run = replace(run, earlier=since.earlier) if since and since.earlier else run
    return replace(health, reason="Regression", lost=lost, outcome=outcome_of(run))


def _only(run: RunFigures, keys: Collection[CellId]) -> RunFigures:
    return replace(run, cells=tuple(cell for cell in run.cells if cell.id in keys))


def worst(lost: Sequence[GateCell]) -> GateCell:
    """Returns the cell with the largest loss; a cell without a figure counts as the worst."""
    return max(lost, key=lambda one: math.inf if one.loss is None else one.loss)


# The verdict of a health check: one line, and a node condition as Kubernetes has them.


SCHEMA = "linkgauge.check/1"
TYPE = "LinksHealthy"
MOST_MESSAGE = 1024


class NodeCondition(msgspec.Struct, frozen=True, rename="camel"):
    """Kubernetes' NodeCondition (core/v1), by its names in JSON.

    type: The type of the condition.
    status: Whether the links are healthy.
    reason: The reason, one of a fixed list.
    message: The verdict in one line.
    lastHeartbeatTime: When the check ended (RFC 3339).
    lastTransitionTime: The same time, because a check knows no earlier conditions."""

    type: str
    status: Literal["True", "False"]
    reason: Reason
    message: str
    last_heartbeat_time: str
    last_transition_time: str


def condition_document(health: Health) -> str:
    document = {"schema": SCHEMA, "condition": condition_of(health)}
    findings = health.outcome.findings if health.outcome is not None else ()
    lost = health.outcome.undetectable if health.outcome is not None else ()
    return judged_document(document, health.verdict, int(not health.is_healthy), findings, lost)


def condition_of(health: Health) -> NodeCondition:
    status: Literal["True", "False"] = "True" if health.is_healthy else "False"
    return NodeCondition(TYPE, status, health.reason, health.message, health.at, health.at)


def health_blocks(health: Health) -> Iterator[Block]:
    yield Prose([condition_line(health)])
    yield from blocks(() if health.outcome is None else health.outcome.findings)


def condition_line(health: Health) -> Line:
    """Returns the verdict as a line: `ok: 9 cells measured in 3.2 s`."""
    word = Span("ok", "good") if health.is_healthy else Span("not ok", "bad")
    if health.is_healthy and health.verdict == "not judged":
        word = Span("not judged", "dim")
    return line(word, f": {health.message}")


def _cause(health: Health) -> str:
    bounded, run = health.bounded, health.run
    if run is None or health.outcome is None:
        return bounded.error.error if bounded.error is not None else f"hung {_at(health)}"
    match health.reason:
        case "LinksHealthy":
            undetectable = " or ".join(health.outcome.parts("not-separate", "unjudged"))
            more = f"; no figure shows whether {undetectable} is slow" if undetectable else ""
            warned = _headlines(health.outcome)
            if not warned and (wrong := worst_of(run, health.outcome)) is not None:
                warned = [text_of(wrong.what)]
            waived = of_waivers(health.outcome.waived)
            parts = [_measured(run, bounded.seconds), *warned, *waived, *_worst_read(run)]
            return "; ".join(parts) + more
        case "DeviceMissing":
            there, wanted = health.devices or (0, 0)
            return f"only {there} of {wanted} accelerators were found: {_unavailable(run)}"
        case "NotMeasured":
            return f"not measured within {bounded.seconds:.0f} s: {first_of(bounded.missing, ', ')}"
        case "NothingMeasured":
            return f"nothing could be measured: {_unavailable(run)}"
        case "UnlikeBaseline":
            facts = [f"{one.name}: {said(one, ('baseline', 'node'))}" for one in health.unlike]
            return f"the node is unlike the baseline: {'; '.join(facts)}"
        case "Regression":
            return _lost(health)
    wrong = worst_of(run, health.outcome)
    if wrong is None or health.reason == "Hung":
        return _hung(run, health)
    what, cause = text_of(wrong.what), [text_of(wrong.cause)] if wrong.cause else []
    return "; ".join(
        [what, *(_headlines(health.outcome) if health.reason == "SlowTransfer" else cause)]
    )


def _worst_read(run: Run) -> Iterator[str]:
    shares = [
        (low.share, spoken(result, cell))
        for result, cell in cells_of(run.results)
        if cell.status == "pass" and (low := lowest_share(cell)) is not None
    ]
    if shares:
        share, name = min(shares)
        yield f"the lowest reaches {share:.0%} of what is expected: {name}"
    read = (one for _, cell in cells_of(run.results) for one in cell.readings)
    degrees = [(one.temperature_max, one.memory) for one in read if one.temperature_max is not None]
    if degrees:
        most, device = max(degrees)
        yield f"the hottest is {device} at {most:.0f} °C"


def _headlines(outcome: Outcome) -> list[str]:
    return [text_of(headline(group.equivalent)) for group in groups_of(outcome.findings)]


def _hung(run: Run, health: Health) -> str:
    late = [
        f"{spoken(result, cell)} {cell.reason}"
        for result, cell in cells_of(run.results)
        if cell.status == "timeout"
    ]
    if not late:
        error = health.bounded.error
        return error.error if error is not None else f"hung {_at(health)}"
    missing = health.bounded.missing
    rest = f"; not measured: {first_of(missing, ', ')}" if missing else ""
    return f"hung: {late[0]}{more_of(late)}{rest}"


def _at(health: Health) -> str:
    doing = health.bounded.doing
    if doing is None:
        return ""
    return f"while measuring {doing[0].what}" if doing[0].is_cell else f"while {doing[0].what}"


def _measured(run: Run, seconds: float) -> str:
    cells = sum(cell.status == "pass" for _, cell in cells_of(run.results))
    sampled = [result.sampled for result in run.results if result.sampled is not None]
    pairs = f", {sampled[0].pairs} of {sampled[0].all} pairs of devices" if sampled else ""
    return f"{count_of(cells)} measured in {seconds:.1f} s{pairs}"


def _unavailable(run: Run) -> str:
    why = [f"{name}: {reason}" for name, reason in run.machine.unavailable.items()]
    there = ", ".join(device.memory for device in run.machine.all_devices) or "no device"
    return "; ".join((f"found {there}", *why))


def _lost(health: Health) -> str:
    one = worst(health.lost)
    change = None if one.loss is None else one.cell.changes[0].change
    better = one.cell.better
    what = one.verdict if change is None else difference(change.ratio, better, "the baseline")
    found = health.outcome.found if health.outcome is not None else ()
    slow = dict.fromkeys(finding.subject for finding in found if finding.check == "slow")
    parts = f"; slow: {', '.join(slow)}" if slow else ""
    return f"{one.cell.name}: {what}{more_of(health.lost)}{parts}"
