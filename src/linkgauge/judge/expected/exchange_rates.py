"""Computes the rates of collectives, whose exchanges share links by max-min fairness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from msgspec.structs import replace

from linkgauge.model.documents.scaling import BusbwBound
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.bundles import LinkBundle
from linkgauge.model.hardware.map import share
from linkgauge.model.hardware.wiring import Wire
from linkgauge.model.names import and_all
from linkgauge.model.notation import parse_memory
from linkgauge.model.notes import Note, Remark
from linkgauge.model.operations.collective import Collective, no_hypercube
from linkgauge.model.operations.exchanges import Phase, Way, pairs_of, phases, ways
from linkgauge.model.transfer import Engine, Transfer

from .healthy import Bounds, bounds_of
from .link_rates import LOOSE, ExpectedPath, Unknown, capacity, fabric_path, figure, pcie_path
from .routes import Paths, lanes_of

SIZE = 1 << 30
"""The bytes of a call that is so large that its start does not matter."""
SAME = 1.01
LESS = 0.95
_KINDS = {
    "pcie": "PCIe",
    "socket": "the link between the host's nodes",
    "fabric": "links of a fabric",
    "bridge": "a bridge",
    "internal": "links to the host",
    "network": "a network",
}

_REDUCED = {4: 0.85}
_REDUCED_SINCE = 0.74
"""The share of a link's rate (as kernels reach it) that reductions in its switch reach, by the
generation of NVLink; this value applies from the fifth generation on. Source: NCCL's own model
(`nvlsEfficiency`, src/graph/tuning.cc)."""
_BUSBW = "; × 2(N - 1) ÷ (N + 1) as busbw of N devices"
SWITCHES = "switch"
SWITCHED_OFF = Remark("NCCL_NVLS_ENABLE=0")
_LIBRARIES = ("NCCL ", "RCCL ")
Pair = tuple[str, str]


class _Slowest(NamedTuple):
    """A collective's bus bandwidth in bytes/s, and the pairs that finish its longest phase last."""

    bus: float
    pairs: tuple[Pair, ...]


class ExchangeRates:
    """Computes the bus bandwidth of large calls. `notes` name the library and its settings."""

    def __init__(self, paths: Paths, work: Collective, notes: Sequence[Note] = ()) -> None:
        self._work = work
        self._paths = paths
        self._reduces = SWITCHED_OFF not in notes
        # A simulated machine takes the fastest way, as these libraries do.
        self._is_known = paths.machine.simulated is not None or any(
            isinstance(note, Remark) and note.text.startswith(_LIBRARIES) for note in notes
        )
        self._path = cache(self._find_path)
        self.bound = cache(self._bound)

    def pairs(self, devices: Sequence[str]) -> tuple[Pair, ...]:
        found = pairs_of(self._work, len(devices))
        return tuple((devices[one], devices[other]) for one, other in found)

    def bounds(self, devices: tuple[str, ...]) -> Bounds:
        """Returns bounds for verdicts; wide bounds for links without known healthy figures."""
        bound, operation = self.bound(devices), self._work.collective
        rings = bound.least / bound.achievable if bound.least and bound.achievable else 1.0
        for pair in self.pairs(devices):
            joined = self._paths.machine.wiring.bundles(*pair).values()
            known = (one.nvlink or one.kind.lower().startswith("xgmi") for one in joined)
            if not joined or not all(known):
                return Bounds(LOOSE * rings, LOOSE, 0, 0)
        ring = bounds_of(operation, "ring", len(devices))
        if bound.reduced is None or bound.achievable != bound.reduced:
            return ring._replace(low=ring.low * rings)
        own = bounds_of(operation, "nvls", len(devices))
        return own._replace(low=min(own.low, ring.low * rings))

    def steps(self, ranks: int) -> int:
        return sum(phase.steps for phase in phases(self._work, SIZE, ranks))

    def _phases(self, devices: Sequence[str], way: Way) -> Iterator[tuple[Phase, list[Pair]]]:
        named = (*devices, SWITCHES)  # the last is the SWITCH, -1
        for phase in phases(self._work, SIZE, len(devices), way):
            yield phase, [(named[one.source], named[one.target]) for one in phase.exchanges]

    def _ways(self, devices: Sequence[str]) -> Iterator[Way]:
        def links(one: int, other: int) -> int:
            ends = devices[one], devices[other]
            bundle = self._paths.machine.wiring.bundles(*ends).get(ends)
            return bundle.count if bundle is not None else 0

        known = self._paths.machine.by_memory
        hosts = tuple(known[one].node if one in known else None for one in devices)
        return ways(self._work, len(devices), links, lambda: bool(self.reducing(devices)), hosts)

    def reducing(self, devices: Sequence[str]) -> set[str]:
        """Returns the switches that join every pair and can compute sums, or an empty set."""
        wiring, found = self._paths.machine.wiring, set[str]()
        for one, other in self.pairs(devices):
            joined = wiring.bundles(one, other)
            if not joined or not all(
                "switch" in ends and (bundle.nvlink or 0) >= min(_REDUCED)
                for ends, bundle in joined.items()
            ):
                return set()
            crossed = wiring.route(one, other) or ()
            found |= {crossing.end for _, crossing in crossed} & wiring.switches
        return found

    def _bound(self, devices: tuple[str, ...]) -> BusbwBound:
        if len(devices) < 2:
            return BusbwBound(because="one device sends nothing")
        if (why := no_hypercube(self._work.collective, len(devices))) is not None:
            return BusbwBound(because=f"unknown: {why}")
        try:
            reached = [
                (way, found)
                for way in self._ways(devices)
                if (found := self._slowest(devices, way, cost=True)) is not None
            ]
            rings = [one for one in reached if one[0].algorithm == "ring"]
            way, best = max(reached if self._reduces else rings, key=lambda one: one[1].bus)
            slowest = self._slowest(devices, way, cost=False)
        except Unknown as reason:
            return BusbwBound(because=f"unknown: {reason}")
        except ValueError:
            return BusbwBound(because="unknown: no rate on the way is known")
        narrow = max(self._path(best.pairs[0]).uses, key=lambda use: use.cost / use.rate)
        because = f"{_named(way)}{_shown(best.pairs[0])}: {narrow.shown} = {figure(narrow.rate)}"
        if slowest is not None and slowest.bus < _SHARED * narrow.rate:
            because += f"; flows that share links leave a busbw of {figure(slowest.bus)}"
        doubts = self._doubts(devices, way)
        reach = f"how much of it is reachable is unknown: {'; '.join(doubts)}"
        because += f"; {reach if doubts else narrow.why}"
        most = max(rings, key=lambda one: one[1].bus)
        sure = most if self._is_known else rings[0]
        reduced = max(found.bus for _, found in reached)
        return BusbwBound(
            slowest and slowest.bus,
            None if doubts else best.bus,
            because,
            tuple(map(_shown, best.pairs)),
            narrow.link,
            None if self._doubts(devices, sure[0]) else sure[1].bus,
            reduced if reduced > most[1].bus else None,
        )

    def _doubts(self, devices: Sequence[str], way: Way) -> list[str]:
        pairs = [pair for _, own in self._phases(devices, way) for pair in own]
        doubts = grouped((doubt, pair) for pair in pairs for doubt in self._path(pair).doubts)
        return [f"{_shown(own[0])}: {doubt}" for doubt, own in doubts.items()]

    def _slowest(self, devices: Sequence[str], way: Way, *, cost: bool) -> _Slowest | None:
        """Returns an algorithm's bandwidth and slowest pairs, with overhead if `cost` is true.
        Returns None if no link limits the algorithm. Raises Unknown for an unknown path."""
        taken = longest_phase = 0.0
        late: tuple[Pair, ...] = ()
        for phase, pairs in self._phases(devices, way):
            paths = [self._path(pair) for pair in pairs]
            rates = share([path.flow(cost=cost) for path in paths], capacity(paths))
            moved = [one.bytes / rate for one, rate in zip(phase.exchanges, rates, strict=True)]
            taken += (longest := max(moved))
            if longest > longest_phase:
                longest_phase, both = longest, zip(pairs, moved, strict=True)
                late = tuple(pair for pair, time in both if time * SAME >= longest)
        if not late:
            return None
        return _Slowest(self._work.bytes_on_bus(SIZE, len(devices)) / taken, late)

    def _find_path(self, pair: Pair) -> ExpectedPath:
        """Returns the path between two devices: an upper bound if only its links are known."""
        if SWITCHES in pair:
            return self._of_switch(pair)
        source, target = map(parse_memory, pair)
        try:
            return self._paths.of(
                Transfer(source, target, Engine(source, "sm")), SIZE, {}, alone=False
            )
        except Unknown as reason:
            return self._links(pair) + ExpectedPath(doubts=(str(reason),))

    def _of_switch(self, pair: Pair) -> ExpectedPath:
        wiring, own = self._paths.machine.wiring, {*pair} - {SWITCHES}
        ends = ((wire.bundle, {wire.a, wire.b}) for wire in wiring.wires if wire.bundle)
        joined = LinkBundle.joined([one for one, at in ends if own <= at and at & wiring.switches])
        path = fabric_path(pair, joined, 1.0, "write", kernel=True)
        part = _REDUCED.get(joined.nvlink or 0, _REDUCED_SINCE)
        left = f"; {part:.0%} of that is left while summing{_BUSBW}"
        return replace(path, uses=tuple(
            replace(use, cost=use.cost / part, why=use.why + left)
            for use in path.uses
        ))  # fmt: skip

    def _links(self, pair: Pair) -> ExpectedPath:
        crossed = self._paths.machine.wiring.route(*pair)
        if crossed is None:
            raise Unknown(f"the link between {pair[0]} and {pair[1]} is unknown")
        path = ExpectedPath()
        for wire, crossing in crossed:
            if wire.bundle is not None:
                ends = crossing.begin, crossing.end
                path += fabric_path(ends, wire.bundle, crossing.share, "write", kernel=True)
        return path + pcie_path(lanes_of(crossed), "write", 1.0, True, {})

    def change(self, devices: Sequence[str], before: int, now: int) -> str | None:
        """Returns why `now` devices scale worse than `before`: the pairs with a narrower path, or
        the new pairs over another kind of link. None if the links show no reason."""
        here, there = devices[:now], devices[:before]
        try:
            slow, fast = (self._slowest(some, Way(), cost=False) for some in (here, there))
        except Unknown:
            slow = fast = None
        if slow is not None and fast is not None and slow.bus < LESS * fast.bus:
            return self._over(slow.pairs)
        known = {wire.kind for pair in self.pairs(there) for wire in self._wires(pair)}
        new = [p for p in self.pairs(here) if {wire.kind for wire in self._wires(p)} - known]
        return self._over(new, known) if new else None

    def _wires(self, pair: Pair) -> list[Wire]:
        return [wire for wire, _ in self._paths.machine.wiring.route(*pair) or ()]

    def _over(self, pairs: Sequence[Pair], known: set[str] | None = None) -> str:
        wires = [wire for pair in pairs for wire in self._wires(pair)]
        kinds = dict.fromkeys(wire.kind for wire in wires)
        shown = [_KINDS.get(kind, kind) for kind in kinds if kind not in (known or {"bridge"})]
        joints = sorted({wire.name for wire in wires if wire.kind == "socket"})
        where = f" ({', '.join(joints)})" if joints else ""
        return f"{_listed([*map(_shown, pairs)])}, over {_listed(shown)}{where}"


def _shown(pair: Pair) -> str:
    return " -> ".join(pair)


def _named(way: Way) -> str:
    if way.algorithm == "nvls":
        return "reduced in the switch (NVLS), "
    return f"{len(way.orders)} rings, " if way.orders else ""


_MOST = 4
_SHARED = 0.99
"""Below this share of a link's rate, a bound is due to what shares the link."""


def _listed(names: Sequence[str]) -> str:
    if len(names) > _MOST:
        names = [*names[:_MOST], f"{len(names) - _MOST} more"]
    return and_all(names)
