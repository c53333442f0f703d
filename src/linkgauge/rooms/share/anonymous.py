"""Removes names from runs and journals. Replaces free texts by known sentences, or removes them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import UNSET
from msgspec.structs import replace

from linkgauge.backends import KNOWN
from linkgauge.backends.sim.description import shipped
from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.cli.main import COMMANDS
from linkgauge.engine.kept.journal import Logged, MeasuredRepetition, Record
from linkgauge.engine.profiles import PROFILES
from linkgauge.machine.captures.shared import SharedTexts
from linkgauge.machine.kernel_options import REMOVED
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.documents.tool_run import ToolRun
from linkgauge.model.errors import OutcomeKind
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.kernel_log import KernelLog, LogLine
from linkgauge.model.notes import STAGED, Remark

_REASONS: dict[OutcomeKind, str] = {
    "size": "the size does not fit",
    "unsupported": "the machine or the backend cannot do this",
    "peer": "the devices do not reach each other",
    "imex": "there is no IMEX channel",
    "set-aside": "the device is set aside",
    "interrupted": "the run was interrupted before",
    "budget": "the time of the run was over",
    "wrong-bytes": "wrong bytes arrived",
    "limit": "the figure is below its limit",
    "reported": "the tool that measured reports a failure",
    "call": "a call failed",
    "memory": "there is too little memory",
    "lost": "the device was lost",
    "crash": "a signal ended the worker",
    "exit": "the worker exited",
    "timeout": "it took too long",
}
_NOT_SHARED = "the reason is left out here"
_LEFT_OUT = Remark(REMOVED)
_NOTATION = "linkgauge by ce sm cpu nic null host huge thp mapped pageable staging x true false"


def shared_texts() -> SharedTexts:
    """Returns an anonymiser that does not change linkgauge's words, such as benchmarks' names."""
    names = {*KNOWN, *CATALOG, *shipped(), *PROFILES, *COMMANDS}
    options = _words((*names, _NOTATION))
    titles = _words((STAGED.text, *(row.title for row in CATALOG.values())))
    return SharedTexts(options | titles, options)


def _words(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W\d_]+", " ".join(texts).lower()))


def anonymised(run: Run, who: SharedTexts) -> Run:
    # Hosts are named first, because a label may be the name of a host.
    who.shared(run.machine, Machine)
    who.shared(() if run.tool is UNSET else (run.tool,), tuple[ToolRun, ...])
    run = who.shared(run, Run)
    unavailable = {name: _reason(None, why) for name, why in run.machine.unavailable.items()}
    machine = replace(run.machine, unavailable=unavailable)
    log = None if run.kernel_log is None else _log(run.kernel_log)
    return replace(run, machine=machine, kernel_log=log, results=tuple(map(_result, run.results)))


def anonymised_record(who: SharedTexts, record: Record) -> Record:
    found: Record = who.shared(record, Record)
    if isinstance(found, MeasuredRepetition):
        return replace(found, cell=_cell(found.cell))
    return replace(found, log=_log(found.log)) if isinstance(found, Logged) else found


def _result(result: Result) -> Result:
    reason = None if result.reason is None else _reason(None, result.reason)
    return replace(result, reason=reason, cells=tuple(map(_cell, result.cells)))


def _cell(cell: CellResult) -> CellResult:
    reason = None if cell.reason is None else _reason(cell.kind, cell.reason)
    notes = tuple(note for note in cell.notes if note != _LEFT_OUT)
    if reason == cell.reason and len(notes) == len(cell.notes):
        return cell
    return replace(cell, reason=reason, notes=notes)


def _reason(kind: OutcomeKind | None, calls: str) -> str:
    said = _NOT_SHARED if kind is None else _REASONS[kind]
    return said if calls == REMOVED else f"{said}: {calls}"


def _log(log: KernelLog) -> KernelLog:
    return replace(log, lines=tuple(map(_line, log.lines)))


def _line(line: LogLine) -> LogLine:
    code = None if line.code is None else str(line.code)
    return replace(line, text=" ".join(filter(None, (line.kind, code, line.gravity, line.pci))))
