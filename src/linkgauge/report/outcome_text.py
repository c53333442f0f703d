"""The last lines of a run: how many cells did how well, and the first cause where one is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.text import Text

from linkgauge.judge.outcome import Outcome
from linkgauge.model.result import CellResult, Result, Run, Status, Verdict

from .expectations import STYLES, compared
from .findings_text import headline
from .run_text import STATUS_STYLES, simulated
from .sentences import first_of

_VERDICTS: dict[Verdict, str] = {
    "ok": "ok",
    "low": "low",
    "unknown": "not judged",
    "high": "high",
}
_UNMEASURED: tuple[Status, ...] = ("error", "timeout", "skip")


def outcome_lines(run: Run, outcome: Outcome) -> Iterator[Text]:
    """`42 measured: 30 ok, 2 low, 10 not judged`, then the first cause: of several findings, the
    first failure."""
    line = _tally(run, verdict=outcome.verdict)
    if run.finished is None:
        line.append(" (interrupted)", "yellow")
    if run.simulated:
        line.append(" ").append(simulated())
    yield line
    if run.lost is not None:
        yield Text.assemble(("lost", STATUS_STYLES["error"]), f": {run.lost}; the run ended there")
    elif outcome.verdict and (cause := _cause(run, outcome)) is not None:
        yield Text.assemble("cause: ", cause)


def uncounted_lines(outcome: Outcome) -> Iterator[Text]:
    """The failures found on a run's machine that are not the run's."""
    others = [f for f in outcome.found if f.severity == "fail" and f not in outcome.findings]
    if others:
        names = first_of([f"{finding.check} {finding.subject}" for finding in others], ", ")
        yield Text(f"not counted, since the run did not measure it: {names}")


def _tally(run: Run, *, verdict: bool) -> Text:
    statuses = Counter(cell.status for _, cell in _cells(run))
    statuses["skip"] += sum(not result.cells for result in run.results)
    measured = statuses["pass"] + statuses["fail"]
    verdicts = Counter(cell.verdict for _, cell in _cells(run) if cell.status == "pass")
    parts = [
        Text(f"{verdicts[by]} {name}", "green" if by == "ok" else STYLES[by])
        for by, name in _VERDICTS.items()
        if verdict and (verdicts[by] or (by != "high" and measured))
    ]
    if statuses["fail"]:
        parts.append(Text(f"{statuses['fail']} fail", STATUS_STYLES["fail"]))
    line = Text(f"{measured} measured" if measured else "nothing measured")
    if parts:
        line.append(": ").append(Text(", ").join(parts))
    for status in _UNMEASURED:
        if statuses[status]:
            line.append("; ").append(f"{statuses[status]} {status}", STATUS_STYLES[status])
    return line


def _cause(run: Run, outcome: Outcome) -> Text | None:
    """The first finding; else the first cell that was not measured as it should, or is low."""
    if outcome.findings:
        return headline([outcome.findings[0]])
    for result, cell in _cells(run):
        name = f"{result.benchmark} {cell.place}"
        if cell.status in ("fail", "error", "timeout"):
            return Text.assemble(
                (cell.status, STATUS_STYLES[cell.status]), f" {name}: {cell.reason}"
            )
    for result, cell in _cells(run):
        if cell.verdict == "low":
            share = f"{result.benchmark} {compared(cell)} of what is expected"
            return Text.assemble(("low", STYLES["low"]), f" {share}; no check tells why")
    return None


def _cells(run: Run) -> Iterator[tuple[Result, CellResult]]:
    for result in run.results:
        for cell in result.cells:
            yield result, cell
