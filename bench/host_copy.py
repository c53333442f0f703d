"""Compare host reads, writes and copies, as linkgauge chooses them, with loops of the check's own.

Same buffers, in turns, by one thread and by all, in 4 KiB and in huge pages. The best reference is
the one with the best median; a ratio is of two neighbours in time. Pairs are added until the
ratio's interval is narrow, or time is up. `--markdown` prints the row of docs/benchmarks.md. Needs
gcc, and linkgauge on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import ctypes
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import product
from pathlib import Path
from statistics import median

import msgspec
import numpy as np

from linkgauge import _native
from linkgauge.backends.host import HostBackend
from linkgauge.backends.host_kernels import kernels_of
from linkgauge.backends.protocol import Copy, run
from linkgauge.machine.cpu import revision
from linkgauge.machine.environment import hypervisor
from linkgauge.machine.host import read_host
from linkgauge.machine.tree import ROOT
from linkgauge.model.hardware.machine import Host, Node
from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_transfers
from linkgauge.model.settings import EngineSettings
from linkgauge.model.stats.summary import median_interval
from linkgauge.model.units import approximate_size
from references import Block, compiled

SOURCE = Path(__file__).with_name("host_references.c")
FLAGS = ("-O3", "-march=native", "-fno-tree-loop-distribute-patterns", "-shared", "-fPIC")
ROUNDS, NARROW, SECONDS = 15, 0.01, 20.0
"""Pairs at a time, until half the interval is this narrow or a case has taken this many seconds."""
PASSES = 3
"""Passes of each in a round, in turn; the fastest counts: disturbances of a pass are not the
kernel's."""
HEATS, CLOSE = 5, 0.9
"""References that after this many rounds reach less than this fraction of the best one drop out."""
BAR, LOW_BAR = 0.97, 0.95
"""Lower bars for the ratio's median and the lower end of its interval."""
SMALLEST, TIMES, SHARE = 64 << 20, 4, 6
"""Limits of a buffer: least bytes, multiple of the caches, and largest fraction (1/6) of the free
memory."""
TRANSFERS = {
    "read": "host:{0} -> null by cpu*{1}",
    "write": "null -> host:{0} by cpu*{1}",
    "copy": "host:{0} -> host:{0} by cpu*{1}",
}
PAGES = ("4 KiB", "huge")
SEED = 3


class References:
    """The loops of host_references.c. Raises RuntimeError if they cannot be compiled."""

    def __init__(self, folder: Path) -> None:
        self._library = compiled(SOURCE, (*FLAGS, "-pthread"), folder)
        self._library.run.restype = ctypes.c_double
        self._library.allocate.restype = ctypes.c_void_p
        self._library.reference.restype = ctypes.c_char_p

    def names(self, op: str) -> Iterator[tuple[int, str]]:
        """Number and name of an operation's references."""
        letter = ctypes.c_char()
        number = 0
        while name := self._library.reference(number, ctypes.byref(letter)):
            if letter.value.decode() == op[0]:
                yield number, name.decode()
            number += 1

    def allocate(self, size: int, *, huge: bool) -> int:
        address = self._library.allocate(ctypes.c_size_t(size), int(huge))
        if not address:
            raise RuntimeError(f"no memory of {approximate_size(size)}")
        return int(address)

    def run(self, number: int, ends: tuple[Block, Block], cpus: Sequence[int]) -> tuple[float, int]:
        """Seconds of one pass from the first block to the second, and the sum of what was read."""
        source, target = ends
        total = ctypes.c_uint64()
        seconds = self._library.run(
            number, ctypes.c_void_p(target.address), ctypes.c_void_p(source.address),
            ctypes.c_size_t(source.size), (ctypes.c_int * len(cpus))(*cpus), len(cpus),
            ctypes.byref(total),
        )  # fmt: skip
        if seconds <= 0:
            raise RuntimeError("a reference could not run")
        return float(seconds), total.value


class Outcome(msgspec.Struct, frozen=True):
    """The result of one case: rates in bytes/s, and the ratio of ours to the best reference's."""

    op: str
    threads: int
    pages: str
    kernel: str
    rate: float
    reference: str
    reference_rate: float
    ratio: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        return self.ratio >= BAR and self.low >= LOW_BAR


class Bench:
    """One node's threads over two blocks of `size` bytes in pages of each kind."""

    def __init__(self, references: References, host: Host, node: Node, rounds: int) -> None:
        self._references = references
        self._node = node
        self._rounds = rounds
        self._backend = HostBackend(host.nodes, kernels_of(EngineSettings(), host.nodes))
        caches = _native.last_level_cache(node.cpus)
        free = node.memory_available or SMALLEST * SHARE
        self.size = max(SMALLEST, min(TIMES * caches, free // SHARE)) >> 21 << 21
        memory = Memory("host", node.index)
        self._ends: dict[str, tuple[Block, Block]] = {}
        for pages in PAGES:
            source, target = (
                Block(memory, references.allocate(self.size, huge=pages == "huge"), self.size)
                for _ in range(2)
            )
            for block in (source, target):
                pattern = _native.Pattern.WORDS
                _native.fill(block.address, self.size, SEED, pattern, block is target, node.cpus)
            self._ends[pages] = source, target

    def compare(self, op: str, threads: int, pages: str) -> Outcome:
        ends, cpus = self._ends[pages], self._node.cpus[:threads]
        (transfer,) = parse_transfers(TRANSFERS[op].format(self._node.index, threads))
        if reason := self._backend.refusal(transfer):
            raise RuntimeError(reason)
        source = None if op == "write" else ends[0]
        target = None if op == "read" else ends[1]
        with closing(
            self._backend.prepare([Copy(transfer, source, target, self.size, SEED)])
        ) as group:
            (remark,) = self._backend.remarks(transfer)

            def ours() -> float:
                return run(group, 1).seconds[0]

            runs: dict[str, Callable[[], float]] = {
                name: lambda number=number: self._references.run(number, ends, cpus)[0]
                for number, name in self._references.names(op)
            }
            self._check(op, ends, cpus, ours)
            heats = take_turns(runs, HEATS)
            best = min(median(own) for own in heats.values())
            close = {n: run for n, run in runs.items() if median(heats[n]) <= best / CLOSE}
            begun = time.monotonic()
            taken: dict[str, list[float]] = {}
            while True:
                more = take_turns({"": ours, **close}, self._rounds)
                taken = {name: [*taken.get(name, ()), *own] for name, own in more.items()}
                mine, name, ratios, low, high = ratio(taken)
                if high - low <= 2 * NARROW or time.monotonic() - begun > SECONDS:
                    break
        kernel = re.sub(r".* by (\S+),.*", r"\1", remark)
        rates = (self.size / median(mine), self.size / median(taken[name]))
        return Outcome(
            op, threads, pages, kernel, rates[0], name, rates[1], median(ratios), low, high
        )

    def _check(
        self, op: str, ends: tuple[Block, Block], cpus: Sequence[int], ours: Callable[[], float]
    ) -> None:
        """Checks that both sides do the work: ours is exact, and references read and copy all
        bytes."""
        source, target = ends
        ours()
        pattern = _native.Pattern.CONSTANT if op == "write" else _native.Pattern.WORDS
        checked = source if op == "read" else target
        if _native.first_mismatch(checked.address, self.size, SEED, pattern, cpus) is not None:
            raise RuntimeError(f"linkgauge's {op} is not exact")
        words = (ctypes.c_uint64 * (self.size // 8)).from_address(source.address)
        total = int(np.frombuffer(words, np.uint64).sum())
        for number, name in self._references.names(op):
            _, read = self._references.run(number, ends, cpus)
            if op == "read" and read != total:
                raise RuntimeError(f"the reference {name} does not read all")
            if (
                op == "copy"
                and _native.first_mismatch(
                    target.address, self.size, SEED, _native.Pattern.WORDS, cpus
                )
                is not None
            ):
                raise RuntimeError(f"the reference {name} does not copy all")


def ratio(
    taken: dict[str, list[float]],
) -> tuple[list[float], str, list[float], float, float]:
    """Ours, the best reference, each round's ratio to it, and the interval of their median."""
    mine = taken[""]
    name = min((name for name in taken if name), key=lambda name: median(taken[name]))
    ratios = sorted(other / own for own, other in zip(mine, taken[name], strict=True))
    low, high = median_interval(ratios) or (ratios[0], ratios[-1])
    return mine, name, ratios, low, high


def take_turns(runs: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each one's fastest pass in each round, in varying order."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    order = list(runs)
    shuffle = random.Random(SEED).shuffle
    for _ in range(rounds):
        passes: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(PASSES):
            shuffle(order)
            for name in order:
                passes[name].append(runs[name]())
        for name, own in passes.items():
            taken[name].append(min(own))
    return taken


def describe(host: Host, node: Node) -> str:
    """The CPU, as the table of docs/benchmarks.md names it."""
    numbers = dict(
        re.findall(r"(family|model|stepping) (\d+)", revision(ROOT.text("proc/cpuinfo") or ""))
    )
    of = " ".join(f"{name} {number}" for name, number in numbers.items())
    beneath = hypervisor(ROOT)[0]
    cache = approximate_size(_native.last_level_cache(node.cpus))
    guest = f", guest of {beneath}" if beneath else ""
    return f"{host.cpu_model} ({of}), {len(node.cpus)} CPUs, {cache} of L3{guest}"


def markdown(about: str, outcomes: Sequence[Outcome]) -> str:
    """A row: for each operation and number of threads, kernel, GB/s, and ratio by kind of pages."""
    cells = []
    keys = dict.fromkeys((one.op, one.threads) for one in outcomes)
    for key in keys:
        own = [one for one in outcomes if (one.op, one.threads) == key]
        ratios = " / ".join(f"{one.ratio:.2f}" for one in own)
        cells.append(f"{own[0].kernel} {own[-1].rate / 1e9:.1f}, {ratios}")
    return f"| {about} | {' | '.join(cells)} |"


def show(one: Outcome) -> str:
    return (
        f"{one.op:<6}{one.threads:>4}  {one.pages:<6} {one.kernel:<22}{one.rate / 1e9:7.1f}   "
        f"{one.reference:<11}{one.reference_rate / 1e9:7.1f}   "
        f"{one.ratio:.3f} [{one.low:.3f}, {one.high:.3f}]{'' if one.holds else '  MISSED'}"
    )


def main() -> int:
    """Prints each case; 1 if one misses the bar or cannot be measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"pairs at a time (at least {ROUNDS})"
    )
    parser.add_argument("--markdown", action="store_true", help="print the row of the table, too")
    options = parser.parse_args()
    host = read_host()
    node = max(host.nodes, key=lambda node: len(node.cpus))
    counts = dict.fromkeys((1, len(node.cpus)))
    outcomes = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            rounds = max(ROUNDS, options.rounds)
            bench = Bench(References(Path(folder)), host, node, rounds)
            print(f"{describe(host, node)}; buffers of {bench.size >> 20} MiB")
            print(
                "op, threads, pages  our choice            GB/s   best of C      GB/s   ratio",
                flush=True,
            )
            for op, threads, pages in product(TRANSFERS, counts, PAGES):
                outcomes.append(bench.compare(op, threads, pages))
                print(show(outcomes[-1]), flush=True)
    except (RuntimeError, OSError) as error:
        print(f"host_copy: {error}", file=sys.stderr)
        return 1
    if options.markdown:
        print(markdown(describe(host, node), outcomes))
    missed = sum(not one.holds for one in outcomes)
    print(f"{len(outcomes) - missed} of {len(outcomes)} reach {BAR} (lower end {LOW_BAR})")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
