"""Figures of both tools under the same names and in the same unit, from their output.

nvbandwidth's matrices hold strings in GB/s (1e9 bytes/s) or ns, `N/A` if there is no figure; for
the bidirectional device tests three matrices follow one another. linkgauge's cells are in bytes/s
and s. Here all are in bytes/s and s.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from linkgauge.benchmarks.copies import NVBANDWIDTH_0_8
from linkgauge.model.documents.result import Result, Run
from linkgauge.model.units import BANDWIDTH, LATENCY, Unit

TESTS: tuple[str, ...] = tuple(row.name for row in NVBANDWIDTH_0_8)
PARTS: dict[str, tuple[str, ...]] = {row.name: row.parts for row in NVBANDWIDTH_0_8}
UNITS: dict[str, Unit] = {row.name: row.unit for row in NVBANDWIDTH_0_8}


def is_latency(test: str) -> bool:
    return UNITS[test] == LATENCY


CROSSING = tuple(test for test in TESTS if "host" in test)
"""All tests whose bytes cross to the host, including the latency of its memory."""
HOST_TESTS = tuple(test for test in CROSSING if not is_latency(test))
"""Copies that cross to the host."""
DEVICE_TESTS = tuple(test for test in TESTS if test not in HOST_TESTS)
"""Copies among devices and within one, and both latencies."""


class Key(NamedTuple):
    """One figure: `part` names a single direction of a bidirectional cell, otherwise it is
    empty."""

    test: str
    part: str
    row: str
    column: str

    def __str__(self) -> str:
        """As `0,1 read1`: row, column and part."""
        return f"{self.row},{self.column} {self.part}".rstrip()


Figures = dict[Key, float]


@dataclass(frozen=True)
class Reading:
    """What one run measured, in base units, and what went wrong in it."""

    figures: Figures
    problems: tuple[str, ...] = ()


class TestCase(msgspec.Struct, frozen=True):
    """One test of nvbandwidth's document; without a matrix unless its status is Passed."""

    __test__ = False

    name: str
    status: str = ""
    bandwidth_matrix: list[list[str]] = []
    error: str = ""


class Output(msgspec.Struct, frozen=True):
    """The content under `nvbandwidth` in its document."""

    testcases: list[TestCase] = []
    driver: str = msgspec.field(name="Driver Version", default="")
    devices: list[str] = msgspec.field(name="GPU Device list", default=[])
    version: str = ""
    error: str = ""


class Document(msgspec.Struct, frozen=True):
    """nvbandwidth's whole document."""

    nvbandwidth: Output


def last_document(text: str) -> object | None:
    """The last complete document of nvbandwidth in `text`, or None: after an error it prints its
    document more than once, each time with more in it."""
    decoder = json.JSONDecoder()
    found: object | None = None
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            value, end = None, at + 1
        if isinstance(value, dict) and "nvbandwidth" in value:
            found = value
        at = text.find("{", end)
    return found


def key_paths(document: object, path: str = "") -> set[str]:
    """The paths of a document's keys, `a.b` in an object and `a[].b` in a list of them."""
    if isinstance(document, dict):
        deeper = {f"{path}.{key}".lstrip("."): value for key, value in document.items()}
        return set(deeper).union(*(key_paths(value, name) for name, value in deeper.items()))
    if isinstance(document, list):
        return set[str]().union(*(key_paths(value, f"{path}[]") for value in document))
    return set()


def read_nvbandwidth(document: object) -> Reading:
    """Figures of nvbandwidth's document; 0 is none. Raises msgspec.ValidationError for any other
    document."""
    output = msgspec.convert(document, Document).nvbandwidth
    figures: Figures = {}
    problems = [output.error] if output.error else []
    for case in output.testcases:
        if case.name not in UNITS:
            continue
        try:
            read = _matrix_figures(case)
        except ValueError as error:
            problems.append(f"{case.name}: {error}")
            continue
        figures |= {key: value for key, value in read.items() if value > 0}
        problems += [f"{case.name} {key}: no figure" for key in read if key not in figures]
    problems += [
        f"{case.name}: {case.error or case.status or 'no figures'}"
        for case in output.testcases
        if case.name in UNITS and not case.bandwidth_matrix
    ]
    return Reading(figures, tuple(dict.fromkeys(problems)))


def _matrix_figures(case: TestCase) -> Figures:
    names = (*PARTS[case.name], "")  # the single directions, then the total
    height, rest = divmod(len(case.bandwidth_matrix), len(names))
    if rest:
        raise ValueError(f"{len(case.bandwidth_matrix)} rows are not {len(names)} matrices")
    scale = UNITS[case.name].scale
    return {
        Key(case.name, names[line // height], str(line % height), str(column)): float(text) * scale
        for line, row in enumerate(case.bandwidth_matrix)
        for column, text in enumerate(row)
        if text != "N/A"
    }


def results_of(run: Run) -> Iterator[Result]:
    """The run's results that nvbandwidth has too, on the cuda backend."""
    return (one for one in run.results if one.backend == "cuda" and one.benchmark in UNITS)


def read_linkgauge(run: Run) -> Reading:
    """Medians of the cells that passed; a cell without a path (`skip`) is no problem. Totals of
    several transfers are left out unless they are nvbandwidth's, bytes over the span."""
    figures: Figures = {}
    problems: list[str] = []
    for result in results_of(run):
        if result.reason and not result.cells:
            problems.append(f"{result.benchmark}: {result.reason}")
        for cell in result.cells:
            key = Key(result.benchmark, "", cell.row, cell.column)
            if cell.status not in ("pass", "skip"):
                problems.append(f"{key.test} {key}: {cell.status}: {cell.reason}")
            if cell.status != "pass" or cell.summary is None:
                continue
            if len(cell.transfers) == 1 or cell.definition in (None, "span"):
                figures[key] = cell.summary.median
            named = zip(PARTS[result.benchmark], cell.parts, strict=False)
            for name, part in named:
                if part.summary is not None:
                    figures[key._replace(part=name)] = part.summary.median
    if run.finished is None:
        problems.append("the run was cut short")
    return Reading(figures, tuple(dict.fromkeys(problems)))


def shown(test: str, values: Sequence[float]) -> str:
    """`369.8 … 370.1 GB/s`, or one figure if both ends look the same."""
    unit = UNITS.get(test, BANDWIDTH)
    ends = dict.fromkeys(f"{value / unit.scale:.2f}" for value in (min(values), max(values)))
    return f"{' … '.join(ends)} {unit.shown}"
