"""Compare device_memory_* with plain kernels in CUDA C++ and with cudaMemcpy, on the same arrays.

The kernels (device_references.cu, built by nvcc) run in the shape, of many, that is fastest here.
All take turns; a ratio is of two neighbours in time. Figures count each array that is read or
written, as STREAM does: a copy's payload twice. `--markdown` prints the rows of docs/benchmarks.md.
Needs nvcc, and linkgauge on PYTHONPATH. Exit status: 0 none below the bar (or there is no GPU), 1
one is, or it cannot be measured.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec

from linkgauge.backends.cuda.backend import CudaBackend
from linkgauge.backends.cuda.driver import open_driver
from linkgauge.backends.cuda.memory import CudaBuffer
from linkgauge.backends.protocol import RESULTS, Copy, Group, Pattern
from linkgauge.machine.host import read_host
from linkgauge.model.errors import LinkgaugeError, Unsupported
from linkgauge.model.notation import parse_transfer
from linkgauge.model.operations.operation import ARRAYS, named
from linkgauge.model.settings import EngineSettings
from linkgauge.model.units import parse_size
from references import compiled_by_nvcc
from turns import Ratio, ratio, seconds, take_turns, watched

SOURCE = Path(__file__).with_name("device_references.cu")
BAR = 0.98
"""Least ratio to the fastest reference."""
ROUNDS, SAMPLE = 25, 0.02
"""Turns of each, of so many seconds."""
KINDS = ("read", "write", "copy", "triad")
SHAPES = (
    *((threads, 0) for threads in (128, 256, 512, 1024)),
    *product((256, 512, 1024), (1, 2, 4, 8)),
)
"""Threads of a block, and blocks of each multiprocessor; 0: a thread for each 16 bytes."""


class Arrays(NamedTuple):
    """a, b and behind it c, each of `size` bytes; and the copy of them as linkgauge has it."""

    a: int
    b: int
    size: int
    copy: Copy


class Outcome(msgspec.Struct, frozen=True):
    """Bytes/s as STREAM counts of each, and the ratio of ours to theirs."""

    name: str
    reference: str
    ours: float
    theirs: float
    ratio: Ratio
    how: str

    @property
    def holds(self) -> bool:
        return self.ratio.middle >= BAR


class References:
    """The library of SOURCE. Raises RuntimeError if it cannot be had."""

    def __init__(self, folder: Path) -> None:
        self._library = compiled_by_nvcc(SOURCE, folder)
        for name in ("run_kernel", "run_memcpy"):
            getattr(self._library, name).restype = ctypes.c_double

    def kernel(self, kind: str, arrays: Arrays, threads: int, blocks: int, loops: int) -> float:
        """Seconds of all loops."""
        ends = map(ctypes.c_void_p, (arrays.a, arrays.b, arrays.b + arrays.size))
        return self._seconds(
            "run_kernel", KINDS.index(kind), *ends, ctypes.c_size_t(arrays.size), threads, blocks,
            loops,
        )  # fmt: skip

    def memcpy(self, arrays: Arrays, loops: int) -> float:
        ends = map(ctypes.c_void_p, (arrays.a, arrays.b))
        return self._seconds("run_memcpy", *ends, ctypes.c_size_t(arrays.size), loops)

    def _seconds(self, name: str, *arguments: Any) -> float:
        taken = float(getattr(self._library, name)(*arguments))
        if taken <= 0:
            raise RuntimeError(f"{name}: CUDA error {-taken:.0f}")
        return taken


class Bench:
    def __init__(self, backend: CudaBackend, references: References, rounds: int) -> None:
        self._backend = backend
        self._references = references
        self._rounds = rounds
        self._multiprocessors = backend.multiprocessors(
            parse_transfer("cuda:0 -> null by sm").source
        )

    def compare(self, kind: str, size: int) -> Iterator[Outcome]:
        """Ours against the fastest shape of the plain kernel, and a copy against cudaMemcpy."""
        operation: Any = f"peak-{kind}"
        arrays = self._arrays(kind, size)
        counted = size * ARRAYS[operation].counted
        try:
            with closing(self._backend.prepare([arrays.copy], operation)) as group:
                how = self._backend.remarks(arrays.copy.transfer)[0].partition(": ")[2]
                source = arrays.copy.source
                if source is not None:
                    numbers = Pattern.NUMBERS
                    self._backend.fill(source, source.size, numbers, arrays.copy.seed, False)
                yield from self._beside(kind, arrays, group, counted, how)
                self._check(arrays.copy, operation)
        finally:
            for buffer in (arrays.copy.source, arrays.copy.destination):
                if buffer is not None:
                    buffer.free()

    def _beside(
        self, kind: str, arrays: Arrays, group: Group, counted: int, how: str
    ) -> Iterator[Outcome]:
        references = self._references
        loops = max(2, round(SAMPLE / seconds(group, 1)))
        loops = min(loops, group.most_loops)
        shape = self._fastest(kind, arrays, loops)
        runs: dict[str, Callable[[], float]] = {
            "ours": lambda: counted * loops / seconds(group, loops),
            f"kernel {_words(shape)}": lambda: (
                counted * loops / references.kernel(kind, arrays, *shape, loops)
            ),
        }
        if kind == "copy":
            runs["cudaMemcpy"] = lambda: counted * loops / references.memcpy(arrays, loops)
        taken = take_turns(runs, self._rounds)
        ours = taken.pop("ours")
        for name, theirs in taken.items():
            yield Outcome(
                f"device_memory_{kind}",
                name,
                median(ours),
                median(theirs),
                ratio(ours, theirs),
                how,
            )

    def _fastest(self, kind: str, arrays: Arrays, loops: int) -> tuple[int, int]:
        """Threads and blocks of the reference."""
        shapes = [(threads, each * self._multiprocessors) for threads, each in SHAPES]
        runs = {
            str(shape): lambda shape=shape: self._references.kernel(kind, arrays, *shape, loops)
            for shape in shapes
        }
        taken = take_turns(runs, 3)
        return min(shapes, key=lambda shape: median(taken[str(shape)]))

    def _arrays(self, kind: str, size: int) -> Arrays:
        work = ARRAYS[f"peak-{kind}"]
        ends = ("cuda:0" if work.read else "null", "cuda:0" if work.written else "null")
        transfer = parse_transfer(" -> ".join(ends) + " by cuda:0.sm")
        source, destination = (
            None if memory.is_null else self._backend.allocate(memory, size * of, transfer.engine)
            for memory, of in (
                (transfer.source, named(f"peak-{kind}").source_arrays),
                (transfer.destination, 1),
            )
        )
        a, b = (end.address if isinstance(end, CudaBuffer) else 0 for end in (destination, source))
        return Arrays(a, b, size, Copy(transfer, source, destination, size, seed=1))

    def _check(self, copy: Copy, operation: str) -> None:
        """Raises RuntimeError if the arrays are not what the operation makes of them: the plain
        kernels make the same, but for what they write."""
        kind = ARRAYS[operation].kind
        made = RESULTS.get(kind, Pattern.NUMBERS)
        if copy.source is None or copy.destination is None:
            return
        if self._backend.first_mismatch(copy.destination, copy.size, made, copy.seed) is not None:
            raise RuntimeError(f"{operation}: the result is wrong")


def _words(shape: tuple[int, int]) -> str:
    threads, blocks = shape
    return f"{blocks} × {threads}" if blocks else f"each × {threads}"


def show(one: Outcome, peak: float | None) -> str:
    share = f"{one.ours / peak:6.1%}" if peak else "      "
    return (
        f"{one.name:<21}{one.ours / 1e9:>9.1f} {share}   {one.reference:<20}"
        f"{one.theirs / 1e9:>9.1f}   {one.ratio}   {one.how}{'' if one.holds else '  MISSED'}"
    )


def markdown(one: Outcome, peak: float | None) -> str:
    share = f"{one.ours / peak:.1%}" if peak else "unknown"
    figures = f"{one.ours / 1e9:.1f}", share, one.reference, f"{one.theirs / 1e9:.1f}"
    return f"| {' | '.join((one.name, *figures, str(one.ratio)))} |"


def main() -> int:
    """Prints each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="512M", help="of an array")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--markdown", action="store_true", help="print the rows of the table, too")
    options = parser.parse_args()
    outcomes: list[Outcome] = []
    try:
        driver = open_driver()
    except Unsupported as reason:
        print(f"device_memory: skipped: {reason}")
        return 0
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            closing(CudaBackend(driver, read_host().nodes, EngineSettings())) as backend,
        ):
            bench = Bench(backend, References(Path(folder)), options.rounds)
            peak = backend.inventory()[0].memory_rate
            device = backend.devices()[0]
            rate = "unknown" if peak is None else f"{peak / 1e9:.0f} GB/s (clock × width)"
            print(f"{device.model}, {device.driver}; arrays of {options.size}; memory {rate}")
            print(f"{'benchmark':<21}     GB/s  of it   {'against':<20}     GB/s   ratio")
            states: list[str] = []
            for kind in KINDS:
                with watched(backend, states):
                    found = list(bench.compare(kind, parse_size(options.size)))
                for one in found:
                    print(show(one, peak), flush=True)
                outcomes += found
                print(f"{'':<21}{states[-1]}", flush=True)
    except (LinkgaugeError, RuntimeError, OSError) as error:
        print(f"device_memory: {error}", file=sys.stderr)
        return 1
    if options.markdown:
        print("\n".join(markdown(one, peak) for one in outcomes))
    missed = sum(not one.holds for one in outcomes)
    print(f"{len(outcomes) - missed} of {len(outcomes)} within the bar (at least {BAR})")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
