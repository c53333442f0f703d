"""Defines limits that users write in limits.yml. Reading the file executes no code.

    limits:
      - {device: "NVIDIA H200*", benchmark: "host_to_device_memcpy_*", limit: "≥ 50 GB/s"}
      - {limit: ">= 0.9 × achievable"}

`device` is a pattern for the device's model (the processor's if only the host takes part).
`benchmark` is a pattern for the benchmark's name. Both accept `*`, `?` and `[…]`; default: all.
`limit` is a bound as in `limit_bounds.py`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.machine.given import entries_in
from linkgauge.model.documents.result import CellResult, PlannedTable, Result, Run
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.notes import Unjudged
from linkgauge.model.operations.busbw import bandwidths
from linkgauge.model.stats.summary import summarize
from linkgauge.model.transfer import Place
from linkgauge.model.units import BANDWIDTH, COLLECTIVE, LATENCY, unit_of

from .limit_bounds import QUANTITY, StatisticLimit, parse_bound

_FIELDS = ("device", "benchmark", "limit")


class Limit(msgspec.Struct, frozen=True):
    """A limit of a limits.yml. `text` is the limit as written, `where` its file and line."""

    device: str
    benchmark: str
    bound: StatisticLimit
    text: str
    where: str


def read_limits(path: Path) -> tuple[Limit, ...]:
    """Reads a file of limits. Raises InputError, which names the faulty line."""
    return tuple(_entry(*one) for one in entries_in(path, "limit", _FIELDS))


def _entry(where: str, fields: dict[str, str]) -> Limit:
    if "limit" not in fields:
        raise InputError(f'{where}: missing limit, such as limit: "≥ 50 GB/s"')
    bound = parse_bound(fields["limit"], f"{where}: ")
    patterns = (fields.get("device", "*"), fields.get("benchmark", "*"))
    return Limit(*patterns, bound, " ".join(fields["limit"].split()), where)


# Measured figures against what the user asked for.

Objection = Callable[[CellResult], str | None]
"""Says in one line why a measured cell is not good enough, if it is not."""


def hold_run(run: Run, objection: Objection | None) -> Run:
    return run if objection is None else run.with_cells(partial(objected, objection))


def objected(objection: Objection, cell: CellResult) -> CellResult:
    reason = objection(cell) if cell.status == "pass" else None
    return cell if reason is None else replace(cell, status="fail", reason=reason, kind="limit")


_SLOW = {"p95": "slow_p95", "p99": "slow_p99"}
"""The statistics that people mean by a percentile: those of the slow side."""
_OF_TIME = {"min": "max", "max": "min"}
"""The statistic of times from which the statistic of a bandwidth follows."""
_NAMES = 5

Tables = Sequence[Result | PlannedTable]


def apply(run: Run, limits: tuple[Limit, ...]) -> Run:
    """Marks cells that miss a limit as failed, and adds a note to cells without the figure that a
    limit refers to. The run must be judged: limits may refer to expected figures."""
    if not limits:
        return run
    from .waivers import waive_cells

    models = _MachineModels(run.machine)
    results = tuple(_limited(each, limits, models) for each in run.results)
    return waive_cells(replace(run, results=results))


def refuse_unmatched(tables: Tables, machine: Machine, limits: Sequence[Limit]) -> None:
    """Raises InputError if a limit fits no table, or if no limit is for a device model of this
    machine. Some limits may be for other models, because one file may serve several machines."""
    for limit in limits:
        named = [table for table in tables if fnmatchcase(table.benchmark, limit.benchmark)]
        if not named:
            raise InputError(f"{limit.where}: {_unknown(limit.benchmark, tables)}")
        if not any(_fits(limit, table.unit) for table in named):
            units = _listed(unit_of(table.unit).shown for table in named)
            names = _listed(table.benchmark for table in named)
            raise InputError(
                f"{limit.where}: {limit.text} does not fit {names}, measured in {units}"
            )
    others = of_other_models(tables, machine, limits)
    if others and len(others) == len(limits):
        near = _near(others[0].device, _MachineModels(machine).names)
        raise InputError(f"{others[0].where}: no device matches {others[0].device!r}: {near}")


def of_other_models(tables: Tables, machine: Machine, limits: Sequence[Limit]) -> tuple[Limit, ...]:
    models = _MachineModels(machine)
    return tuple(
        limit
        for limit in limits
        if not any(
            models.fit(cell.places, limit)
            for table in tables
            if _is_of(limit, table)
            for cell in table.cells
        )
    )


def _unknown(pattern: str, tables: Tables) -> str:
    known = [name for name in CATALOG if fnmatchcase(name, pattern)]
    if known:
        return f"this run does not measure {_listed(known)}: limit only what it measures"
    near = _near(pattern, dict.fromkeys(table.benchmark for table in tables), CATALOG)
    return f"no benchmark matches {pattern!r}: {near}"


def _near(pattern: str, names: Iterable[str], others: Iterable[str] = ()) -> str:
    from difflib import get_close_matches

    known, bare = list(names), pattern.strip("*?[]")
    near = get_close_matches(bare, known) or get_close_matches(bare, list(others))
    return f"did you mean {' or '.join(near)}?" if near else f"there are {_listed(known)}"


def _listed(names: Iterable[str]) -> str:
    every = list(dict.fromkeys(names))
    return ", ".join(every[:_NAMES]) + (" …" if len(every) > _NAMES else "")


class _MachineModels:
    def __init__(self, machine: Machine) -> None:
        self._devices = {device.memory: device.model for device in machine.all_devices}
        self._processor = machine.host.cpu_model or ""
        self.names = (*self._devices.values(), self._processor)

    def fit(self, places: Iterable[object], limit: Limit) -> bool:
        models = [self._devices[name] for p in places if (name := str(p)) in self._devices]
        return any(fnmatchcase(model, limit.device) for model in models or [self._processor])


def _fits(limit: Limit, unit: str) -> bool:
    asked = limit.bound.unit
    if unit == COLLECTIVE.symbol:
        return asked in (None, LATENCY.symbol, BANDWIDTH.symbol)
    return asked in (None, QUANTITY.get(unit, unit))


def _is_of(limit: Limit, table: Result | PlannedTable) -> bool:
    return fnmatchcase(table.benchmark, limit.benchmark) and _fits(limit, table.unit)


def _limited(result: Result, limits: tuple[Limit, ...], models: _MachineModels) -> Result:
    for limit in limits:
        if _is_of(limit, result):
            held = {one.place for one in _held(result, limit) if models.fit(one.places, limit)}
            result = result.with_cells(partial(_check, limit, result, held))
    return result


def _is_of_bus(result: Result, limit: Limit) -> bool:
    of_bus = limit.bound.unit == BANDWIDTH.symbol or limit.bound.of is not None
    return result.unit == COLLECTIVE.symbol and of_bus


def _held(result: Result, limit: Limit) -> Iterable[CellResult]:
    """Returns the cells that a limit concerns; for bus bandwidths, the largest size of each row."""
    if not _is_of_bus(result, limit):
        return result.cells
    by_size = sorted(result.cells, key=lambda cell: cell.bytes or 0)
    return {cell.row: cell for cell in by_size}.values()


def _check(limit: Limit, result: Result, held: Collection[Place], cell: CellResult) -> CellResult:
    if cell.place not in held or cell.status != "pass" or cell.summary is None:
        return cell
    bound = limit.bound
    least = bound.value
    if bound.of is not None:
        known = getattr(cell.expected, bound.of, None)
        if known is not None and (on_bus := bandwidths(cell, known)) is not None:
            known = on_bus.bus
        if known is None:
            why = cell.expected.because if cell.expected else "no figure is expected"
            return _unjudged(cell, limit, why)
        least = bound.value * known
    figure, unit = _figure(cell, limit, result)
    if figure is None:
        return _unjudged(cell, limit, "one rank has no bus bandwidth")
    if figure >= least if bound.at_least else figure <= least:
        return cell
    side = "below" if bound.at_least else "above"
    statistic = _SLOW.get(bound.statistic, bound.statistic)
    what = f"{statistic} {_shown(figure, unit)} is {side} the limit {limit.text}"
    of = "" if bound.of is None else f" = {_shown(least, unit)}"
    return replace(cell, status="fail", reason=f"{what}{of} ({limit.where})", kind="limit")


def _unjudged(cell: CellResult, limit: Limit, why: str) -> CellResult:
    return replace(cell, notes=(*cell.notes, Unjudged(limit.text, limit.where, why)))


def _figure(cell: CellResult, limit: Limit, result: Result) -> tuple[float | None, str]:
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
