"""Compare the totals of concurrent host copies with those of a program of the check's own.

Both run the same threads over the same buffers, in turns, sample by sample; the program notes the
time of every 256 KiB, and counts itself what moves while all transfers run. Draws pairs and triples
of transfers of random sizes and threads. Beside the ratio of the medians stands what the program
differs from itself, in its even and its odd turns. Both run at the least niceness, where that is
allowed, so that other programs take little of the CPUs. Needs gcc, and linkgauge on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from statistics import median

import msgspec
from msgspec.structs import replace

from linkgauge.backends.host import HostBackend
from linkgauge.backends.host_kernels import kernels_of
from linkgauge.backends.protocol import Copy
from linkgauge.engine.measuring.combined import TrackedGroup
from linkgauge.engine.measuring.sampler import (
    definition_of,
    headline,
    run_once,
    warm_up,
)
from linkgauge.machine.host import read_host
from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_transfers
from linkgauge.model.settings import EngineSettings, Settings
from linkgauge.model.transfer import Cell, Report
from linkgauge.model.units import approximate_size
from references import Block, compiled

SOURCE = Path(__file__).with_suffix(".c")
FLAGS = ("-O3", "-shared", "-fPIC", "-pthread")
PAIRS, TRIPLES, TURNS, BAR, SEED = 20, 5, 15, 0.05, 5
FIRST = -20
"""The niceness of what goes first."""
SECONDS = 0.2
"""A sample's, many times what others take a CPU for: their turns are then alike for both sides."""
SIZES = (1 << 20, 3_000_000, 8 << 20, 32 << 20)


class ProgramTransfer(ctypes.Structure):
    """`Transfer` of concurrent_copies.c."""

    _fields_ = (
        ("to", ctypes.c_void_p),
        ("from", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("cpus", ctypes.POINTER(ctypes.c_int)),
        ("count", ctypes.c_int),
    )


class Program:
    """The program, compiled. Raises RuntimeError if it cannot be."""

    def __init__(self, folder: Path) -> None:
        self._library = compiled(SOURCE, FLAGS, folder)
        self._library.run.restype = ctypes.c_double
        self._library.allocate.restype = ctypes.c_void_p

    def allocate(self, size: int) -> Block:
        address = self._library.allocate(ctypes.c_size_t(size))
        if not address:
            raise RuntimeError(f"no memory of {approximate_size(size)}")
        return Block(Memory("host", 0), int(address), size)

    def release(self, block: Block) -> None:
        self._library.release(ctypes.c_void_p(block.address), ctypes.c_size_t(block.size))

    def total(
        self, ends: Sequence[tuple[Block, Block]], cpus: Sequence[Sequence[int]], loops: int
    ) -> float:
        """The bytes/s of all copies together, as the program counts them."""
        made = [
            ProgramTransfer(
                to.address, source.address, to.size, (ctypes.c_int * len(own))(*own), len(own)
            )
            for (source, to), own in zip(ends, cpus, strict=True)
        ]
        found = self._library.run((ProgramTransfer * len(made))(*made), len(made), loops)
        if found < 0:
            raise RuntimeError("no memory")
        return float(found)


class Outcome(msgspec.Struct, frozen=True):
    """Our total and the program's in bytes/s, the ratio of their medians, and what the program's
    odd turns have to its even ones."""

    what: str
    size: int
    loops: int
    ours: float
    theirs: float
    own: float

    @property
    def holds(self) -> bool:
        return abs(self.ours / self.theirs - 1) <= BAR


def drawn(count: int, most: int, generator: random.Random) -> str:
    """So many copies of random numbers of threads and sizes, in the notation."""
    return " & ".join(
        f"host:0 -> host:0 by cpu*{generator.randint(1, most)}{generator.choice(('', '', ' x2'))}"
        for _ in range(count)
    )


def compare(
    program: Program, text: str, size: int, turns: int, seconds: float = SECONDS
) -> Outcome:
    """Takes turns, in random order."""
    host = read_host()
    backend = HostBackend(host.nodes, kernels_of(EngineSettings(host_kernel="libc"), host.nodes))
    transfers = parse_transfers(text)
    cell = Cell("0", "0", transfers, Report.TOTAL)
    ends = [
        (program.allocate(size * one.scale), program.allocate(size * one.scale))
        for one in transfers
    ]
    copies = [
        Copy(one, *own, size * one.scale, SEED, tracked=True)
        for one, own in zip(transfers, ends, strict=True)
    ]
    cpus = backend.threads(copies)
    ours: list[float] = []
    theirs: list[float] = []
    with closing(TrackedGroup(backend.prepare(copies))) as group:
        group.policy = replace(group.policy, seconds=seconds)
        loops = warm_up(group, Settings((size,)), group.policy).loops

        def measure() -> None:
            timing = run_once(group, loops)
            definition = definition_of(cell, (timing,))
            ours.append(headline(cell, cell.counted(size), timing, loops, definition))

        def count() -> None:
            theirs.append(program.total(ends, cpus, loops))

        order = [measure, count]
        shuffle = random.Random(SEED).shuffle
        for _ in range(turns):
            shuffle(order)
            for take in order:
                take()
    for block in (block for both in ends for block in both):
        program.release(block)
    own = median(theirs[1::2]) / median(theirs[::2])
    return Outcome(text, size, loops, median(ours), median(theirs), own)


def outcomes(program: Program, turns: int, pairs: int, triples: int) -> Iterator[Outcome]:
    generator = random.Random(SEED)
    most = len(read_host().nodes[0].cpus)
    for count in (*(2,) * pairs, *(3,) * triples):
        text, size = drawn(count, most, generator), generator.choice(SIZES)
        yield compare(program, text, size, turns)


def show(one: Outcome) -> str:
    threads = one.what.replace("host:0 -> host:0 by ", "")
    return (
        f"{threads:<32}{approximate_size(one.size):>10}{one.loops:>6}{one.ours / 1e9:9.2f}"
        f"{one.theirs / 1e9:9.2f}   {one.ours / one.theirs:.3f}   {one.own:.3f}"
        f"{'' if one.holds else '  MISSED'}"
    )


def go_first() -> None:
    """Takes this process before all others, as far as the system allows. Linux weighs niceness
    within a session only, and sessions by that of their group."""
    with suppress(OSError):
        os.setsid()
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(FIRST))
    with suppress(OSError):
        os.nice(FIRST)


def main() -> int:
    """Prints each comparison; 1 if one misses the bar or cannot be measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS, help="samples of each side")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--triples", type=int, default=TRIPLES)
    options = parser.parse_args()
    taken = []
    go_first()
    try:
        with tempfile.TemporaryDirectory() as folder:
            program = Program(Path(folder))
            print(
                "copies at once                        size loops     ours  program   ratio   own"
            )
            for one in outcomes(program, options.turns, options.pairs, options.triples):
                taken.append(one)
                print(show(one), flush=True)
    except (RuntimeError, OSError) as error:
        print(f"concurrent_copies: {error}", file=sys.stderr)
        return 1
    missed = sum(not one.holds for one in taken)
    print(f"{len(taken) - missed} of {len(taken)} within {BAR:.0%}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
