"""Compare memory_stream_* with STREAM's loops, compiled here, and with what else moves arrays fast.

`stream` mode against STREAM's loops: both should be the same. `peak` mode against the best of these
loops, the C library's memcpy and memset, and likwid-bench's kernels with non-temporal stores where
it is installed and knows this CPU. All threads of a node. Both sides work in the same buffers, in
turns; likwid-bench allocates its own, in the
system's pages, and is compared with ours in 4 KiB pages. A ratio is of two neighbours in time; the
spread is that between two halves of the pairs. Needs gcc with OpenMP.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import NamedTuple

# Read by OpenMP when it is loaded. Its threads sleep between turns: spinning ones take the CPU from
# ours, whose threads then run one after the other and each the faster for it.
os.environ["OMP_PROC_BIND"] = "true"
os.environ["OMP_WAIT_POLICY"] = "passive"

import msgspec
import numpy as np

from host_copy import PAGES, SEED, SHARE, SMALLEST, TIMES, Block, References, describe, take_turns
from linkgauge import _native
from linkgauge.backends.host import HostBackend
from linkgauge.backends.host_kernels import kernels_of
from linkgauge.backends.protocol import Copy, run
from linkgauge.machine.host import read_host
from linkgauge.machine.tree import ROOT
from linkgauge.model.hardware.machine import Host, Node
from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_transfers
from linkgauge.model.operations.operation import ARRAYS, HOST_MODES, ArrayWork
from linkgauge.model.settings import EngineSettings
from linkgauge.model.stats.summary import median_interval
from references import compiled

SOURCE = Path(__file__).with_name("stream_loops.c")
FLAGS = (
    "-O3", "-march=native", "-fopenmp", "-fno-tree-loop-distribute-patterns", "-shared", "-fPIC",
)  # fmt: skip
ROUNDS, NARROW, SECONDS = 9, 0.01, 20.0
"""Pairs at a time, until half the interval is this narrow or a case has taken this many seconds."""
BARS = {"stream": (0.97, 1.05), "peak": (0.97, float("inf"))}
TIMED = 3
"""Passes of a turn that are timed, behind one that is not: so each writes back its own lines."""
LIKWID = {"copy": "copy_mem", "triad": "stream_mem", "write": "store_mem", "read": "load"}
"""likwid-bench's names of what it can do of ours, without the vector unit's."""
LIKWID_ROUNDS, LIKWID_SECONDS = 7, 1.5


class Arrays(NamedTuple):
    """b and behind it c in the source, a in the target."""

    source: Block
    target: Block

    @property
    def addresses(self) -> tuple[int, int, int]:
        """Addresses of a, b and c."""
        b = self.source.address
        return self.target.address, b, b + self.target.size


class Loops:
    """stream_loops.c. Raises RuntimeError if it cannot be compiled."""

    def __init__(self, folder: Path) -> None:
        self._library = compiled(SOURCE, FLAGS, folder)
        self._library.run_loop.restype = ctypes.c_double
        self._library.loop.restype = ctypes.c_char_p

    def names(self, kind: str) -> Iterator[tuple[int, str]]:
        """Number and name of the loops that do this."""
        does = ctypes.c_char_p()
        number = 0
        while name := self._library.loop(number, ctypes.byref(does)):
            if (does.value or b"").decode() == kind:
                yield number, name.decode()
            number += 1

    def run(self, number: int, arrays: Arrays, threads: int) -> tuple[float, int]:
        """Seconds of a pass, and the sum of what was read."""
        total = ctypes.c_uint64()
        places = map(ctypes.c_void_p, arrays.addresses)
        count = ctypes.c_long(arrays.target.size // 8)
        seconds = self._library.run_loop(
            number, *places, count, threads, TIMED, ctypes.byref(total)
        )
        return float(seconds), total.value


class Outcome(msgspec.Struct, frozen=True):
    """The result of one case: rates in bytes/s as STREAM counts, the ratio of ours to the best
    reference's with its interval, and how much it differs between two halves of the pairs."""

    operation: str
    pages: str
    kernel: str
    rate: float
    reference: str
    reference_rate: float
    ratio: float
    low: float
    high: float
    spread: float

    @property
    def holds(self) -> bool:
        least, most = BARS[ARRAYS[self.operation].mode]
        return least <= self.ratio <= most


class Bench:
    """One node's threads over arrays a, b and c of `size` bytes each, in pages of each kind."""

    def __init__(self, folder: Path, host: Host, node: Node) -> None:
        self._loops = Loops(folder)
        memory = References(folder)
        self._node = node
        self._threads = len(node.cpus)
        self._backend = HostBackend(host.nodes, kernels_of(EngineSettings(), host.nodes))
        caches = _native.last_level_cache(node.cpus)
        free = node.memory_available or SMALLEST * SHARE
        self.size = max(SMALLEST, min(TIMES * caches, free // (2 * SHARE))) >> 21 << 21
        place = Memory("host", node.index)
        self._arrays: dict[str, Arrays] = {}
        for pages in PAGES:
            sizes = 2 * self.size, self.size
            blocks = [
                Block(place, memory.allocate(size, huge=pages == "huge"), size) for size in sizes
            ]
            for block in blocks:
                self._backend.fill(block, block.size, _PATTERN.NUMBERS, SEED, inverted=False)
            self._arrays[pages] = Arrays(*blocks)

    def compare(self, operation: str, pages: str) -> Outcome:
        work, arrays = ARRAYS[operation], self._arrays[pages]
        with closing(_Ours(self._backend, self._node, operation, arrays)) as ours:
            self._check(work, arrays, ours)
            runs: dict[str, Callable[[], float]] = {
                name: lambda number=number: self._loops.run(number, arrays, self._threads)[0]
                for number, name in self._loops.names(work.kind)
                if work.mode == "peak" or name == "loop"
            }
            begun = time.monotonic()
            taken: dict[str, list[float]] = {}
            while True:
                more = take_turns({"": ours.run, **runs}, ROUNDS)
                taken = {name: [*taken.get(name, ()), *own] for name, own in more.items()}
                best = min(runs, key=lambda name: median(taken[name]))
                ratios = [other / own for own, other in zip(taken[""], taken[best], strict=True)]
                low, high = median_interval(sorted(ratios)) or (min(ratios), max(ratios))
                if high - low <= 2 * NARROW or time.monotonic() - begun > SECONDS:
                    break
        counted = self.size * work.counted
        rates = counted / median(taken[""]), counted / median(taken[best])
        return _outcome(operation, pages, ours.kernel, rates, best, ratios)

    def _check(self, work: ArrayWork, arrays: Arrays, ours: _Ours) -> None:
        """Checks that both sides do the work."""
        source, target = arrays
        content = _CONTENTS.get(work.kind)
        for number, name in ((None, "linkgauge"), *self._loops.names(work.kind)):
            if content is not None:
                self._backend.fill(target, target.size, content, SEED, inverted=True)
            if number is None:
                ours.run()
            else:
                read = self._loops.run(number, arrays, self._threads)[1]
            if work.kind == "read" and number is not None:
                words = (ctypes.c_uint64 * (target.size // 8)).from_address(source.address)
                if read != int(np.frombuffer(words, np.uint64).sum()):
                    raise RuntimeError(f"{name} does not read all")
            elif content is not None and (number is None or work.kind != "write"):
                wrong = self._backend.first_mismatch(target, target.size, content, SEED)
                if wrong is not None:
                    raise RuntimeError(f"{work.kind} by {name} is wrong at byte {wrong}")

    def against_likwid(self, operation: str, test: str) -> Outcome:
        """Ours in 4 KiB pages, in turns with whole runs of likwid-bench, which reports the mean of
        its passes."""
        work, arrays = ARRAYS[operation], self._arrays[PAGES[0]]
        counted = self.size * work.counted
        with closing(_Ours(self._backend, self._node, operation, arrays)) as ours:
            mine, theirs = [], []
            for _ in range(LIKWID_ROUNDS):
                theirs.append(run_likwid(test, counted, self._threads))
                begun, seconds = time.monotonic(), []
                while time.monotonic() - begun < LIKWID_SECONDS:
                    seconds.append(ours.run())
                mine.append(counted * len(seconds) / sum(seconds))
            ratios = [one / other for one, other in zip(mine, theirs, strict=True)]
        rates = median(mine), median(theirs)
        return _outcome(operation, PAGES[0], ours.kernel, rates, f"likwid {test}", ratios)


_PATTERN = _native.Pattern
_CONTENTS = {
    "copy": _PATTERN.NUMBERS,
    "scale": _PATTERN.SCALED,
    "add": _PATTERN.ADDED,
    "triad": _PATTERN.TRIAD,
    "write": _PATTERN.CONSTANT,
}


class _Ours:
    """One operation of linkgauge's, as a cell carries it out."""

    def __init__(self, backend: HostBackend, node: Node, operation: str, arrays: Arrays) -> None:
        work = ARRAYS[operation]
        place = f"host:{node.index}"
        names = place if work.read else "null", place if work.written else "null"
        (transfer,) = parse_transfers(f"{names[0]} -> {names[1]} by {place}.cpu")
        if reason := backend.refusal(transfer):
            raise RuntimeError(reason)
        ends = arrays.source if work.read else None, arrays.target if work.written else None
        copy = Copy(transfer, *ends, arrays.target.size, SEED)
        self._group = backend.prepare([copy], operation)  # type: ignore[arg-type]  # one of them
        (remark,) = backend.remarks(transfer)
        self.kernel = re.sub(r".* by (\S+),.*", r"\1", remark)

    def run(self) -> float:
        """Seconds of a pass, the mean over threads and passes."""
        (times,) = run(self._group, 1, 1 + TIMED).progress
        return (times[-1] - times[1]) / TIMED

    def close(self) -> None:
        self._group.close()


def _outcome(
    operation: str, pages: str, kernel: str, rates: tuple[float, float], reference: str,
    ratios: Sequence[float],
) -> Outcome:  # fmt: skip
    low, high = median_interval(sorted(ratios)) or (min(ratios), max(ratios))
    half = len(ratios) // 2
    spread = abs(median(ratios[:half]) - median(ratios[half:]))
    middle = median(ratios)
    return Outcome(
        operation, pages, kernel, rates[0], reference, rates[1], middle, low, high, spread
    )


def likwid_tests(kind: str) -> str | None:
    """likwid-bench's kernel for this, by the widest vector unit of this CPU; None if there is
    none."""
    flags = (ROOT.text("proc/cpuinfo") or "").split()
    unit = "avx512" if "avx512f" in flags else "avx" if "avx" in flags else "sse"
    return f"{LIKWID[kind]}_{unit}" if kind in LIKWID else None


def run_likwid(test: str, counted: int, threads: int) -> float:
    """Bytes/s. Raises RuntimeError with what likwid-bench says if it does not run."""
    command = ["likwid-bench", "-t", test, "-w", f"N:{counted // 1000}kB:{threads}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise RuntimeError(f"likwid-bench is not installed ({error.strerror})") from error
    found = re.search(r"MByte/s:\s+([0-9.]+)", done.stdout)
    if found is None:
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing"]
        raise RuntimeError(f"likwid-bench does not run here: {said[-1]}")
    return float(found[1]) * 1e6


def show(one: Outcome) -> str:
    return (
        f"{one.operation:<13} {one.pages:<6} {one.kernel:<22}{one.rate / 1e9:7.1f}   "
        f"{one.reference:<20}{one.reference_rate / 1e9:7.1f}   "
        f"{one.ratio:.3f} [{one.low:.3f}, {one.high:.3f}] ±{one.spread:.3f}  "
        f"{'' if one.holds else 'MISSED'}"
    ).rstrip()


def cases(bench: Bench, wanted: Sequence[str]) -> Iterator[Callable[[], Outcome]]:
    for operation, pages in product(wanted, PAGES):
        yield partial(bench.compare, operation, pages)
    for operation in wanted:
        test = likwid_tests(ARRAYS[operation].kind)
        if ARRAYS[operation].mode == "peak" and test is not None:
            yield partial(bench.against_likwid, operation, test)


def main() -> int:
    """Prints each case; 1 if one misses its bar or cannot be measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operations", nargs="*", help=f"of {', '.join(ARRAYS)}; all without any")
    wanted = parser.parse_args().operations or list(ARRAYS)
    host = read_host()
    node = max(host.nodes, key=lambda node: len(node.cpus))
    outcomes = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(Path(folder), host, node)
            print(f"{describe(host, node)}; arrays of {bench.size >> 20} MiB, all threads")
            print(
                f"{'operation':<13} {'pages':<6} {'our kernel':<22}   GB/s   {'against':<20}"
                "   GB/s   ratio of pairs, its interval and repeatability",
                flush=True,
            )
            for case in cases(bench, wanted):
                try:
                    outcomes.append(case())
                except RuntimeError as error:
                    if case.func != bench.against_likwid:  # type: ignore[attr-defined]
                        raise
                    print(error, flush=True)
                    break
                print(show(outcomes[-1]), flush=True)
    except (RuntimeError, OSError) as error:
        print(f"host_stream: {error}", file=sys.stderr)
        return 1
    missed = sum(not one.holds for one in outcomes)
    bars = ", ".join(f"{mode} {BARS[mode][0]} … {BARS[mode][1]}" for mode in HOST_MODES)
    print(f"{len(outcomes) - missed} of {len(outcomes)} within their bars ({bars})")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
