"""A random sample of the pairs of devices, for machines with so many that all pairs take too long.

A pair's place in the draw is a hash of the seed and of the pair's labels. So a seed draws the same
pairs in every benchmark, on every machine with the same devices and in every version of Python, and
the pairs of a smaller sample are among those of a larger one.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from msgspec.structs import replace

from linkgauge.model.errors import InputError
from linkgauge.model.pairs import Drawn, PairSample
from linkgauge.model.transfer import Benchmark, Place


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
