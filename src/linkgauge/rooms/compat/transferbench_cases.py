"""TransferBench's transfers on this machine: in linkgauge's notation, measured, and summed up by
executor."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

import msgspec

from linkgauge.cli.tool import Context, UsageError
from linkgauge.model.machine import Device
from linkgauge.model.memory import NULL, Memory, host
from linkgauge.model.notation import parse_memory
from linkgauge.model.result import CellResult
from linkgauge.model.transfer import Engine, EngineKind, Transfer

from .copy_cells import Meter
from .transferbench_environment import TOOL
from .transferbench_notation import (
    ALIKE,
    EXECUTORS,
    HOST_LETTERS,
    NEAREST,
    AskedTest,
    AskedTransfer,
    End,
)

_KINDS: dict[str, EngineKind] = {"C": "cpu", "G": "sm", "D": "ce"}


class Timing(msgspec.Struct, frozen=True):
    """Seconds of each iteration and the bytes of one; no `times` if nothing was measured."""

    times: tuple[float, ...]
    bytes: int

    @property
    def mean(self) -> float | None:
        return statistics.fmean(self.times) if self.times else None

    @property
    def rate(self) -> float | None:
        """GB/s of the mean time."""
        return None if self.mean is None else self.bytes / self.mean / 1e9

    @property
    def rates(self) -> tuple[float, ...]:
        """GB/s of each iteration."""
        return tuple(self.bytes / time / 1e9 for time in self.times)


class Outcome(msgspec.Struct, frozen=True):
    """A test's transfers with their own times, and the whole of them, first start to last end."""

    test: AskedTest
    timings: tuple[Timing, ...]
    whole: Timing

    def executors(self) -> Iterator[tuple[End, tuple[int, ...], Timing]]:
        """Each executor with the numbers of its transfers, which take as long as the longest."""
        order = list(EXECUTORS)
        every = {transfer.executor for transfer in self.test}
        for executor in sorted(every, key=lambda end: (order.index(end.letter), end.index)):
            own = tuple(n for n, transfer in enumerate(self.test) if transfer.executor == executor)
            timings = [self.timings[number] for number in own]
            times = tuple(map(max, zip(*(timing.times for timing in timings), strict=True)))
            yield executor, own, Timing(times, sum(timing.bytes for timing in timings))


class Bench:
    """A machine's nodes and devices by TransferBench's numbers, and what measures on them."""

    def __init__(self, context: Context) -> None:
        self.nodes = tuple(node.index for node in context.machine.host.nodes)
        cpus = (len(node.cpus) for node in context.machine.host.nodes if node.cpus)
        self.threads = min(cpus, default=1)
        """As many as each node with CPUs has."""
        self.devices: tuple[Device, ...] = context.devices
        self.gauge = Meter(context, TOOL)

    def measure(self, tests: Sequence[AskedTest], size: int) -> tuple[Outcome, ...]:
        """The tests one after the other; transfers without a size of their own are of `size`
        bytes. All the transfers of one call have the same common divisor of their sizes."""
        found: list[Outcome] = []
        for unit, group in _by_unit(tests, size):
            cells = [[self._transfer(t, (t.size or size) // unit) for t in test] for test in group]
            results = self.gauge.measure(cells, size=unit)
            found += [_outcome(*pair, size) for pair in zip(group, results, strict=True)]
        return tuple(found)

    def check(self, test: AskedTest) -> None:
        """Raises UsageError for what is not there."""
        for transfer in test:
            self._transfer(transfer, 1)

    def _transfer(self, asked: AskedTransfer, scale: int) -> Transfer:
        source, destination = (
            NULL if end is None else self._memory(end)
            for end in (asked.source, asked.destination)
        )  # fmt: skip
        return Transfer(source, destination, self._engine(asked), scale)

    def _engine(self, asked: AskedTransfer) -> Engine:
        executor = asked.executor
        kind = _KINDS[executor.letter]
        if kind == "cpu":
            return Engine(host(self._node(executor)), kind, asked.count)
        return Engine(parse_memory(self._device(executor).memory), kind)

    def _memory(self, end: End) -> Memory:
        if (same := ALIKE.get(end.letter)) is not None:
            self.gauge.report(f"{end.letter} is measured as {same}: they do not differ here")
        if end.letter in HOST_LETTERS:
            return host(self._node(end), HOST_LETTERS[end.letter])
        if end.letter == NEAREST:
            return host(self._device(end).near)
        return parse_memory(self._device(end).memory)

    def _node(self, end: End) -> int:
        if end.index >= len(self.nodes):
            raise UsageError(f"no CPU {end.index}: there are 0 to {len(self.nodes) - 1}")
        return self.nodes[end.index]

    def _device(self, end: End) -> Device:
        if not self.devices:
            raise UsageError(f"{end}: there is no GPU")
        if end.index >= len(self.devices):
            raise UsageError(f"no GPU {end.index}: there are 0 to {len(self.devices) - 1}")
        return self.devices[end.index]


def _by_unit(tests: Sequence[AskedTest], size: int) -> Iterator[tuple[int, list[AskedTest]]]:
    """Consecutive tests whose sizes have the same greatest common divisor."""
    group: list[AskedTest] = []
    last = 0
    for test in tests:
        unit = math.gcd(*(transfer.size or size for transfer in test))
        if group and unit != last:
            yield last, group
            group = []
        group.append(test)
        last = unit
    if group:
        yield last, group


def _outcome(test: AskedTest, cell: CellResult, size: int) -> Outcome:
    sizes = [transfer.size or size for transfer in test]
    whole = sum(sizes)
    if cell.status != "pass":
        return Outcome(test, tuple(Timing((), own) for own in sizes), Timing((), whole))
    total = Timing(tuple(whole / rate for rate in cell.samples), whole)
    if len(test) == 1:
        return Outcome(test, (total,), total)
    timings = tuple(
        Timing(tuple(own / rate for rate in part.samples), own)
        for own, part in zip(sizes, cell.parts, strict=True)
    )
    return Outcome(test, timings, total)
