"""Computes theoretical and achievable figures, and texts that show their arithmetic, from the
machine's readings and this run's rates of host memory. Sources are in docs/expect-formulas.md."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from linkgauge.model.documents.result import (
    CellResult,
    Definition,
    Expected,
    NotJudged,
    PlannedCell,
)
from linkgauge.model.grouped import numbering, sharing_first
from linkgauge.model.hardware.inventory import Reading
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.hardware.map import Flow, Resource, share
from linkgauge.model.hardware.motion import FlowWork, movements
from linkgauge.model.hardware.pcie import is_accelerator
from linkgauge.model.memory import NULL
from linkgauge.model.notes import Remark
from linkgauge.model.operations.collective import Collective
from linkgauge.model.transfer import Report, Transfer
from linkgauge.model.units import BANDWIDTH

from .dram import Ceilings
from .link_rates import (
    CALL,
    LOOSE,
    START,
    ExpectedPath,
    Unknown,
    Use,
    capacity,
    doubts_of_reads,
    figure,
)
from .routes import Paths

if TYPE_CHECKING:
    from .exchange_rates import ExchangeRates


class Expectation(msgspec.Struct, frozen=True):
    """The expected figure of a cell. `expected` assumes that transfers share links fairly; `most`
    is the limit for any sharing. `loose` is true if it is approximate, `sure` if it hardly varies.
    Cells are low below the first of `bounds`, perhaps low below the second. `start` is the startup
    time in seconds. `without` is why no achievable figure is known. `each` are transfers' rates."""

    expected: Expected
    most: float | None = None
    loose: bool = False
    sure: bool = False
    bounds: tuple[float, float] | None = None
    start: float = START
    without: NotJudged | None = None
    each: tuple[float | None, ...] = ()


class _PathShape(msgspec.Struct, frozen=True, gc=False):
    """A path, its `kind` (paths of equal kind that share no device or link are equally fast), and a
    number for each of its devices and links (`names`)."""

    path: ExpectedPath
    kind: int
    names: tuple[int, ...]


class Expectations:
    def __init__(self, machine: Machine, ceilings: Ceilings = Ceilings()) -> None:  # noqa: B008
        self.machine, self._paths = machine, Paths(machine, ceilings)
        self._shapes: dict[Hashable, dict[Hashable, _PathShape]] = {}
        self._kinds, self._names = numbering(), numbering()
        self._known: dict[Hashable, Expectation] = {}
        self._rates = cache(self._rates_of)

    def of(
        self, cell: CellResult | PlannedCell, size: int, unit: str, *, loaded: bool = True
    ) -> Expectation:
        """Returns a cell's expected figure. If `loaded`, link speeds are those read under load."""
        transfers, does = self._paths.machine.wiring.carried_out(cell), cell.does
        if isinstance(cell.operation, Collective):
            return self._of_collective(cell, cell.operation, transfers, size)
        if isinstance(cell, CellResult) and cell.work is not None:
            from .computing_rates import roof_of

            roof = roof_of(cell, cell.work)
            without: NotJudged | None = None if roof.achievable else "no-limit"
            return Expectation(roof, loose=True, start=0.0, without=without)
        if does.product is not None and len(transfers) == 1:
            from .computing_rates import product_bound

            device = self._paths.machine.accelerators.get(str(transfers[0].engine.owner))
            readings = cell.readings if isinstance(cell, CellResult) else ()
            expected = product_bound(device, cell.operation, readings)
            return Expectation(expected, without="bound" if expected.theoretical else "no-limit")
        if does.array and transfers[0].engine.owner.is_device:
            # Of each array that is counted, each byte crosses the memory once: as those of a read.
            transfers = tuple(Transfer(t.engine.owner, NULL, t.engine) for t in transfers)
            size, unit = size * does.counted_arrays, BANDWIDTH.symbol
        bounded = unit == BANDWIDTH.symbol and cell.report is not Report.LATENCY
        if not bounded or not does.is_by_bytes:
            return _unknown("no limit is known", "no-limit")
        readings = cell.readings if loaded and isinstance(cell, CellResult) else ()
        try:
            shapes = self._shapes_of(transfers, size, readings)
        except Unknown as reason:
            return _unknown(str(reason))
        if len(shapes) > 2 and cell.report.is_first:
            # The order of the others does not matter: cells whose others are equivalent become
            # equal.
            order = sharing_first([shape.names for shape in shapes])
            transfers = tuple([transfers[at] for at in order])
            shapes = [shapes[at] for at in order]
        definition = _definition(cell, transfers)
        key = (cell.report, definition, size, *_equivalent(shapes))
        if key not in self._known:
            paths = [shape.path for shape in shapes]
            doubts = list(dict.fromkeys(doubt for path in paths for doubt in path.doubts))
            if len(paths) > 1:
                doubts += self._oversubscribed(transfers, paths)
                doubts += doubts_of_reads(transfers, paths)
                doubts += self._behind_writes(paths) if cell.report.is_first else []
            sharing = _Sharing(transfers, paths, cell.report, definition, size)
            self._known[key] = sharing.estimate(doubts)
        return self._known[key]

    def _of_collective(
        self,
        cell: CellResult | PlannedCell,
        work: Collective,
        transfers: Sequence[Transfer],
        size: int,
    ) -> Expectation:
        ranks = [transfer.engine.owner for transfer in transfers]
        if len(ranks) < 2:
            return _unknown("one device sends nothing", "no-limit")
        if not all(rank.is_device for rank in ranks):
            return _unknown("what joins the ranks is unknown")
        if len(work.groups(len(ranks))) > 1:
            return _unknown("groups of ranks share their links", "shared")
        notes = cell.notes if isinstance(cell, CellResult) else ()
        remarks = tuple(one for one in notes if isinstance(one, Remark))  # others are of one cell
        rates = self._rates(Collective(work.collective, root=work.root), remarks)
        devices = tuple(map(str, ranks))
        bound, start = rates.bound(devices), START * rates.steps(len(ranks))
        if bound.theoretical is None:
            return Expectation(Expected(because=bound.because), without="path")
        size = transfers[0].bytes_moved(size)
        moved = work.bytes_on_bus(size, len(ranks)) * work.aggregated
        least = moved / bound.theoretical
        enough = moved / bound.achievable if bound.achievable and bound.least else None
        if (enough or least) < start:
            return _unknown("starting its steps may take as long as moving its bytes", "start")
        because = f"{bound.because}: {figure(bound.figure or 0.0)} on the bus"
        own, by = Expected(least, enough, because), rates.bounds(devices)
        from .healthy import COUNTS

        start = CALL if by.figures else start
        bounds = by[:2] if size >= COUNTS else (min(by.low, LOOSE),) * 2
        return Expectation(own, bounds=bounds, start=start, without=None if enough else "bound")

    def _rates_of(self, work: Collective, remarks: tuple[Remark, ...]) -> ExchangeRates:
        from .across import rates_of  # loaded for collectives alone

        return rates_of(self._paths, work, remarks)

    def _shapes_of(
        self, transfers: Sequence[Transfer], size: int, readings: Iterable[Reading]
    ) -> list[_PathShape]:
        trained = {
            reading.memory: (reading.link_speed, reading.link_width)
            for reading in readings
            if reading.link_speed and reading.link_width
        }
        alone = all(t.engine.owner == transfers[0].engine.owner for t in transfers)
        sized = any(t.engine.kind == "cpu" for t in transfers) and size  # others: all sizes alike
        known, beside = (self._shapes.setdefault((sized, by), {}) for by in (alone, not alone))
        found: list[_PathShape] = []
        for transfer in transfers:
            # Other devices' links do not matter.
            key = transfer, *[trained.get(str(one.place)) for one in transfer.named]
            if key not in known:
                path = self._paths.of(transfer, size, trained, alone=alone)
                uses = tuple(replace(use, link="") for use in path.uses)
                how = (transfer.engine.kind, transfer.scale, transfer.both_ways)
                meets = tuple((by, self._paths.host.knows(node)) for node, by in path.meets)
                nodes = (node for node, _ in path.meets)
                names = (transfer.engine.owner, *(use.link for use in path.uses), *nodes)
                own = numbering()
                form = uses, path.doubts, path.loose, meets, how, *map(own.__getitem__, names)
                each = tuple(map(self._names.__getitem__, own))
                shape = _PathShape(path, self._kinds[form], each)
                known[key] = shape
                if not any(memory.is_host for memory in transfer.memories):
                    beside[key] = known[key]  # devices alone are as fast beside others
            found.append(known[key])
        return found

    def _oversubscribed(
        self, transfers: Sequence[Transfer], paths: Sequence[ExpectedPath]
    ) -> list[str]:
        met = {
            (node, by, transfer.engine.owner)
            for transfer, path in zip(transfers, paths, strict=True)
            for node, by in path.meets
        }
        if len({owner for _, by, owner in met if by == "PCIe"}) > 1:
            return ["how much the host carries for several devices at once is unknown"]
        users = Counter(node for node, _ in {(node, owner) for node, _, owner in met})
        if not all(self._paths.host.knows(node) for node, many in users.items() if many > 1):
            return ["the rate of the host's memory, which these copies share, is unknown"]
        return []

    def _behind_writes(self, paths: Sequence[ExpectedPath]) -> list[str]:
        read = {u.link for u in paths[0].uses if u.direction == "down" and u.payload}
        written = {u.link for p in paths[1:] for u in p.uses if u.direction == "up" and u.payload}
        machine = self._paths.machine
        vendor = machine.known.host.cpu_vendor or machine.host.cpu_model
        relaxed = all(one.relaxed_ordering for one in machine.known.pci if is_accelerator(one))
        if ("AMD" in vendor if vendor else not relaxed) and read & written:
            return ["how a host (AMD's above all) orders answers behind writes is unknown"]
        return []


class _Sharing:
    def __init__(
        self,
        transfers: Sequence[Transfer],
        paths: Sequence[ExpectedPath],
        report: Report,
        definition: Definition | None,
        size: int,
    ) -> None:
        self._transfers, self._paths, self._size = transfers, paths, size
        self._report, self._definition = report, definition
        counted = [transfer.counted(size, report) for transfer in transfers]
        self._bytes = counted[0] if report.is_first else sum(counted)
        self._capacity = capacity(paths)
        self._least = [path.flow(cost=False) for path in paths]
        self._cost = [path.flow(cost=True) for path in paths]

    def estimate(self, doubts: list[str]) -> Expectation:
        theoretical = self._figure(self._least, queued=False)
        achievable = self._figure(self._cost, queued=True)
        without: NotJudged | None = "bound" if doubts else None if achievable else "path"
        if achievable is not None and self._bytes / achievable < START:
            without = "start"
            doubts = [*doubts, "a copy this small depends on the time that it takes to start"]
        because = self._because(theoretical, achievable, doubts)
        achievable = None if doubts else achievable
        measured = achievable is not None and _slowest(self._paths[0].uses, "cost").measured
        expected = Expected(theoretical, achievable, because, measured=measured)
        ways = {u.segment for p in self._paths for u in p.uses if u.payload and u.least}
        meets_itself = any((link, "down") in ways for link, to in ways if to == "up")
        loose = any(path.loose for path in self._paths) or meets_itself
        first = self._transfers[0]
        by_device = first.engine.kind in ("ce", "sm") and first.source.is_device
        differ = len(first.memories) == 2 and first.source.place != first.destination.place
        one_way = len(self._transfers) == 1 and not first.both_ways
        sure = not loose and one_way and by_device and differ
        start = min(use.start for path in self._paths for use in path.uses)
        each: tuple[float | None, ...] = ()
        bounded = all(map(attrgetter("usage"), self._cost))
        if self._definition == "sustained" and bounded and not doubts:
            # A transfer that others slow has no rate of its own.
            both = zip(share(self._cost, self._capacity), self._alone(self._cost), strict=True)
            each = tuple(own if math.isclose(own, alone) else None for own, alone in both)
        most = self._most()
        return Expectation(expected, most, loose, sure, start=start, without=without, each=each)

    def _figure(self, flows: Sequence[Flow], *, queued: bool) -> float | None:
        """Returns the figure of the cell's transfers while they share links, or None if no link
        limits them. If `queued` is true, kernels on one device run one after another."""
        if self._definition == "sustained":
            total = sum(share(flows, self._capacity))
            return None if total == math.inf else total
        works = [
            FlowWork(
                flow,
                transfer.bytes_moved(self._size),
                queue=transfer.engine.owner if queued and transfer.engine.kind == "sm" else None,
            )
            for transfer, flow in zip(self._transfers, flows, strict=True)
        ]
        seconds = [movement.end for movement in movements(works, self._capacity)]
        if not all(seconds):
            return None
        if self._report.is_first:
            return self._bytes / seconds[0]
        if self._report.is_total:
            return self._bytes / max(seconds)
        return sum(work.size / time for work, time in zip(works, seconds, strict=True))

    def _most(self) -> float | None:
        if not all(map(attrgetter("usage"), self._least)):
            return None
        alone = self._alone(self._least)
        if self._report.is_first:
            first = self._transfers[0]
            return alone[0] * self._bytes / first.bytes_moved(self._size)
        if self._definition == "sustained":
            return min(self._most_at(name, alone) for name in self._capacity)
        if not self._report.is_total:
            return sum(alone)
        load = dict.fromkeys(self._capacity, 0.0)
        for flow, transfer in zip(self._least, self._transfers, strict=True):
            for name, part in flow.usage:
                load[name] += part * transfer.bytes_moved(self._size)
        return self._bytes / max(load[name] / rate for name, rate in self._capacity.items())

    def _alone(self, flows: Sequence[Flow]) -> list[float]:
        return [min(self._capacity[n] / part for n, part in flow.usage) for flow in flows]

    def _most_at(self, name: Resource, alone: Sequence[float]) -> float:
        taken = [dict(flow.usage).get(name) for flow in self._least]
        crossing = [part for part in taken if part is not None]
        least = min(crossing, default=math.inf)
        others = [own for own, part in zip(alone, taken, strict=True) if part is None]
        return min(sum(alone), self._capacity[name] / least + sum(others))

    def _because(
        self, theoretical: float | None, achievable: float | None, doubts: Sequence[str]
    ) -> str:
        uses = self._paths[0].uses
        parts: list[str] = []
        if theoretical is not None:
            narrow = _slowest(uses, "least")
            parts.append(f"{narrow.shown} = {figure(narrow.rate)}")
            if not math.isclose(narrow.rate, theoretical, rel_tol=1e-3):
                parts.append(f"{self._manner(narrow)}: {figure(theoretical)}")
        if doubts:
            parts.append(f"how much of it is reachable is unknown: {'; '.join(doubts)}")
        elif achievable is not None:
            costly = _slowest(uses, "cost")
            share = f": {achievable / theoretical:.1%}" if theoretical else ""
            parts.append(f"{costly.why}{share} -> {figure(achievable)}")
        return "; ".join(parts)

    def _manner(self, narrow: Use) -> str:
        several = len(self._transfers)
        if several > 1:
            return f"{several} transfers at once"
        return "read and written" if narrow.shown == "memory" else "of what is reported"


def _slowest(uses: Sequence[Use], taken: Literal["least", "cost"]) -> Use:
    carrying = filter(attrgetter(taken), uses)
    return min(carrying, key=lambda use: use.rate / getattr(use, taken))


def _definition(cell: CellResult | PlannedCell, transfers: Sequence[Transfer]) -> Definition | None:
    if not cell.report.is_total:
        return None
    if isinstance(cell, CellResult) and cell.summary is not None:
        return cell.definition or "span"  # "span" in old files
    if cell.report is Report.SPAN:
        return "span"
    # Kernels on one device run one after another.
    kernels = [t.engine.owner for t in transfers if t.engine.kind == "sm"]
    return "sustained" if len(kernels) == len(set(kernels)) else "serial"


def _equivalent(shapes: Sequence[_PathShape]) -> tuple[int, ...]:
    """Returns a key that is equal if paths differ only in the names of devices and links."""
    names = [name for shape in shapes for name in shape.names] if len(shapes) > 1 else []
    return (*map(attrgetter("kind"), shapes), *map(numbering().__getitem__, names))


def _unknown(reason: str, without: NotJudged = "path") -> Expectation:
    return Expectation(Expected(because=f"unknown: {reason}"), without=without)
