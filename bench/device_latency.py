"""Compare latency_* with loops in CUDA C++ over the driver (latency_loops.cu, built by nvcc).

Each takes turns with its reference, `--rounds` times `--iterations` iterations, every round in new
memory. Compared are medians (the bar: 5 %, or 100 ns, or within the medians of the reference's own
rounds) and 99th percentiles (15 %, or what the reference's own differ by from round to round). How
far our medians lie apart over the rounds has a bar of 3 %, or of what the reference's own do. With
two GPUs, paths between them too. `--markdown` prints the rows of docs/benchmarks.md. Needs nvcc,
and linkgauge on PYTHONPATH. Exit status: 0 none is beyond a bar (or there is no GPU), 1 one is, or
it cannot be measured.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec

from linkgauge import _native
from linkgauge.backends.cuda.backend import CudaBackend
from linkgauge.backends.cuda.driver import open_driver
from linkgauge.backends.cuda.memory import address_in
from linkgauge.backends.protocol import MOST_BATCHES, Copy, Group
from linkgauge.machine.host import read_host
from linkgauge.model.errors import LinkgaugeError, Unsupported
from linkgauge.model.notation import parse_transfer
from linkgauge.model.operations.operation import OperationName
from linkgauge.model.settings import EngineSettings
from linkgauge.model.stats.summary import percentile
from references import compiled_by_nvcc
from turns import take_turns

SOURCE = Path(__file__).with_name("latency_loops.cu")
ROUNDS, ITERATIONS = 10, 10_000
MEDIAN, NEAR, TAIL, SPREAD = 0.05, 100e-9, 0.15, 0.03
"""Bars: of medians, relative and in seconds; of 99th percentiles; of our medians' spread."""
SIZES = (1, 64, 4096, 65536, 1 << 20)
"""Bytes of copies."""


class Case(NamedTuple):
    """What is compared: a transfer and its bytes, and the reference's function with what it takes
    before the count. An iteration has `steps` latencies."""

    name: str
    transfer: str
    operation: OperationName
    size: int
    function: str
    arguments: tuple[int, ...] = ()
    steps: int = 1


def cases(devices: int) -> Iterator[Case]:
    """Without the addresses that copies take."""
    for size in SIZES:
        for one, other in (("host:0", "cuda:0"), ("cuda:1", "cuda:0"))[:devices]:
            path = f"{one} -> {other} by cuda:0.ce"
            name = f"copy {one.replace('cuda:', '')}-0, {size} B"
            yield Case(name, path, "copy-ping-pong", size, "copies", (), 2)
    flags = "flag-ping-pong"
    yield Case("flag host:0-0", "host:0 -> cuda:0 by sm", flags, 256, "host_flags", (), 2)
    for other in range(devices):
        path = f"cuda:0 -> cuda:{other} by cuda:0.sm"
        yield Case(f"flag 0-{other}", path, flags, 256, "device_flags", (0, other), 2)
    idle = "null -> null by cuda:0.sm"
    functions: tuple[tuple[OperationName, str], ...] = (
        ("launch", "launches"), ("sync", "syncs"), ("event", "events"),
        ("graph-launch", "graphs"), ("doorbell", "doorbells"),
    )  # fmt: skip
    for operation, function in functions:
        yield Case(operation, idle, operation, 1, function)


class Outcome(msgspec.Struct, frozen=True):
    """Percentiles in seconds, of each round."""

    name: str
    ours: tuple[tuple[float, float], ...]
    theirs: tuple[tuple[float, float], ...]
    least: float

    def of(self, tail: int) -> tuple[float, float]:
        """Ours and the reference's median over the rounds: of medians (0) or of tails (1)."""
        return median(o[tail] for o in self.ours), median(t[tail] for t in self.theirs)

    @property
    def spreads(self) -> tuple[float, float]:
        """Of the medians over the rounds, relative: of ours and of the reference's."""
        ours, theirs = ([middle for middle, _ in of] for of in (self.ours, self.theirs))
        own, their = ((max(of) - min(of)) / median(of) for of in (ours, theirs))
        return own, their

    @property
    def missed(self) -> list[str]:
        own, their = self.of(0)
        middles, tails = zip(*self.theirs, strict=True)
        is_near = abs(own - their) <= max(MEDIAN * their, NEAR)
        found = [] if is_near or min(middles) <= own <= max(middles) else ["p50"]
        own, their = self.of(1)
        if abs(own - their) > max(TAIL * their, max(tails) - min(tails)):
            found.append("p99")
        own, their = self.spreads
        return [*found, *(["spread"] if own > max(SPREAD, their) else [])]


def compare(
    backend: CudaBackend, library: ctypes.CDLL, case: Case, rounds: int, count: int
) -> Outcome:
    """All rounds of a case. Raises RuntimeError if the reference fails."""
    percentiles: dict[str, list[tuple[float, float]]] = {"ours": [], "theirs": []}
    least: list[float] = []

    def taken(name: str, times: Iterable[float]) -> float:
        ordered = sorted(time / case.steps for time in times)
        percentiles[name].append((percentile(ordered, 0.5), percentile(ordered, 0.99)))
        least.append(ordered[0])
        return ordered[0]

    def ours(copy: Copy) -> float:
        with closing(backend.prepare([copy], case.operation)) as group:
            return taken("ours", _iterations(group, count))

    def theirs(copy: Copy) -> float:
        ends: tuple[Any, ...] = case.arguments
        if case.function == "copies":
            addresses = (address_in(end) for end in (copy.source, copy.destination))
            ends = (*map(ctypes.c_void_p, addresses), ctypes.c_size_t(case.size))
        return taken("theirs", _reference(library, case.function, ends, count))

    for number in range(-1, rounds):  # the first does what is done once
        with _lent(backend, case) as copy:
            take_turns({"ours": partial(ours, copy), "theirs": partial(theirs, copy)}, 1)
        if number < 0:
            for figures in percentiles.values():
                figures.clear()
    return Outcome(case.name, tuple(percentiles["ours"]), tuple(percentiles["theirs"]), min(least))


@contextmanager
def _lent(backend: CudaBackend, case: Case) -> Iterator[Copy]:
    transfer = parse_transfer(case.transfer)
    with ExitStack() as opened:
        ends = [
            None if memory.is_null else backend.allocate(memory, case.size, transfer.engine)
            for memory in (transfer.source, transfer.destination)
        ]
        for end in filter(None, ends):
            opened.callback(end.free)
        yield Copy(transfer, *ends, case.size, 1)


def _iterations(group: Group, count: int) -> Iterator[float]:
    """Seconds of each."""
    for first in range(0, count, MOST_BATCHES):
        group.arm(1, min(MOST_BATCHES, count - first))
        group.open()
        (times,) = group.wait().progress
        yield from (end - begin for begin, end in pairwise(times))


def _reference(library: ctypes.CDLL, name: str, ends: Sequence[Any], count: int) -> list[float]:
    took = (ctypes.c_longlong * count)()
    error = getattr(library, name)(*ends, count, took)
    if error:
        raise RuntimeError(f"{name}: CUDA error {error}")
    return [time * 1e-9 for time in took]


def show(one: Outcome) -> str:
    (own, their), (tail, their_tail) = one.of(0), one.of(1)
    middles, tails = zip(*one.theirs, strict=True)
    own_spread, their_spread = one.spreads
    missed = f"  MISSED: {', '.join(one.missed)}" if one.missed else ""
    rounds, tail_rounds = (f"({min(of) * 1e9:.0f}-{max(of) * 1e9:.0f})" for of in (middles, tails))
    return (
        f"{one.name:<22}{own * 1e9:>9.0f}{their * 1e9:>9.0f} {rounds:<14}{own / their - 1:>+7.1%}"
        f"{tail * 1e9:>12.0f}{their_tail * 1e9:>9.0f} {tail_rounds:<14}"
        f"{own_spread:>6.1%}{their_spread:>7.1%}{one.least * 1e9:>9.0f}{missed}"
    )


def markdown(one: Outcome) -> str:
    (own, their), (tail, their_tail) = one.of(0), one.of(1)
    figures = (own * 1e9, their * 1e9, tail * 1e9, their_tail * 1e9)
    cells = one.name, *(f"{of:.0f}" for of in figures), *(f"{of:.1%}" for of in one.spreads)
    return f"| {' | '.join(cells)} |"


def own_cost() -> float:
    """Seconds of an iteration of a call that does nothing: the loop's own."""
    ends, _, _ = _native.time_iterations([_native.NOTHING], 100_000)
    return median(end - begin for begin, end in pairwise(ends)) * 1e-9


def main() -> int:
    """Prints each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--iterations", type=int, default=ITERATIONS)
    parser.add_argument("--markdown", action="store_true", help="print the rows of the table, too")
    options = parser.parse_args()
    try:
        driver = open_driver()
    except Unsupported as reason:
        print(f"device_latency: skipped: {reason}")
        return 0
    outcomes: list[Outcome] = []
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            closing(CudaBackend(driver, read_host().nodes, EngineSettings())) as backend,
        ):
            library = compiled_by_nvcc(SOURCE, Path(folder))
            devices = backend.devices()
            print(f"{len(devices)} x {devices[0].model}, {devices[0].driver}")
            print(f"an iteration of nothing costs the loop {own_cost() * 1e9:.0f} ns")
            print(f"ns, one way; {options.rounds} rounds of {options.iterations} iterations")
            heads = f"{'p99':>26}   theirs (rounds)      spread theirs    least"
            print(f"{'':<22}      p50   theirs (rounds){heads}")
            for case in cases(min(len(devices), 2)):
                outcomes.append(compare(backend, library, case, options.rounds, options.iterations))
                print(show(outcomes[-1]), flush=True)
    except (LinkgaugeError, RuntimeError, OSError) as error:
        print(f"device_latency: {error}", file=sys.stderr)
        return 1
    if options.markdown:
        print("\n".join(map(markdown, outcomes)))
    missed = sum(bool(one.missed) for one in outcomes)
    print(f"{len(outcomes) - missed} of {len(outcomes)} within the bars")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
