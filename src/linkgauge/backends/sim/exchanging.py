"""How a simulated machine carries out collectives: kernels of senders copy over shared links."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice, zip_longest
from typing import NamedTuple

from msgspec.structs import replace

from linkgauge.backends.number_bytes import combine, decode, encode
from linkgauge.backends.operations.collectives import CollectiveGroup, RankShare
from linkgauge.backends.protocol import Copy, SamplingPolicy, Timing, Wrong
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.hardware.map import Flow, Resource, share
from linkgauge.model.operations.collective import Collective
from linkgauge.model.operations.exchanges import SWITCH, Exchange, Way, phases, ring_orders, ways
from linkgauge.model.transfer import Engine, Transfer

from .memory import WINDOW, SimBuffer, StallSeconds
from .resources import Demand, Resources
from .run_position import Noise, RunPosition


class _Stage(NamedTuple):
    steps: int
    sent: tuple[tuple[Exchange, Demand], ...]

    def seconds(self, rates: Iterable[float], calls: int = 1) -> float:
        starts = max(demand.startup for _, demand in self.sent) * self.steps
        moving = max(each.bytes / rate for (each, _), rate in zip(self.sent, rates, strict=True))
        return starts + moving * calls


class Exchanging:
    """The exchanges of a collective. `copies` has a transfer for each rank. Raises Unsupported if
    no link joins ranks that exchange bytes."""

    def __init__(
        self,
        copies: Sequence[Copy],
        work: Collective,
        resources: Resources,
    ) -> None:
        self._places = [copy.transfer.engine.owner for copy in copies]
        self._resources, self._topology = resources, resources.topology
        self._hosts = {device.name: device.node for device in resources.hardware.devices}
        self._work, self._exchanges = work, resources.hardware.description.collectives
        self._groups = work.groups(len(copies))
        self._size = copies[0].size
        try:
            self._stages = list(map(self._fastest, self._groups))
        except ValueError as error:
            raise Unsupported(str(error)) from error
        self.ranks = tuple(map(self._rank, range(len(copies))))

    def _fastest(self, group: Sequence[int]) -> list[_Stage]:
        # Libraries choose a way without knowing faults: the fastest on healthy links.
        if len(group) < 2:
            (rank,) = group
            own = Exchange(rank, rank, 0.0 if self._work.in_place else float(self._size))
            return [_Stage(1, ((own, self._demand(rank, rank)),))]
        found = [
            [
                _Stage(phase.steps, tuple(self._sent(each, group, way) for each in phase.exchanges))
                for phase in phases(self._work, self._size, len(group), way)
            ]
            for way in self._ways(group)
        ]
        capacity = self._resources.capacity
        return min(found, key=lambda one: sum(s.seconds(share(_flows([s]), capacity)) for s in one))

    def _ways(self, group: Sequence[int]) -> Iterator[Way]:
        how = self._exchanges
        if how.rings is not None or how.algorithm == "tree":
            yield Way(how.algorithm, ring_orders(len(group), how.rings or 1))
            return
        places = [str(self._places[rank]) for rank in group]
        yield from ways(
            self._work,
            len(group),
            lambda one, other: self._topology.links(places[one], places[other]),
            lambda: how.algorithm == "nvls" and self._topology.in_one_fabric(places),
            tuple(self._hosts.get(place) for place in places),
        )

    def _sent(self, each: Exchange, group: Sequence[int], way: Way) -> tuple[Exchange, Demand]:
        # A lower efficiency takes more of each link.
        how = self._exchanges
        part = (how.reductions if way.algorithm == "nvls" else None) or how.efficiency
        source, target = (SWITCH if end == SWITCH else group[end]
                          for end in (each.source, each.target))  # fmt: skip
        demand = self._demand(source, target)
        usage = tuple((name, weight / part) for name, weight in demand.flow.usage)
        demand = replace(demand, flow=replace(demand.flow, usage=usage))
        return Exchange(source, target, each.bytes), demand

    def _demand(self, source: int, target: int) -> Demand:
        if SWITCH in (source, target):
            rank = self._places[source if target == SWITCH else target]
            return self._resources.in_switch(rank, inward=target == SWITCH)
        one, other = self._places[source], self._places[target]
        if self._topology.route(str(one), str(other)) is None:
            raise Unsupported(f"no link leads from {one} to {other}")
        return self._resources.demand(Transfer(one, other, Engine(one, "sm")), 0)

    def _rank(self, number: int) -> Demand:
        own = self._demand(number, number)
        coming = [demand for each, demand in self._all() if each.target == number]
        others = {str(place) for place in self._places} - {str(self._places[number])}
        touched = own.touched.union(*(demand.touched for demand in coming)) - others
        jitter = max((demand.jitter for demand in coming), default=0.0)
        return replace(own, touched=touched, jitter=jitter)

    def _all(self) -> Iterator[tuple[Exchange, Demand]]:
        for stage in chain.from_iterable(self._stages):
            yield from stage.sent

    @property
    def demands(self) -> tuple[Demand, ...]:
        return (*(demand for _, demand in self._all()), *self.ranks)

    def seconds(self, capacity: Mapping[Resource, float]) -> tuple[float, ...]:
        """Returns each rank's seconds, with startups. The ranks of a group wait for the slowest."""
        taken = dict.fromkeys(range(len(self._places)), 0.0)
        for stages in zip_longest(*self._stages):
            present = {at: stage for at, stage in enumerate(stages) if stage is not None}
            rates = iter(share(_flows(present.values()), capacity))
            for at, stage in present.items():
                own = islice(rates, len(stage.sent))
                seconds = stage.seconds(own, self._work.aggregated)
                taken |= {rank: taken[rank] + seconds for rank in self._groups[at]}
        return tuple(taken.values())


def _flows(stages: Iterable[_Stage]) -> list[Flow]:
    return [demand.flow for stage in stages for _, demand in stage.sent]


# The bytes of a collective: numbers are really exchanged and computed.

_MOST_RANKS = 1 << 12
"""A number larger than that of any machine's ranks. It separates the random numbers of ranks."""


class SimCollective(CollectiveGroup):
    """A simulated collective operation. `seconds` are the times of an iteration on the ranks, and
    `sigmas` the noise of these times. `stall` delays ranks. `flip` flips bits of received data."""

    def __init__(
        self,
        copies: Sequence[Copy],
        work: Collective,
        seconds: Sequence[float],
        sigmas: Sequence[Noise],
        course: RunPosition,
        stall: StallSeconds | None,
        flip: Callable[[], None],
    ) -> None:
        super().__init__(work)
        self._copies = copies
        self._groups = work.groups(len(copies))
        self._seconds = seconds
        self._sigmas = sigmas
        self._course = course
        self._stall = stall
        self._flip = flip
        self.policy = SamplingPolicy(steps=work.aggregated)

    def wait(self) -> Timing:
        loops, batches = self.pass_gate()
        course = self._course
        taken = [
            self._seconds[rank] * loops * batches * course.noise(rank, self._sigmas[rank]) + last
            for rank, (_, last) in enumerate(self._delays(course.sample))
        ]
        course.pass_by(max(taken))
        progress = tuple(
            (0.0, *(own * batch / batches for batch in range(1, batches)), own) for own in taken
        )
        return Timing(tuple(taken), max(taken), (None,) * len(taken), progress)

    def _delays(self, sample: int) -> list[tuple[float, float]]:
        ranks, stall = range(len(self._copies)), self._stall
        own = [stall(rank, sample) if stall is not None else 0.0 for rank in ranks]
        last = {rank: max(own[one] for one in group) for group in self._groups for rank in group}
        return [(own[rank], last[rank]) for rank in ranks]

    def iterations(self, count: int) -> tuple[tuple[float, ...], ...]:
        """Returns each rank's seconds of each iteration. A rank that starts late waits less."""
        found: list[list[float]] = [[] for _ in self._copies]
        for number in range(count):
            for rank, (late, last) in enumerate(self._delays(number)):
                noise = self._course.noise((number + 1) * _MOST_RANKS + rank, self._sigmas[rank])
                found[rank].append(self._seconds[rank] * noise + last - late)
        return tuple(map(tuple, found))

    def fill(self) -> None:
        for group in self._groups:
            if any(self._copies[rank].destination is None for rank in group):
                raise BackendError("check", "no buffers")
            for part in self._shares(group):
                _fill(*part, self._seed)

    def carry_out(self, loops: int) -> None:
        for group in self._groups:
            _carry_out(self._work, self._shares(group))
        self._flip()

    def found(self) -> Iterator[Wrong]:
        for group in self._groups:
            known: _Compared = {}
            for place, part in zip(group, self._shares(group), strict=True):
                count, first = _wrong(*part, self._seed, known)
                yield Wrong(count, place, first)

    def _shares(self, group: Sequence[int]) -> list[tuple[Copy, RankShare]]:
        copies = [self._copies[place] for place in group]
        return [
            (copy, RankShare(self._work, rank, len(group), min(copy.size, WINDOW)))
            for rank, copy in enumerate(copies)
        ]


def _fill(copy: Copy, share: RankShare, seed: int) -> None:
    received = _buffer(copy)
    received.window = bytes(len(received.window))
    received.flipped = {}
    _sent(copy).put(share.sends_at, _data(share, seed))


# Ranks send the same data at each repetition, whatever the size of the buffer beyond its window.
@lru_cache(maxsize=1 << 8)
def _data(share: RankShare, seed: int) -> bytes:
    data = bytearray(share.counts.send * share.work.number.bytes)
    share.fill(_address(data), seed, _cpus())
    return bytes(data)


def _carry_out(work: Collective, parts: Sequence[tuple[Copy, RankShare]]) -> None:
    each = work.number.bytes
    sent = [
        bytes(_sent(copy).window[part.sends_at :][: part.counts.send * each])
        for copy, part in parts
    ]
    reduced = b""
    if work.reduction is not None:
        numbers = [decode(work.type, own) for own in sent]
        reduced = encode(work.type, combine(work.reduction, numbers))
    for copy, part in parts:
        origin, counts = part.origin, part.counts
        if origin is None:
            continue
        if work.reduction is not None:
            data = reduced[origin.base * each : (origin.base + counts.receive) * each]
        else:
            chunk = min(origin.chunk, counts.receive)
            own = slice(origin.base * each, (origin.base + chunk) * each)
            many = counts.receive // chunk if chunk else 0
            data = b"".join(sent[origin.first + place][own] for place in range(many))
        _buffer(copy).put(part.receives_at, data)


_Compared = dict[Hashable, tuple[int, int]]
"""What was found wrong in data that ranks received. All ranks of a reduction receive the same."""


def _wrong(copy: Copy, share: RankShare, seed: int, known: _Compared) -> tuple[int, int]:
    if share.origin is None:
        return 0, 0
    begin, window = share.receives_at, bytes(_buffer(copy).window)
    received = window, share.origin, share.counts, begin
    if received not in known:
        data = bytearray(window)
        known[received] = share.wrong(_address(data) + begin, seed, _cpus())
    count, first = known[received]
    more = _altered(copy, share) if not begin else []
    return count + len(more), first if count or not more else more[0]


def _altered(copy: Copy, share: RankShare) -> list[int]:
    each, buffer = share.work.number.bytes, _buffer(copy)
    done = share.counts.receive * each
    all_bytes = share.work.counts(copy.size, share.ranks).receive * each
    near = range(done, min(len(buffer.window), all_bytes))
    flipped = [at for at in near if buffer.window[at]] if not share.work.in_place else []
    flipped += [at for at in buffer.flipped if at < all_bytes]
    return sorted({at // each for at in flipped})


def _sent(copy: Copy) -> SimBuffer:
    return copy.source if isinstance(copy.source, SimBuffer) else _buffer(copy)


def _address(window: bytearray) -> int:
    return ctypes.addressof((ctypes.c_uint8 * len(window)).from_buffer(window))


def _buffer(copy: Copy) -> SimBuffer:
    if not isinstance(copy.destination, SimBuffer):
        raise BackendError("buffer", f"{copy.transfer} uses no buffers of this machine")
    return copy.destination


def _cpus() -> tuple[int, ...]:
    return (min(os.sched_getaffinity(0)),)
