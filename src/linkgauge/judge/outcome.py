"""Computes the outcome of a judged run. Every command reports the same outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import attrgetter

import msgspec

from linkgauge.engine.repetitions import CellAt
from linkgauge.judge.blame.cases import cases_of, exchanging
from linkgauge.model.cell_id import spoken
from linkgauge.model.documents.result import Result, Run, RunVerdict, exit_code
from linkgauge.model.hardware.part import is_node
from linkgauge.model.units import COLLECTIVE

from .doctor import concerns, diagnose, failed
from .doctor.busy import is_host_taken
from .findings import Finding, Undetectable, evidence_of
from .peers import behind
from .verdict import BELOW, judge, pair_of

_BROKEN = (1, 3)
"""The exit codes of runs with a failed cell."""


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of one run. `code` is the exit code. `found` is all findings, `findings` the
    findings to report. `verdict` is false if only the cells' statuses count. `unjudged` says why
    the run cannot be judged. `low` is true if a cell is low and no other process explains that;
    `broken` if a cell failed; `judged` if a cell has a verdict. `undetectable` is losses that no
    figure shows. `waived` is accepted findings and notes on unused waivers."""

    code: int
    findings: tuple[Finding, ...] = ()
    verdict: bool = True
    low: bool = False
    found: tuple[Finding, ...] = ()
    unjudged: str = ""
    broken: bool = False
    judged: bool = False
    perhaps_low: bool = False
    undetectable: tuple[Undetectable, ...] = ()
    waived: tuple[Finding, ...] = ()

    @property
    def accepted(self) -> frozenset[str]:
        """Returns the names of the cells that are the evidence of waived findings."""
        return frozenset(
            cell for one in self.waived if one.severity == "waived" for cell in one.cells
        )

    @property
    def word(self) -> RunVerdict:
        """Returns the run's verdict: the first that applies of fail, low, warn, ok, not judged."""
        if self.broken or failed(self.findings):
            return "fail"
        if self.low:
            return "low"
        if self.perhaps_low or any(one.severity == "warn" for one in self.findings):
            return "warn"
        return "ok" if self.verdict and self.judged else "not judged"

    def marked(self, run: Run) -> Run:
        if not self.waived or not self.accepted:
            return run
        from .waivers import waive_named

        return waive_named(run, self.accepted)

    @property
    def answer(self) -> tuple[RunVerdict, int, tuple[Finding, ...], tuple[Undetectable, ...]]:
        """Returns the verdict, exit code, findings and undetectable losses for a document."""
        return self.word, self.code, (*self.findings, *self.waived), self.undetectable

    def parts(self, *checks: str) -> list[str]:
        return [one.subject for one in self.found if one.check in checks]


def outcome_of_setup(findings: tuple[Finding, ...]) -> Outcome:
    return Outcome(int(failed(findings)), findings, found=findings, judged=True)


def outcome_of(run: Run, *, verdict: bool = True) -> Outcome:
    """Judges a run. If `verdict` is false or the run cannot be judged, only the cells' statuses
    count. Else, even if all cells passed, the exit code is 1 if a finding about a measured part is
    a failure, or if a cell is low and neither another process nor a busy host explains that."""
    code = exit_code(run)
    why = why_unjudged(run)
    if not verdict or why is not None:
        return Outcome(
            code, verdict=False, unjudged=(why or "") if verdict else "", broken=code in _BROKEN
        )
    evidence, notes = evidence_of(run), tuple[Finding, ...]()
    found = diagnose(evidence)
    if run.waivers:
        from .waivers import waive_findings

        found, notes = waive_findings(run, found)
    findings, waived = concerns(evidence, found), tuple(f for f in found if f.severity == "waived")
    if run.tool and not run.results:
        findings = tuple(one for one in found if one.is_grave)
        return Outcome(
            int(failed(findings)), findings, found=(*found, *notes), waived=(*waived, *notes)
        )
    used = {one.about for one in found if (one.check, one.severity) == ("processes", "warn")}
    names = {name for one in waived for name in one.cells}
    verdicts = {
        cell.verdict for result in run.results for cell in result.cells
        if not (names and cell.verdict in BELOW and spoken(result, cell) in names)
    }  # fmt: skip
    undetectable, cpus = tuple[Undetectable, ...](), run.machine.host.cpus
    if evidence.is_comparable:
        from .undetectable import undetectable_of

        undetectable = undetectable_of(evidence)
    low = "low" in verdicts and any(
        used.isdisjoint(one.touched) and not is_host_taken(one, cpus)
        for one in cases_of(evidence)
        if one.cell.verdict == "low" and one.name not in names
    )
    return Outcome(
        code or int(low or failed(findings)), findings, low=low, found=(*found, *notes),
        broken=code in _BROKEN, judged=verdicts != {"not judged"},
        perhaps_low="perhaps low" in verdicts, undetectable=undetectable,
        waived=(*waived, *notes),
    )  # fmt: skip


def doubtful(run: Run, judge: Callable[[Run], Run] = judge) -> tuple[CellAt, ...]:
    """Returns the cells to measure again: cells that are low, perhaps low or unsteady, and cells
    that are slower than their peers in only one benchmark and one repetition."""
    if why_unjudged(run) is not None:
        return ()
    evidence = evidence_of(judge(run))
    doubted, numbers = frozenset[str](), {id(one): at for at, one in enumerate(evidence.results)}
    if evidence.is_comparable:
        from .blame.unsteady import unsteady

        doubted = unsteady(evidence)
    once = {one.case.number for one in behind(evidence) if not one.is_sure}
    return tuple(
        CellAt(numbers[id(case.result)], case.cell.place)
        for case in cases_of(evidence)
        if case.cell.status == "pass" and (
            case.cell.verdict in BELOW or case.number in once or (doubted and case.name in doubted)
        )
    )  # fmt: skip


_MOST_PAIRS = 128
"""With more pairs, only neighbouring pairs are measured. They still cover each device."""


def pairs_in_doubt(
    run: Run, verdicts: Callable[[Run], Sequence[Result]]
) -> tuple[tuple[str, str], ...]:
    """Returns pairs of devices that send each other data in a low collective, and between which the
    run has no copy. A copy between them may show the slow link."""
    collectives = COLLECTIVE.symbol in map(attrgetter("unit"), run.results)
    able = run.finished is not None and not run.machine.ranks and run.soak is None
    if not (collectives and able and why_unjudged(run) is None):
        return ()
    cells = [cell for result in verdicts(run) for cell in result.cells]
    low = [one for one in cells if one.verdict in BELOW and exchanging(one)]
    if not low:
        return ()
    found = dict.fromkeys(pair for cell in low for pair in exchanging(cell))
    if len(found) > _MOST_PAIRS:
        ranks = [[str(one.engine.owner) for one in cell.transfers] for cell in low]
        found = dict.fromkeys(pair for own in ranks for pair in pairwise([*own, own[0]]))
    measured = {pair_of(one) for cell in cells for one in cell.transfers}
    return tuple(pair for pair in found if pair not in measured)


def why_unjudged(run: Run) -> str | None:
    """Returns the reason why a run's figures cannot judge the hardware, or None if they can."""
    machine = run.machine
    if run.lost is not None:
        return f"rank {run.lost.number} was lost"
    if run.is_profiled:
        return "a profiler took part"
    if machine.shared:
        return "ranks took turns on one device"
    if not any(map(is_node, machine.by_memory)):
        return None
    if (oversubscription := machine.oversubscription) is not None:
        return str(oversubscription)
    if len({rank.host for rank in machine.ranks}) == 1:
        return "no reference for copies between processes of one machine"
    return None
