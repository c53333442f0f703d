"""Compare linkgauge's latencies of memory and of cache lines with loops of the check's own in C.

A plain pointer chase goes over one full random cycle in the same pages, of 4 KiB and huge ones; a
ball between two CPUs is returned by compare-and-swap. Both sides take turns; a ratio is of two
neighbours in time, theirs to ours. Repeatability is half the range of the middle half of a side's
own figures. Needs gcc, and linkgauge on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median, quantiles

import msgspec

from linkgauge import _native
from linkgauge.backends.host import HostBackend
from linkgauge.backends.host_chase import HOPS
from linkgauge.backends.protocol import Copy, Group, run
from linkgauge.machine.host import read_host
from linkgauge.model.errors import LinkgaugeError
from linkgauge.model.notation import parse_transfer
from linkgauge.model.stats.summary import median_interval
from references import compiled

SOURCE = Path(__file__).with_name("latency_references.c")
FLAGS = ("-O3", "-march=native", "-pthread", "-shared", "-fPIC")
ROUNDS = 15
PASSES = {"chase": 3, "line": 20}
SMALLEST, TIMES = 16 << 20, 4
"""Bytes of the smaller chase, and multiple of the caches of the larger one."""
TRIPS = 20_000
BARS = {"chase": 0.05, "line": 0.25}
"""Largest distance of the ratio's median from 1."""


Side = Callable[[], float]
"""Seconds of an access, measured once."""


class Outcome(msgspec.Struct, frozen=True):
    """A case: seconds of an access by both sides, the ratio of theirs to ours, and how far each
    side's own figures scatter, relative."""

    name: str
    bar: float
    ours: float
    theirs: float
    ratio: float
    low: float
    high: float
    scatter: tuple[float, float]

    @property
    def holds(self) -> bool:
        return abs(self.ratio - 1) <= self.bar

    def __str__(self) -> str:
        mine, other = self.scatter
        return (
            f"{self.name:<28}{self.ours * 1e9:9.2f} ±{mine:5.1%}{self.theirs * 1e9:9.2f} "
            f"±{other:5.1%}   {self.ratio:.3f} [{self.low:.3f}, {self.high:.3f}]  "
            f"{1 - self.bar:.2f} … {1 + self.bar:.2f}{'' if self.holds else '  MISSED'}"
        )


def references(folder: Path) -> ctypes.CDLL:
    """The loops in C. Raises RuntimeError if they cannot be compiled."""
    found = compiled(SOURCE, FLAGS, folder)
    found.make_cycle.restype = ctypes.c_uint64
    found.chase.restype = found.ping_pong.restype = ctypes.c_double
    return found


def compare(name: str, kind: str, rounds: int, sides: tuple[Side, Side]) -> Outcome:
    """Both sides in turns, the first of a pair now one and now the other; the fastest of a round's
    passes counts, because what disturbs one is of neither side."""
    taken: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        passes: tuple[list[float], list[float]] = ([], [])
        for _ in range(PASSES[kind]):
            for side in (0, 1) if number % 2 else (1, 0):
                passes[side].append(sides[side]())
        for own, all_own in zip(passes, taken, strict=True):
            all_own.append(min(own))
    ours, theirs = taken
    ratios = sorted(other / own for own, other in zip(ours, theirs, strict=True))
    low, high = median_interval(ratios) or (ratios[0], ratios[-1])
    scattered = scatter(ours), scatter(theirs)
    return Outcome(
        name, BARS[kind], median(ours), median(theirs), median(ratios), low, high, scattered
    )


def scatter(figures: list[float]) -> float:
    lower, middle, upper = quantiles(figures, n=4)
    return (upper - lower) / 2 / middle


def by_group(group: Group, loops: int, steps: int) -> Side:
    def once() -> float:
        return run(group, loops).seconds[0] / (loops * steps)

    return once


def chases(library: ctypes.CDLL, backend: HostBackend, rounds: int) -> Iterator[Outcome]:
    """Chases of both sizes, in pages of both kinds. The references' pointers lie in the lines of
    linkgauge's own."""
    node = next(node for node in read_host().nodes if node.cpus)
    large = TIMES * _native.last_level_cache(node.cpus[:1])
    for size, pages in product(dict.fromkeys((SMALLEST, max(SMALLEST, large))), ("base", "huge")):
        transfer = parse_transfer(f"host:{node.index}/{pages} -> null by cpu*1")
        buffer = backend.allocate(transfer.source, size, transfer.engine)
        count = size // _native.LINK
        of_c = ctypes.c_void_p(buffer.address), ctypes.c_uint64(count), node.cpus[0]
        copy = Copy(transfer, buffer, None, size, seed=1)
        with closing(backend.prepare([copy], "chase")) as group:
            if library.make_cycle(of_c[0], ctypes.c_size_t(size)) != count:
                raise RuntimeError("the reference has no cycle over all lines")
            ours = by_group(group, count // HOPS, HOPS)
            theirs = partial(lambda given, count: library.chase(*given) / count, of_c, count)
            name = f"chase, {size >> 20} MiB, {pages} pages"
            yield compare(name, "chase", rounds, (ours, theirs))
        buffer.free()


def lines(library: ctypes.CDLL, backend: HostBackend, rounds: int) -> Iterator[Outcome]:
    """A cache line between the first two CPUs."""
    cpus = [cpu for node in read_host().nodes for cpu in node.cpus]
    if len(cpus) < 2:
        print("cache line: skipped, needs two CPUs")
        return
    first, second = cpus[:2]
    transfer = parse_transfer(f"cpu:{first} -> cpu:{second} by cpu")
    with closing(backend.prepare([Copy(transfer, None, None, 64, 0)], "ping-pong")) as group:
        of_c = first, second, ctypes.c_uint64(TRIPS)
        theirs = partial(lambda given: library.ping_pong(*given) / TRIPS / 2, of_c)
        name = f"cache line, CPU {first} and {second}"
        yield compare(name, "line", rounds, (by_group(group, TRIPS, 2), theirs))


def main() -> int:
    """Prints each case; 1 if one misses its bar or cannot be measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="pairs of each case")
    rounds = parser.parse_args().rounds
    outcomes = []
    print(
        "latency                       ours (ns)         C (ns)            C : ours [95 %]      bar"
    )
    try:
        with tempfile.TemporaryDirectory() as folder:
            library = references(Path(folder))
            backend = HostBackend(read_host().nodes)
            cases = (chases(library, backend, rounds), lines(library, backend, rounds))
            for outcome in (outcome for case in cases for outcome in case):
                outcomes.append(outcome)
                print(outcome, flush=True)
    except (RuntimeError, OSError, LinkgaugeError) as error:
        print(f"host_latency: {error}", file=sys.stderr)
        return 1
    missed = sum(not outcome.holds for outcome in outcomes)
    print(f"{len(outcomes) - missed} of {len(outcomes)} within their bars")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
