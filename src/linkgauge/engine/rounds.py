"""Chooses sizes, some pairs of very many, and rounds of pairs that share no device."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from hashlib import sha256

from msgspec.structs import replace

from linkgauge.backends import ACROSS_RANKS
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.machine import Machine, Node
from linkgauge.model.transfer import Benchmark, PairSample, Place, SampledPairs


def tournament(players: Sequence[str]) -> dict[tuple[str, str], int]:
    """Returns the number of the round in which each ordered pair of players meets. The pairs of a
    round share no player, so that they can run at the same time."""
    rounds: dict[tuple[str, str], int] = {}
    meetings = _exchanges if len(players).bit_count() == 1 else _circle
    for number, met in enumerate(meetings(players)):
        for one, other in met:
            rounds[one, other] = 2 * number
            rounds[other, one] = 2 * number + 1
    return rounds


_Met = Iterator[tuple[str, str]]


def _exchanges(players: Sequence[str]) -> Iterator[_Met]:
    """Yields the rounds of 2^n players. A round yields the pairs of players who meet."""
    for bits in range(1, len(players)):
        yield ((one, players[at ^ bits]) for at, one in enumerate(players) if at < at ^ bits)


def _circle(players: Sequence[str]) -> Iterator[_Met]:
    """Yields rounds by the circle method: one player stays, the others move on by one."""
    circle: list[str | None] = list(players)
    if len(circle) % 2:
        circle.append(None)
    for _ in range(len(circle) - 1):
        met = zip(circle[: len(circle) // 2], circle[::-1], strict=False)
        yield ((one, other) for one, other in met if one is not None and other is not None)
        circle.insert(1, circle.pop())


# A random sample of the pairs of devices, for machines with so many that all pairs take too long.
#
# A pair's place in the draw is a hash of the seed and of the pair's labels. So a seed draws the
# same pairs in every benchmark, on every machine with the same devices and in every version of
# Python, and the pairs of a smaller sample are among those of a larger one.


def draw(benchmarks: Sequence[Benchmark], sample: PairSample) -> tuple[Benchmark, ...]:
    """Samples pairs of devices. Cells within one device stay. Raises InputError without pairs."""
    if not any(benchmark.pairs for benchmark in benchmarks):
        raise InputError("--sample-pairs has no effect: no benchmark measures pairs of devices")
    return tuple(_sampled(one, sample) if one.pairs else one for one in benchmarks)


def _sampled(benchmark: Benchmark, sample: PairSample) -> Benchmark:
    places = {cell.place for cell in benchmark.cells if _is_pair(cell.place)}
    if len(places) <= sample.count:
        return benchmark
    chosen = set(sorted(places, key=lambda place: _rank(place, sample.seed))[: sample.count])
    cells = (c for c in benchmark.cells if c.place in chosen or not _is_pair(c.place))
    sampled = SampledPairs(sample.count, len(places), sample.seed)
    return replace(benchmark, cells=tuple(cells), sampled=sampled)


def only(benchmarks: Sequence[Benchmark], pairs: Collection[Place]) -> tuple[Benchmark, ...]:
    """Limits benchmarks of pairs to these pairs of devices. Other benchmarks stay as they are."""
    return tuple(
        replace(one, cells=tuple(cell for cell in one.cells if cell.place in pairs))
        if one.pairs
        else one
        for one in benchmarks
    )


def _is_pair(place: Place) -> bool:
    return place.row != place.column


def _rank(place: Place, seed: int) -> bytes:
    return sha256(f"{seed} {place.row} {place.column}".encode()).digest()


# Default transfer sizes of a benchmark: the profile's, or what it takes to measure memory instead
# of caches.

_MI = 1 << 20

ENLARGED = ("quick", "standard", "vm")
"""The profiles with one size, which must measure memory and not caches. Other profiles sweep over
sizes."""
TIMES = 4
"""The factor by which a buffer exceeds the caches of its threads (STREAM's rule)."""
ARRAY = 64 * _MI
"""The least size of STREAM's arrays, if memory suffices. Sizes beyond the caches are enough."""
_UNLISTED = 16 * _MI
"""The part of a last-level cache that is assumed for a core of an unknown processor in a virtual
machine, which shows the whole cache."""
SHARE = 8
"""A buffer takes at most one part in this many of the available memory, because a cell has two or
three buffers."""


def part_of_cache(machine: Machine, node: Node) -> int:
    """Returns the bytes of last-level cache for a node's CPUs, which may share it with others."""
    whole = node.last_level_cache or 0
    details = machine.known.host
    last = max(details.caches, key=lambda one: (one.level, one.shared_by), default=None)
    part = whole
    if last is not None:
        part = min(whole, last.size * len(node.cpus) // max(last.shared_by, 1))
    if machine.is_virtual:  # which does not show how many CPUs share a cache
        from linkgauge.model.hardware.cpu_families import family_of

        family = family_of(details.cpu_code)
        of_core = family.cache_per_core if family is not None else None
        part = min(part, (of_core or _UNLISTED) * len(node.cpus))
    return part


def size_of(benchmark: Benchmark, size: int, machine: Machine, profile: str | None) -> int:
    """Returns a benchmark's size in bytes: its own or else `size`. The single size of a `profile`
    (None: the user gave the size) is adapted to the host's caches."""
    if benchmark.size is not None:
        return benchmark.size
    nodes = machine.host.nodes
    if benchmark.backend == ACROSS_RANKS and profile in ENLARGED:
        parts = [part_of_cache(machine, node) for node in nodes]
        # As small as possible, but larger than the caches.
        return min(size, max(-(-TIMES * max(parts, default=0) // _MI) * _MI, ARRAY))
    if benchmark.backend != "host" or profile not in ENLARGED:
        return size
    caches = max((node.last_level_cache or 0 for node in nodes), default=0)
    free = [node.memory_available for node in nodes if node.memory_available is not None]
    wanted = -(-TIMES * caches // _MI) * _MI
    most = min(free, default=wanted * SHARE) // SHARE
    enough = min(wanted, most // _MI * _MI)  # exceeds the caches, if memory allows
    if any(cell.does.array for cell in benchmark.cells):
        return max(enough, min(size, ARRAY, max(_MI, most // _MI * _MI)))
    return max(size, enough)


def title_of(benchmark: Benchmark, size: int, machine: Machine, profile: str | None) -> str:
    """Returns a table's title, which says if a profile's size fits in the host's caches."""
    caches = min((node.last_level_cache or 0 for node in machine.host.nodes), default=0)
    swept = benchmark.size is None and profile is not None
    cached = benchmark.backend == "host" and swept and size < caches
    return f"{benchmark.title}, of the caches" if cached else benchmark.title
