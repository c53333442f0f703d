"""The verdict of a health check: one line, and a node condition as Kubernetes has them."""

from __future__ import annotations

from typing import Literal

import msgspec

from linkgauge.judge.health import Health, Reason, worst
from linkgauge.model.cell_id import spoken
from linkgauge.model.printable import printable
from linkgauge.model.result import Run
from linkgauge.model.units import count_of

from .blocks import Line, Span, line, text_of
from .fact_lines import said
from .files import json_document
from .forms import cells_of
from .sentences import first_of
from .worst import more_of, worst_of

TYPE = "LinksHealthy"
MOST_MESSAGE = 1024
"""Characters; a message that is longer is cut."""


class NodeCondition(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of Kubernetes' NodeCondition (core/v1), as `status.conditions` of a node takes
    them. One check knows of no earlier one: the status is taken to hold from its end."""

    type: str
    status: Literal["True", "False"]
    reason: Reason
    message: str
    last_heartbeat_time: str
    last_transition_time: str


class Checked(msgspec.Struct, frozen=True):
    """What a check has found, and at what time of day (RFC 3339)."""

    health: Health
    at: str


def condition_document(checked: Checked) -> str:
    return json_document(condition_of(checked))


def condition_of(checked: Checked) -> NodeCondition:
    """One that is `True` if the node is healthy."""
    health, at = checked.health, checked.at
    status: Literal["True", "False"] = "True" if health.is_healthy else "False"
    return NodeCondition(TYPE, status, health.reason, message(health), at, at)


def condition_line(checked: Checked) -> Line:
    """`ok: 9 cells measured in 3.2 s`."""
    health = checked.health
    word = Span("ok", "good") if health.is_healthy else Span("not ok", "bad")
    return line(word, f": {message(health)}")


def message(health: Health) -> str:
    """The worst cause, or what was measured; one line."""
    text = " ".join(printable(_cause(health)).split())[:MOST_MESSAGE]
    return f"{text} SIMULATED" if health.run is not None and health.run.simulated else text


def _cause(health: Health) -> str:
    bounded, run = health.bounded, health.run
    if run is None or health.outcome is None:
        return bounded.error.error if bounded.error is not None else f"hung {_at(health)}"
    match health.reason:
        case "LinksHealthy":
            return _measured(run, bounded.seconds)
        case "DeviceMissing":
            there, wanted = health.devices or (0, 0)
            return f"{there} of {wanted} accelerators are there: {_unavailable(run)}"
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
    what = text_of(wrong.what)
    return f"{what}; {text_of(wrong.cause)}" if wrong.cause else what


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
    drawn = [result.drawn for result in run.results if result.drawn is not None]
    pairs = f", {drawn[0].pairs} of {drawn[0].all} pairs of devices" if drawn else ""
    return f"{count_of(cells)} measured in {seconds:.1f} s{pairs}"


def _unavailable(run: Run) -> str:
    why = [f"{name}: {reason}" for name, reason in run.machine.unavailable.items()]
    there = ", ".join(device.memory for device in run.machine.all_devices) or "no device"
    return "; ".join((f"found {there}", *why))


def _lost(health: Health) -> str:
    one = worst(health.lost)
    what = one.verdict if one.loss is None else f"{one.loss:.0%} less than the baseline"
    found = health.outcome.found if health.outcome is not None else ()
    slow = dict.fromkeys(finding.subject for finding in found if finding.check == "slow")
    parts = f"; slow: {', '.join(slow)}" if slow else ""
    return f"{one.cell.name}: {what}{more_of(health.lost)}{parts}"
