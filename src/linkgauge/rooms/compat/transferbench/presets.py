"""TransferBench's presets p2p, a2a and one2all: copies between nodes and devices."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from linkgauge.cli.tool_options import UsageError

from ..copy_cells import Repetitions, shown
from . import text
from .cases import (
    DEVICE_LETTERS,
    AskedTest,
    AskedTransfer,
    Bench,
    MeasuredTest,
    TransferEnd,
)
from .environment import TOOL, Common, Variables
from .text import CPU_TYPES, GPU_TYPES, Preset, blocks


class PeerToPeer(Preset):
    """Copies between all nodes and devices, one way, and both ways at the same time. Host threads
    cannot copy to or from a device; these copies are N/A, as in the tool's build for NVIDIA."""

    def __init__(self, bench: Bench, common: Common, variables: Variables, size: int) -> None:
        super().__init__(bench, common, variables, size)
        self._cpus = self.count("CPU", len(bench.nodes))
        self._comma = "," if common.csv else ""
        self._reads = self.reading()
        self._dma = variables.switch(
            "USE_GPU_DMA", False, [f"Using GPU-{kind} as GPU executor" for kind in ("GFX", "DMA")]
        )
        modes = "Uni + Bi", "Unidirectional", "Bidirectional"
        self._mode = variables.number("P2P_MODE", 0, 0, 2, modes)
        self._threads = variables.number(
            "NUM_CPU_SE", min(4, bench.threads), 1, 1 << 16, "Using {} CPU threads"
        )
        cpu = self.letter("CPU_MEM_TYPE", CPU_TYPES)
        gpu = self.letter("GPU_MEM_TYPE", GPU_TYPES)
        self._ends = [TransferEnd(cpu, n) for n in range(self._cpus)]
        self._ends += [TransferEnd(gpu, n) for n in range(self.gpus)]

    def lines(self) -> Iterator[str]:
        if not self._ends:
            raise UsageError("p2p needs a CPU or a GPU")
        return self._both()

    def _both(self) -> Iterator[str]:
        yield from text.listing(self.common, "P2P", self.variables.listed)
        yield f"Bytes Per Direction{self.separator}{self.size}"
        if self._cpus and self.gpus:
            why = "host threads do not reach GPU memory: N/A where a CPU would copy there"
            print(f"{TOOL}: {why}", file=sys.stderr)
        for both in (False, True):
            if self._mode != (1 if both else 2):
                yield from self._matrix(both)

    def _matrix(self, both: bool) -> Iterator[str]:
        reads = ("Remote", "Local") if self._reads else ("Local", "Remote")
        title = f"{'Bi' if both else 'Uni'}directional copy peak bandwidth GB/s"
        kind = "DMA" if self._dma else "GFX"
        yield f"{title} [{reads[0]} read / {reads[1]} write] (GPU-Executor: {kind})"
        yield self._head(both)
        sums: dict[tuple[bool, bool], list[float]] = {}
        for row, source in enumerate(self._ends):
            if row == self._cpus and row:
                yield ""
            found = self._row(source, both)
            for other, timings in zip(self._ends, found, strict=True):
                known = sums.setdefault((self._is_gpu(source), self._is_gpu(other)), [])
                if other != source:
                    known += [t.rate for t in timings if t.rate is not None]
            yield from self._shown(source, found, both)
            if both and row < len(self._ends) - 1:
                yield ""
        if not self.common.csv:
            yield from _averages(sums, both)

    def _head(self, both: bool) -> str:
        corner = "SRC\\EXE+DST" if self._reads else "SRC+EXE\\DST"
        line = f"{'SRC' + chr(92) + 'DST' if both else corner:>12}{self._comma}"
        line += "".join(f"{'CPU':>7} {n:02d}{self._comma}" for n in range(self._cpus))
        line += "   " if self._cpus else ""
        return line + "".join(f"{'GPU':>7} {n:02d}{self._comma}" for n in range(self.gpus))

    def _is_gpu(self, end: TransferEnd) -> bool:
        return end.letter in DEVICE_LETTERS

    def _row(self, source: TransferEnd, both: bool) -> list[tuple[Repetitions, ...]]:
        """Returns the times of copies from this source to each memory, by direction. They are empty
        if nothing can be measured."""
        tests = {
            number: test
            for number, other in enumerate(self._ends)
            if (test := self._test(source, other, both))
        }
        outcomes: tuple[MeasuredTest, ...] = self.bench.measure(tuple(tests.values()), self.size)
        found = dict(zip(tests, (outcome.timings for outcome in outcomes), strict=True))
        none = (Repetitions((), self.size),) * (2 if both else 1)
        return [found.get(number, none) for number in range(len(self._ends))]

    def _test(self, source: TransferEnd, destination: TransferEnd, both: bool) -> AskedTest:
        if both and source == destination:
            return ()
        ways = [(source, destination), (destination, source)][: 2 if both else 1]
        test = tuple(self._copy(*way) for way in ways)
        gpus = self._is_gpu(source) or self._is_gpu(destination)
        return () if gpus and any(t.executor.letter == "C" for t in test) else test

    def _copy(self, source: TransferEnd, destination: TransferEnd) -> AskedTransfer:
        owner = destination if self._reads else source
        if self._is_gpu(owner):
            count = 1 if self._dma else blocks("p2p", self.variables) or 0
            executor = TransferEnd("D" if self._dma else "G", owner.index)
            return AskedTransfer(source, executor, destination, count)
        return AskedTransfer(source, TransferEnd("C", owner.index), destination, self._threads)

    def _shown(
        self, source: TransferEnd, found: Sequence[tuple[Repetitions, ...]], both: bool
    ) -> Iterator[str]:
        for way in range(2 if both else 1):
            own = [timings[way] for timings in found]
            yield self._line(source, "<- " if way else " ->", [t.rate for t in own])
            if self.common.each:
                rates = [t.rates for t in own]
                for name, of in (("min", min), ("max", max), (" sd", statistics.pstdev)):
                    yield self._line(source, name, [of(each) if each else None for each in rates])
        if both:
            yield self._line(source, "<->", [_sum(timings) for timings in found])

    def _line(self, source: TransferEnd, arrow: str, rates: Sequence[float | None]) -> str:
        kind = "GPU" if self._is_gpu(source) else "CPU"
        line = f"{kind:>5} {source.index:02d} {arrow:>3}{self._comma}"
        for number, rate in enumerate(rates):
            gap = "   " if number == self._cpus and number else ""
            line += f"{gap}{shown(rate, '.2f'):>10}{self._comma}"
        return line


def _sum(timings: Sequence[Repetitions]) -> float | None:
    rates = [timing.rate for timing in timings if timing.rate is not None]
    return sum(rates) if len(rates) == len(timings) else None


def _averages(sums: dict[tuple[bool, bool], list[float]], both: bool) -> Iterator[str]:
    kinds = [(one, other) for one in (False, True) for other in (False, True)]
    names = (f"{'CG'[one]}PU->{'CG'[other]}PU" for one, other in kinds)
    yield " " * 25 + "".join(f"  {name}" for name in names)
    known = [sums.get(kind) for kind in kinds]
    figures = (shown(statistics.fmean(each) if each else None, ".2f") for each in known)
    during = " BiDir" if both else "UniDir"
    yield f"Averages (During {during}):" + "".join(f"{figure:>10}" for figure in figures)
    yield ""


# TransferBench's presets by their names; those that measure from GPU to GPU: a2a, one2all.


NAMES = {
    "a2a": "Tests parallel transfers between all pairs of GPU devices",
    "one2all": "Test all subsets of parallel transfers from one GPU to all others",
    "p2p": "Peer-to-peer device memory bandwidth test",
}
_REFUSED = {
    "": "dryrun pcopy smoketest wallclock",
    "NIC executors are not there yet": "a2a_n nica2a nicp2p nicrings",
    "it draws random transfers": "rsweep",
    "it knows the limits of MI300X only; see linkgauge doctor": "healthcheck",
    "it sweeps the number of a kernel's SubExecutors": "a2asweep scaling schmoo",
    "pods are not there yet": "poda2a podp2p",
    "see linkgauge list device_memory": "hbm",
    "write the tests to a file, or see linkgauge run": "sweep",
}
REFUSED = {
    name: ": ".join(filter(None, ("not measured here", why)))
    for why, names in _REFUSED.items()
    for name in names.split()
}
_MOST_SUBSETS = 8
"""The most devices for one2all, which measures all subsets: 8 devices have 127 subsets."""


class AllToAll(Preset):
    """Copies between all pairs of devices at the same time."""

    def lines(self) -> Iterator[str]:
        variables, count = self.variables, self.gpus
        mode = variables.number("A2A_MODE", 0, 0, 2, ("Copy", "Read-Only", "Write-Only"))
        reads = self.reading()
        dma = variables.switch(
            "USE_DMA_EXEC", False, [f"Using {kind} executor" for kind in ("GFX", "DMA")]
        )
        if dma and mode:
            raise UsageError("USE_DMA_EXEC=1 copies: not with A2A_MODE=1 or 2")
        if variables.number("NUM_QUEUE_PAIRS", 0):
            raise UsageError("NUM_QUEUE_PAIRS: NIC executors are not measured")
        local = variables.switch(
            "A2A_LOCAL", False, [f"{verb} local transfers" for verb in ("Exclude", "Include")]
        )
        letter = self.letter("MEM_TYPE", GPU_TYPES)
        executors = blocks("a2a", variables) or 1
        pairs = [(i, j) for i in range(count) for j in range(count) if local or i != j]
        if not pairs:
            raise UsageError("a2a needs two GPUs, or A2A_LOCAL=1")

        def transfer(one: int, other: int) -> AskedTransfer:
            source = None if mode == 2 else TransferEnd(letter, one)
            destination = None if mode == 1 else TransferEnd(letter, other)
            executor = TransferEnd("D" if dma else "G", other if reads else one)
            return AskedTransfer(source, executor, destination, executors)

        variables.listed |= {
            "MEM_TYPE": (str(int(letter == "F")), f"Using {letter} memory"),
            "NUM_SUB_EXEC": (str(executors), f"Using {executors} subexecutors/CUs per Transfer"),
        }
        return self._all_pairs(pairs, tuple(transfer(*pair) for pair in pairs), dma)

    def _all_pairs(
        self, pairs: Sequence[tuple[int, int]], test: AskedTest, dma: bool
    ) -> Iterator[str]:
        yield from text.listing(self.common, "AllToAll", self.variables.listed)
        kind = "DMA" if dma else "GFX"
        yield from (f"GPU-{kind} All-To-All benchmark:", "=" * 30)
        ends = f"[{int(test[0].source is not None)} Read(s) "
        ends += f"{int(test[0].destination is not None)} Write(s)]"
        yield f"[{self.size} bytes per Transfer] [{kind}:{test[0].count}] {ends}"
        (outcome,) = self.bench.measure((test,), self.size)
        if self.variables.switch("SHOW_DETAILS"):
            yield from (*text.results(self.common, 1, outcome), "")
        rates = {pair: t.rate for pair, t in zip(pairs, outcome.timings, strict=True)}
        names = [f"GPU {number:02d}" for number in range(self.gpus)]
        yield from text.all_to_all(self.common, names, rates, outcome.whole)


class OneToAll(Preset):
    """Copies from one device to each subset of the other devices."""

    def lines(self) -> Iterator[str]:
        variables, count = self.variables, self.gpus
        if count < 2:
            raise UsageError("one2all needs two GPUs")
        if count > _MOST_SUBSETS:
            why = f"one2all measures all subsets of at most {_MOST_SUBSETS} GPUs"
            raise UsageError(f"{why}: set NUM_GPU_DEVICES")
        own = variables.number("EXE_INDEX", 0, 0, count - 1)
        executor, source, destination = (
            variables.text(name, "G").upper() for name in ("SWEEP_EXE", "SWEEP_SRC", "SWEEP_DST")
        )
        if executor not in ("G", "D"):
            raise UsageError(f"SWEEP_EXE={executor}: give G or D")
        for name, letter in (("SWEEP_SRC", source), ("SWEEP_DST", destination)):
            if letter not in (*DEVICE_LETTERS, "N"):
                raise UsageError(f"{name}={letter}: give G, F or N")
        if source == destination == "N" or (executor == "D" and "N" in (source, destination)):
            raise UsageError("one2all copies: SWEEP_SRC and SWEEP_DST are N only alone, and with G")
        pulls = variables.switch("SWEEP_DIR")
        executors = blocks("one2all", variables) or 1

        def transfer(other: int) -> AskedTransfer:
            one, to = (other, own) if pulls else (own, other)
            ends = [
                TransferEnd(a, n) if a != "N" else None
                for a, n in ((source, one), (destination, to))
            ]
            return AskedTransfer(ends[0], TransferEnd(executor, own), ends[1], executors)

        least = variables.number("SWEEP_MIN", 1, 1)
        most = min(variables.number("SWEEP_MAX", count, 1), count - 1)
        others = [number for number in range(count) if number != own]
        subsets = [
            subset for width in range(least, most + 1) for subset in combinations(others, width)
        ]
        if not subsets:
            raise UsageError("no subset is that large: see SWEEP_MIN and SWEEP_MAX")
        variables.listed |= {
            "EXE_INDEX": (str(own), f"Executing on GPU {own}"),
            "NUM_GPU_SE": (str(executors), f"Using {executors} subExecutors/CUs per Transfer"),
        }
        return self._subsets(others, subsets, tuple(transfer(other) for other in others))

    def _subsets(
        self, others: Sequence[int], subsets: Sequence[tuple[int, ...]], test: AskedTest
    ) -> Iterator[str]:
        yield from text.listing(self.common, "One-To-All", self.variables.listed)
        separator = self.separator
        yield f"Executing ({test[0].source or 'N'} -> {test[0].executor} -> *)"
        yield "".join(f"   GPU {other:<3}  {separator}" for other in others)
        if not self.common.csv:
            yield "-------------" * len(others)
        of = dict(zip(others, test, strict=True))
        for subset in subsets:
            chosen = tuple(of[other] for other in subset)
            (outcome,) = self.bench.measure((chosen,), self.size)
            rates = dict(zip(subset, (t.rate for t in outcome.timings), strict=True))
            texts = (shown(rates[n], ".3f") if n in rates else "" for n in others)
            cells = "".join(f"  {text:>8}  {separator}" for text in texts)
            transfers = "".join(
                f" ({t.source or 'N'} {t.executor} {t.destination or 'N'})" for t in chosen
            )
            yield f"{cells} {len(subset)} {chosen[0].count}{transfers}"


PRESETS: Mapping[str, type[PeerToPeer | AllToAll | OneToAll]] = {
    "p2p": PeerToPeer, "a2a": AllToAll, "one2all": OneToAll,
}  # fmt: skip
"""The preset of each name. Its `lines` raise UsageError for invalid variables before anything is
measured."""
