"""Compares figures with limits. A figure beyond a limit fails, and a limit that fits no figure is
an error.

A limit in bytes/s fits bandwidths of any kind: payload, STREAM's, and the bus bandwidth of
collectives. For collectives only the largest size of each row counts, because small sizes only show
latency."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from msgspec.structs import replace

from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.model.documents.result import CellResult, PlannedTable, Result, Run, worst
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.notes import Unjudged
from linkgauge.model.operations.busbw import bandwidths
from linkgauge.model.stats.summary import summarize
from linkgauge.model.units import BANDWIDTH, COLLECTIVE, HIDDEN, LATENCY, STEP, STREAM, unit_of

if TYPE_CHECKING:
    from .limits import Limit

_SLOW = {"p95": "slow_p95", "p99": "slow_p99"}
"""The statistics that people mean by a percentile: those of the slow side."""
_OF_TIME = {"min": "max", "max": "min"}
"""The statistic of times from which the statistic of a bandwidth follows."""
_QUANTITY = {
    STREAM.symbol: BANDWIDTH.symbol, STEP.symbol: LATENCY.symbol, HIDDEN.symbol: "%",
}  # fmt: skip
"""The units that count as the same unit in limits."""
_NAMES = 5
"""The most names that are listed if none is near."""

Sheets = Sequence[Result | PlannedTable]


def apply(run: Run, limits: tuple[Limit, ...]) -> Run:
    """Returns the run after a check of the limits. Passed cells beyond a limit now fail. Cells
    without the figure that a limit needs get a warning. The run must have the expectations from
    `judge`."""
    if not limits:
        return run
    models = _MachineModels(run.machine)
    return replace(run, results=tuple(_limited(each, limits, models) for each in run.results))


def refuse_unmatched(sheets: Sheets, machine: Machine, limits: Sequence[Limit]) -> None:
    """Raises InputError for a limit whose benchmark or unit fits no table. Also raises it if all
    limits are for other models of devices. Some limits may be for other models, because a file may
    serve several machines."""
    for limit in limits:
        named = [sheet for sheet in sheets if fnmatchcase(sheet.benchmark, limit.benchmark)]
        if not named:
            raise InputError(f"{limit.where}: {_unknown(limit.benchmark, sheets)}")
        if not any(_fits(limit, sheet.unit) for sheet in named):
            units = _listed(unit_of(sheet.unit).shown for sheet in named)
            names = _listed(sheet.benchmark for sheet in named)
            raise InputError(
                f"{limit.where}: {limit.text} does not fit {names}, measured in {units}"
            )
    others = of_other_models(sheets, machine, limits)
    if others and len(others) == len(limits):
        near = _near(others[0].device, _MachineModels(machine).names)
        raise InputError(f"{others[0].where}: no device matches {others[0].device!r}: {near}")


def of_other_models(sheets: Sheets, machine: Machine, limits: Sequence[Limit]) -> tuple[Limit, ...]:
    """Returns the limits that fit none of the devices that take part."""
    if not limits:
        return ()
    models = _MachineModels(machine)
    return tuple(
        limit
        for limit in limits
        if not any(
            models.fit(cell.places, limit)
            for sheet in sheets
            if fnmatchcase(sheet.benchmark, limit.benchmark) and _fits(limit, sheet.unit)
            for cell in sheet.cells
        )
    )


def _unknown(pattern: str, sheets: Sheets) -> str:
    """Returns the end of an error message about a pattern that fits no measured benchmark."""
    known = [name for name in CATALOG if fnmatchcase(name, pattern)]
    if known:
        return f"this run does not measure {_listed(known)}: limit only what it measures"
    near = _near(pattern, dict.fromkeys(sheet.benchmark for sheet in sheets), CATALOG)
    return f"no benchmark matches {pattern!r}: {near}"


def _near(pattern: str, names: Iterable[str], others: Iterable[str] = ()) -> str:
    """Returns a hint with the names that are nearest to the pattern. `others` are used if none of
    the `names` is near."""
    from difflib import get_close_matches

    known, bare = list(names), pattern.strip("*?[]")
    near = get_close_matches(bare, known) or get_close_matches(bare, list(others))
    return f"did you mean {' or '.join(near)}?" if near else f"there are {_listed(known)}"


def _listed(names: Iterable[str]) -> str:
    every = list(dict.fromkeys(names))
    return ", ".join(every[:_NAMES]) + (" …" if len(every) > _NAMES else "")


class _MachineModels:
    """The models of a machine's devices and of its processor."""

    def __init__(self, machine: Machine) -> None:
        self._devices = {d.memory: d.model for found in machine.devices.values() for d in found}
        self._processor = machine.host.cpu_model or ""

    @property
    def names(self) -> Iterator[str]:
        yield from dict.fromkeys((*self._devices.values(), self._processor))

    def fit(self, places: Iterable[object], limit: Limit) -> bool:
        """Whether the limit fits any device at these places, or the processor if there are no
        devices."""
        models = [self._devices[name] for p in places if (name := str(p)) in self._devices]
        return any(fnmatchcase(model, limit.device) for model in models or [self._processor])


def _fits(limit: Limit, unit: str) -> bool:
    """Whether figures in this unit can be compared with the limit."""
    asked = limit.bound.unit
    if unit == COLLECTIVE.symbol:
        return asked in (None, LATENCY.symbol, BANDWIDTH.symbol)
    return asked in (None, _QUANTITY.get(unit, unit))


def _limited(result: Result, limits: tuple[Limit, ...], models: _MachineModels) -> Result:
    cells = result.cells
    for limit in limits:
        if fnmatchcase(result.benchmark, limit.benchmark) and _fits(limit, result.unit):
            held = _held(result, limit)
            cells = tuple(
                _check(cell, limit, result)
                if cell.place in held and models.fit(cell.places, limit)
                else cell
                for cell in cells
            )
    if cells == result.cells:
        return result
    return replace(result, cells=cells, status=worst(cell.status for cell in cells))


def _is_of_bus(result: Result, limit: Limit) -> bool:
    """Whether the limit is for a collective's bus bandwidth: a rate, or a share of the expected
    rate."""
    of_bus = limit.bound.unit == BANDWIDTH.symbol or limit.bound.of is not None
    return result.unit == COLLECTIVE.symbol and of_bus


def _held(result: Result, limit: Limit) -> set[object]:
    """Returns the places of the cells to which the limit applies. For a collective's bus bandwidth,
    these are the cells with the largest size of each row."""
    if not _is_of_bus(result, limit):
        return {cell.place for cell in result.cells}
    largest: dict[str, CellResult] = {}
    for cell in result.cells:
        if (cell.bytes or 0) >= (largest.setdefault(cell.row, cell).bytes or 0):
            largest[cell.row] = cell
    return {cell.place for cell in largest.values()}


def _check(cell: CellResult, limit: Limit, result: Result) -> CellResult:
    if cell.status != "pass" or cell.summary is None:
        return cell
    bound = limit.bound
    least = bound.value
    if bound.of is not None:
        known = getattr(cell.expected, bound.of, None)
        if known is not None and (on_bus := bandwidths(cell, known)) is not None:
            known = on_bus.bus
        if known is None:
            why = cell.expected.because if cell.expected else "no figure is expected"
            return replace(cell, notes=(*cell.notes, Unjudged(limit.text, limit.where, why)))
        least = bound.value * known
    figure, unit = _figure(cell, limit, result)
    if figure is None:
        why = "one rank has no bus bandwidth"
        return replace(cell, notes=(*cell.notes, Unjudged(limit.text, limit.where, why)))
    if figure >= least if bound.at_least else figure <= least:
        return cell
    side = "below" if bound.at_least else "above"
    statistic = _SLOW.get(bound.statistic, bound.statistic)
    what = f"{statistic} {_shown(figure, unit)} is {side} the limit {limit.text}"
    of = "" if bound.of is None else f" = {_shown(least, unit)}"
    return replace(cell, status="fail", reason=f"{what}{of} ({limit.where})", kind="limit")


def _figure(cell: CellResult, limit: Limit, result: Result) -> tuple[float | None, str]:
    """Returns the value to compare with the limit, and its unit. The value is None if the cell does
    not have it."""
    is_of_bus = _is_of_bus(result, limit)
    statistic = _SLOW.get(limit.bound.statistic, limit.bound.statistic)
    statistic = _OF_TIME.get(statistic, statistic) if is_of_bus else statistic
    figure: float | None = getattr(cell.summary, statistic)
    if figure is None:  # the file is older than the statistic
        figure = getattr(summarize(cell.samples, result.better), statistic)
    if not is_of_bus:
        return figure, result.unit
    known = bandwidths(cell, figure)
    return (known.bus or None) if known is not None else None, BANDWIDTH.symbol


def _shown(figure: float, unit: str) -> str:
    known = unit_of(unit)
    scaled = figure / known.scale
    digits = f"{scaled:.2f}".rstrip("0").rstrip(".") if scaled >= 1 else f"{scaled:.3g}"
    return f"{digits} {known.shown}"
