"""Writes sentences and documents about compared cells, also for the gate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement

import msgspec

from linkgauge.judge.compare.baseline import Baseline, BaselineCell
from linkgauge.judge.compare.disturbance import Disturbance
from linkgauge.judge.compare.gate import FAILURES, UNDECIDED, GateCell, GateDocument
from linkgauge.judge.compare.run_comparison import CellChange, RunCell, RunComparison
from linkgauge.model.documents.result import RunVerdict
from linkgauge.model.grouped import grouped
from linkgauge.model.printable import escaped, printable
from linkgauge.model.recorded import RECORDED
from linkgauge.model.stats.changes import log_of_loss
from linkgauge.model.units import UNITS, Better, percent, unit_of
from linkgauge.report.csv_text import csv_text
from linkgauge.report.files import json_document, judged_document
from linkgauge.report.results import ends_of_sizes
from linkgauge.report.run_texts import case_of, document_of, fail, suite_of
from linkgauge.report.words.figures import difference, digits, loss_below, may_have_lost

_LEAST_P = 1e-9
_WORDS: dict[int, RunVerdict] = {0: "ok", 1: "fail"}
"""The verdicts on runs, by the gate's exit codes. Any other code means that nothing was decided."""


def why(one: GateCell) -> str:
    current = one.current
    match one.verdict:
        case "missing":
            return f"the current runs lack it; {_figure(one.baseline.figure, one)} in the baseline"
        case "not compared" if current is None:
            return "the current runs lack it: not asked for, of another size, or interrupted"
        case "not compared" if current is not None and current.untried is True:
            return f"not tried by the current runs: {current.reason}"
        case "not compared":
            return f"not tried by the baseline: {one.baseline.reason}"
        case "worse status" if current is not None:
            reason = f": {current.reason}" if current.reason else ""
            return f"{current.status}, was {one.baseline.status}{reason}"
        case "inconclusive" if one.disturbance is not None:
            return f"{_lost(one)}; the machine was not the same: {_disturbed(one.disturbance)}"
        case "measure again" | "far off":
            return f"{_lost(one)}; {_single(one)}"
        case "too noisy":
            return _noisy(one)
        case "not enough":
            return f"{_lost(one)}; {lacking(one.cell.changes[0], one.cell.better)}"
    return f"{_lost(one)}{'; a waiver accepts it' if one.verdict == 'waived' else ''}"


def _lost(one: GateCell) -> str:
    change = one.cell.changes[0].change
    if one.loss is None or change is None or one.current is None:
        return "no figure on both sides"
    figures = f"{_digits(one.baseline.figure, one)} → {_figure(one.current.figure, one)}"
    moved = difference(change.ratio, one.cell.better)
    return f"{moved}: {figures} (p {p_value(change.holm)})"


def _noisy(one: GateCell) -> str:
    if one.largest is None:
        return "one run on each side does not show how much runs vary: give several"
    return f"{_lost(one)}; {may_have_lost(one.largest, one.cell.better)}"


def _single(one: GateCell) -> str:
    path = one.cell.path
    assert path is not None  # noqa: S101  # else the loss is a regression
    far = percent(RECORDED[path].furthest)
    if one.verdict == "measure again":
        return f"more than healthy runs are apart ({path}: {far}): try --rerun 2"
    return f"healthy runs are up to {far} apart ({path}): it fails if it comes again"


def _figure(figure: float | None, one: GateCell) -> str:
    return f"{_digits(figure, one)} {unit_of(one.cell.unit).shown}"


def _digits(figure: float | None, one: GateCell) -> str:
    return "-" if figure is None else digits(figure / unit_of(one.cell.unit).scale)


def _disturbed(one: Disturbance) -> str:
    if one.cpu_distances is not None:
        before, after = (f"{seconds * 1e9:.0f} ns" for seconds in one.cpu_distances)
        return f"its host ran virtual CPUs {after} apart, {before} in the baseline"
    number = "" if one.pid is None else f" (pid {one.pid})"
    if one.device is not None:
        return f"another process{number} used {one.device} in one of them"
    who = f"{one.process}{number}" if one.process else "a process that this one cannot see"
    return f"{who} and others kept {one.current:.1f} CPUs busy, {one.baseline:.1f} in the baseline"


def lacking(one: CellChange, better: Better) -> str:
    if one.needed is None:
        return ""
    more = one.needed.more
    runs = (
        f"too few runs, needs {more_runs(more)}"
        if more
        else "runs vary too much for any number of them"
    )
    return f"{runs}; may miss {loss_below(one.needed.detectable, better)}"


def more_runs(more: tuple[int, int]) -> str:
    """Formats how many more runs are needed: `3 more`, or a number for each side."""
    first, other = more
    return (
        f"{first} more runs of the first side and {other} of the other"
        if first
        else f"{other} more"
    )


def p_value(p: float) -> str:
    if p < _LEAST_P:
        return f"< {_LEAST_P:.0e}"
    return f"{p:.2g}" if p >= 1e-3 else f"{p:.0e}"


# What programs read of comparisons, of the gate's judgement and of a baseline.


_COMPARED = (
    "benchmark", "backend", "size", "row", "column", "side", "unit", "better", "status", "runs",
    "figure", "low", "high", "slow_p95", "slow_p99", "ratio", "ratio_low", "ratio_high", "p",
    "p_holm", "direction", "basis", "deviation", "detectable", "more_of_first", "more",
)  # fmt: skip
_GATE = (
    "benchmark", "backend", "size", "row", "column", "verdict", "unit", "baseline", "current",
    "loss", "largest_loss", "p_holm", "detectable", "why",
)  # fmt: skip
_LIMITS = "# Made from a baseline by linkgauge: medians of its runs, with room for their variation."
_FAR = 3.0
"""The least deviations of runs from their median that a limit allows."""


def comparison_json(one: RunComparison) -> str:
    return json_document({"schema": "linkgauge.runs-compared/1", **msgspec.to_builtins(one)})


def comparison_csv(one: RunComparison) -> str:
    return csv_text((_COMPARED, *(row for cell in one.cells for row in _rows(one, cell))))


def _rows(one: RunComparison, cell: RunCell) -> Iterator[tuple[object, ...]]:
    for side, own, change in zip(one.sides, cell.sides, (None, *cell.changes), strict=True):
        if own is not None:
            yield (
                *_of(cell), side.name, cell.unit, cell.better, own.status,
                own.runs, own.figure, own.low, own.high, own.slow_p95, own.slow_p99,
                *(_fields(change) or [None] * 11),
            )  # fmt: skip


def _of(cell: RunCell) -> Sequence[object]:
    return cell.benchmark, cell.backend, cell.bytes, cell.row, cell.column


def _fields(one: CellChange | None) -> Sequence[object]:
    if one is None or one.change is None or one.needed is None:
        return ()
    change = one.change
    return (
        change.ratio, change.low, change.high, change.p, change.holm, one.direction, change.basis,
        change.deviation, one.needed.detectable, *(one.needed.more or [None] * 2),
    )  # fmt: skip


def gate_json(gate: GateDocument) -> str:
    word = _WORDS.get(gate.code, "not judged")
    return judged_document(gate, word, gate.code, gate.findings)


def gate_csv(gate: GateDocument) -> str:
    return csv_text((_GATE, *map(_judged, gate.cells)))


def _judged(one: GateCell) -> Sequence[object]:
    cell, change = one.cell, one.cell.changes[0]
    return (
        *_of(cell), one.verdict, cell.unit, one.baseline.figure,
        one.current and one.current.figure, one.loss, one.largest,
        change.change and change.change.holm, change.needed and change.needed.detectable,
        "" if one.verdict == "ok" else why(one),
    )  # fmt: skip


def gate_junit(gate: GateDocument) -> str:
    suites = Element("testsuites", name="linkgauge gate")
    for table, each in groupby(gate.cells, key=lambda one: one.cell.table):
        cells, (benchmark, backend, _) = list(each), table
        sizes = ends_of_sizes(one.cell.bytes for one in cells)
        suite = suite_of(suites, f"{benchmark} ({', '.join(filter(None, (backend, sizes)))})")
        for one in cells:
            case = case_of(suite, f"linkgauge.{backend}.{benchmark}", one.cell.name)
            if one.verdict in FAILURES:
                fail(case, one.verdict.replace(" ", "-"), why(one), why(one))
            elif one.verdict in UNDECIDED:
                SubElement(case, "skipped", message=f"{one.verdict}: {why(one)}")
            elif one.loss is not None:
                SubElement(case, "system-out").text = why(one)
    return document_of(suites)


def gate_annotations(gate: GateDocument) -> Iterator[str]:
    """Yields GitHub's workflow commands: an error for a failure, a warning for a doubtful cell.
    Source: docs.github.com, Workflow commands for GitHub Actions."""
    for one in gate.of(*FAILURES, "inconclusive", "measure again", "far off"):
        level = "error" if one.verdict in FAILURES else "warning"
        yield _annotation(level, one.verdict, f"{one.cell.name}: {why(one)}")
    if gate.undetectable is not None:
        yield _annotation("warning", "too noisy", gate.undetectable)


def _annotation(level: str, title: str, message: str) -> str:
    message = printable(message).replace("%", "%25")
    return f"::{level} title=linkgauge%3A {title}::{message}"


def baseline_limits(baseline: Baseline, least: float) -> str:
    """Returns the text of a limits.yml. A cell's limit is its median with a margin: the larger of
    `least` and the variation between runs. A benchmark gets the loosest limit of its cells."""
    lines: list[str] = []
    benchmarks = grouped(((cell.benchmark, cell.unit), cell) for cell in baseline.cells)
    for (benchmark, unit), cells in benchmarks.items():
        if unit not in UNITS:
            lines.append(f"  # {benchmark}: limits do not know {unit_of(unit).shown}")
            continue
        name = escaped(msgspec.json.encode(benchmark)).decode()  # a text of JSON is one of YAML
        lines.append(f'  - {{benchmark: {name}, limit: "{_bound(unit, cells, least)}"}}')
    is_empty = all(line.lstrip().startswith("#") for line in lines)
    return "\n".join((_LIMITS, f"limits:{' []' if is_empty else ''}", *lines, ""))


def _bound(unit: str, cells: Sequence[BaselineCell], least: float) -> str:
    better = cells[0].better
    sign, worst, holds = (-1, min, ">=") if better == "higher" else (1, max, "<=")
    room = log_of_loss(least, better)
    bound = worst(
        cell.median * math.exp(sign * max(room, _FAR * (cell.deviation or 0.0))) for cell in cells
    )
    value = bound / unit_of(unit).scale
    # Without an exponent that limits cannot read.
    number = digits(value).rstrip(".") if value >= 1e-3 else f"{value:.3e}"
    return f"median {holds} {number} {unit_of(unit).shown}"
