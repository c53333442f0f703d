"""Which pairs of devices are measured: all in disjoint pairs at the same time, as in a
round-robin tournament, or a random sample of so many that all take too long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256

from msgspec.structs import replace

from linkgauge.model.errors import InputError
from linkgauge.model.pairs import Drawn, PairSample
from linkgauge.model.transfer import Benchmark, Place


def tournament(players: Sequence[str]) -> dict[tuple[str, str], int]:
    """A round for each ordered pair, so that no player meets two others in one round.

    N − 1 rounds of disjoint pairs (N for an odd number). Each round is played twice, once per
    direction, hence twice as many numbers. Pairs that share no player and have the same round
    number can be measured at once.
    """
    rounds: dict[tuple[str, str], int] = {}
    meetings = _exchanges if len(players).bit_count() == 1 else _circle
    for number, met in enumerate(meetings(players)):
        for one, other in met:
            rounds[one, other] = 2 * number
            rounds[other, one] = 2 * number + 1
    return rounds


_Met = Iterator[tuple[str, str]]


def _exchanges(players: Sequence[str]) -> Iterator[_Met]:
    """Of a power of two: in each round, those whose numbers differ in the same bits. Neighbours
    then meet neighbours, and what groups of them share is shared evenly."""
    for bits in range(1, len(players)):
        yield ((one, players[at ^ bits]) for at, one in enumerate(players) if at < at ^ bits)


def _circle(players: Sequence[str]) -> Iterator[_Met]:
    """Of any number, by the circle method: one player stays, the others move on by one place."""
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
    """The benchmarks, with the cells of drawn pairs alone where there are more pairs. Cells of a
    device with itself stay. Raises InputError if no benchmark is of pairs."""
    if not any(benchmark.pairs for benchmark in benchmarks):
        raise InputError("--sample-pairs has no effect: no benchmark measures pairs of devices")
    return tuple(_drawn(one, sample) if one.pairs else one for one in benchmarks)


def _drawn(benchmark: Benchmark, sample: PairSample) -> Benchmark:
    places = {cell.place for cell in benchmark.cells if _is_pair(cell.place)}
    if len(places) <= sample.count:
        return benchmark
    chosen = set(sorted(places, key=lambda place: _rank(place, sample.seed))[: sample.count])
    cells = (c for c in benchmark.cells if c.place in chosen or not _is_pair(c.place))
    drawn = Drawn(sample.count, len(places), sample.seed)
    return replace(benchmark, cells=tuple(cells), drawn=drawn)


def _is_pair(place: Place) -> bool:
    return place.row != place.column


def _rank(place: Place, seed: int) -> bytes:
    return sha256(f"{seed} {place.row} {place.column}".encode()).digest()
