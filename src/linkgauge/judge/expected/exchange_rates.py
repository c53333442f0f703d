"""What a machine's map gives a collective: its exchanges as flows over the links that the machine's
readers found, which share them max-min fairly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from linkgauge.model.documents.scaling import BusbwBound
from linkgauge.model.hardware.map import share
from linkgauge.model.hardware.wiring import Wire
from linkgauge.model.notation import parse_memory
from linkgauge.model.operations.collective import Collective, no_hypercube
from linkgauge.model.operations.exchanges import Phase, pairs_of, phases
from linkgauge.model.transfer import Engine, Transfer

from .link_rates import ExpectedPath, Unknown, capacity, fabric_path, figure, pcie_path
from .routes import Paths

SIZE = 1 << 30
"""Bytes of a call so large that its start counts for nothing."""
SAME = 1.01
"""Rates that differ by less are one."""
LESS = 0.95
"""A rate below this share of another one is a narrower way."""
_KINDS = {
    "pcie": "PCIe",
    "socket": "what joins the host's nodes",
    "fabric": "links of a fabric",
    "bridge": "a bridge",
    "internal": "links to the host",
    "network": "a network",
}
"""Kinds of links, in words."""

Pair = tuple[str, str]


class _Slowest(NamedTuple):
    """The bytes/s on the bus of a whole call, and the pairs that its longest phase waits for."""

    bus: float
    pairs: tuple[Pair, ...]


class ExchangeRates:
    """The rates that a collective should reach over the devices of a machine, whose `paths` these
    are: `bound` is of its bus, whatever the size."""

    def __init__(self, paths: Paths, work: Collective) -> None:
        self._work = work
        self._paths = paths
        self._path = cache(self._find_path)
        self.bound = cache(self._bound)

    def pairs(self, devices: Sequence[str]) -> tuple[Pair, ...]:
        """All that send each other something, each once."""
        found = pairs_of(self._work, len(devices))
        return tuple((devices[one], devices[other]) for one, other in found)

    def is_loose(self, devices: Sequence[str]) -> bool:
        """Whether what is achievable is only known roughly."""
        try:
            return any(self._path(pair).loose for pair in self.pairs(devices))
        except Unknown:
            return True

    def steps(self, ranks: int) -> int:
        """How many wait for each other."""
        return sum(phase.steps for phase in phases(self._work, SIZE, ranks))

    def _phases(self, devices: Sequence[str]) -> Iterator[tuple[Phase, list[Pair]]]:
        for phase in phases(self._work, SIZE, len(devices)):
            yield phase, [(devices[one.source], devices[one.target]) for one in phase.exchanges]

    def _bound(self, devices: tuple[str, ...]) -> BusbwBound:
        """The busbw of these devices. Of one there is none."""
        if len(devices) < 2:
            return BusbwBound(because="one device sends nothing")
        if (why := no_hypercube(self._work.collective, len(devices))) is not None:
            return BusbwBound(because=f"unknown: {why}")
        try:
            slowest = self._slowest(devices, cost=False)
            achievable = self._slowest(devices, cost=True)
        except Unknown as reason:
            return BusbwBound(because=f"unknown: {reason}")
        if slowest is None or achievable is None:
            return BusbwBound(because="unknown: no rate on their way is known")
        pair = achievable.pairs[0]
        path = self._path(pair)
        narrow = max(path.uses, key=lambda use: use.cost / use.rate)
        all_pairs = self.pairs(devices)
        doubts: dict[str, str] = {}  # of each, the first pair that has it
        for one in all_pairs:
            for doubt in self._path(one).doubts:
                doubts.setdefault(doubt, f"{' -> '.join(one)}: {doubt}")
        because = f"{' -> '.join(pair)}: {narrow.shown} = {figure(narrow.rate)}"
        because += (
            f"; achievable unknown: {'; '.join(doubts.values())}" if doubts else f"; {narrow.why}"
        )
        return BusbwBound(
            slowest.bus,
            None if doubts else achievable.bus,
            because,
            tuple(" -> ".join(one) for one in achievable.pairs),
            narrow.link,
        )

    def _slowest(self, devices: Sequence[str], *, cost: bool) -> _Slowest | None:
        """Raises Unknown; None if nothing limits it."""
        taken = longest_phase = 0.0
        late: tuple[Pair, ...] = ()
        for phase, pairs in self._phases(devices):
            paths = [self._path(pair) for pair in pairs]
            rates = share([path.flow(cost=cost) for path in paths], capacity(paths))
            times = [one.bytes / rate for one, rate in zip(phase.exchanges, rates, strict=True)]
            longest = max(times)
            taken += longest
            if longest > longest_phase:
                longest_phase = longest
                both = zip(pairs, times, strict=True)
                late = tuple(pair for pair, time in both if time * SAME >= longest)
        if not late:
            return None
        return _Slowest(self._work.bytes_on_bus(SIZE, len(devices)) / taken, late)

    def _find_path(self, pair: Pair) -> ExpectedPath:
        """Raises Unknown where nothing is known to join the two. Where the way is known, but not
        what it carries, the rates of its links are a bound."""
        source, target = map(parse_memory, pair)
        try:
            return self._paths.of(
                Transfer(source, target, Engine(source, "sm")), SIZE, {}, alone=False
            )
        except Unknown as reason:
            return self._links(pair) + ExpectedPath(doubts=(str(reason),))

    def _links(self, pair: Pair) -> ExpectedPath:
        crossed = self._paths.machine.wiring.route(*pair)
        if crossed is None:
            raise Unknown(f"the link between {pair[0]} and {pair[1]} is unknown")
        path = ExpectedPath()
        for wire, crossing in crossed:
            if wire.bundle is not None:
                path += fabric_path((crossing.begin, crossing.end), wire.bundle, crossing.share)
        lanes = [(w, "up" if c.forward else "down") for w, c in crossed if w.kind == "pcie"]
        return path + pcie_path(lanes, "write", 1.0, True, {})

    def change(self, devices: Sequence[str], before: int, now: int) -> str | None:
        """What became the bottleneck from `before` devices to `now`, in words: pairs whose way is
        narrower, else pairs that first cross a kind of link. None if the map shows neither."""
        here, there = devices[:now], devices[:before]
        try:
            slow, fast = (self._slowest(some, cost=False) for some in (here, there))
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
        """`sim:3 -> sim:4 and sim:7 -> sim:0, over PCIe and what joins the host's nodes`: the kinds
        of links on their way, or those that are not `known` yet."""
        kinds = dict.fromkeys(wire.kind for pair in pairs for wire in self._wires(pair))
        shown = [_KINDS.get(kind, kind) for kind in kinds if kind not in (known or {"bridge"})]
        named = [f"{one} -> {other}" for one, other in pairs]
        wires = [wire for pair in pairs for wire in self._wires(pair)]
        joints = sorted({wire.name for wire in wires if wire.kind == "socket"})
        where = f" ({', '.join(joints)})" if joints else ""
        return f"{_listed(named)}, over {_listed(shown)}{where}"


_MOST = 4
"""Pairs that are named."""


def _listed(names: Sequence[str]) -> str:
    if len(names) > _MOST:
        names = [*names[:_MOST], f"{len(names) - _MOST} more"]
    return " and ".join(names)
