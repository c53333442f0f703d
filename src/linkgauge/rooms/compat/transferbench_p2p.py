"""TransferBench's preset p2p: copies between all nodes and devices."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence

from linkgauge.cli.tool import UsageError

from . import transferbench_text as text
from .transferbench_cases import Bench, Outcome, Timing
from .transferbench_environment import TOOL, Common, Variables
from .transferbench_notation import DEVICE_LETTERS, AskedTest, AskedTransfer, End
from .transferbench_preset import CPU_TYPES, GPU_TYPES, Preset, blocks


class PeerToPeer(Preset):
    """Copies between all nodes and devices, one way and both ways at once. Host threads do not
    reach the memory of devices: what they would have to copy there is N/A, as in the tool's build
    for NVIDIA."""

    def __init__(self, bench: Bench, common: Common, variables: Variables, size: int) -> None:
        super().__init__(bench, common, variables, size)
        self._cpus = variables.number("NUM_CPU_DEVICES", len(bench.nodes))
        if self._cpus > len(bench.nodes):
            raise UsageError(f"NUM_CPU_DEVICES={self._cpus}: there are {len(bench.nodes)} CPUs")
        self._dma = variables.switch("USE_GPU_DMA")
        self._mode = variables.number("P2P_MODE", 0, 0, 2)
        self._threads = variables.number("NUM_CPU_SE", min(4, bench.threads), 1, 1 << 16)
        cpu = self.letter("CPU_MEM_TYPE", CPU_TYPES)
        gpu = self.letter("GPU_MEM_TYPE", GPU_TYPES)
        self._ends = [End(cpu, n) for n in range(self._cpus)]
        self._ends += [End(gpu, n) for n in range(self.gpus)]

    def lines(self) -> Iterator[str]:
        if not self._ends:
            raise UsageError("p2p needs a CPU or a GPU")
        return self._both()

    def _both(self) -> Iterator[str]:
        kind = "DMA" if self._dma else "GFX"
        yield from text.listing(
            self.common,
            "P2P",
            {
                "NUM_CPU_DEVICES": (str(self._cpus), f"Using {self._cpus} CPUs"),
                "NUM_CPU_SE": (str(self._threads), f"Using {self._threads} CPU threads"),
                "NUM_GPU_DEVICES": (str(self.gpus), f"Using {self.gpus} GPUs"),
                "P2P_MODE": (
                    str(self._mode),
                    ("Uni + Bi", "Unidirectional", "Bidirectional")[self._mode],
                ),
                "USE_GPU_DMA": (str(int(self._dma)), f"Using GPU-{kind} as GPU executor"),
                "USE_REMOTE_READ": self.reading,
            },
        )
        yield f"Bytes Per Direction{self.separator}{self.size}"
        if self._cpus and self.gpus:
            why = "host threads do not reach GPU memory: N/A where a CPU would copy there"
            print(f"{TOOL}: {why}", file=sys.stderr)
        for both in (False, True):
            if self._mode != (1 if both else 2):
                yield from self._matrix(both)

    def _matrix(self, both: bool) -> Iterator[str]:
        reads = ("Remote", "Local") if self.reads else ("Local", "Remote")
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
        corner = "SRC\\EXE+DST" if self.reads else "SRC+EXE\\DST"
        comma = "," if self.common.csv else ""
        line = f"{'SRC' + chr(92) + 'DST' if both else corner:>12}{comma}"
        line += "".join(f"{'CPU':>7} {n:02d}{comma}" for n in range(self._cpus))
        line += "   " if self._cpus else ""
        return line + "".join(f"{'GPU':>7} {n:02d}{comma}" for n in range(self.gpus))

    def _is_gpu(self, end: End) -> bool:
        return end.letter in DEVICE_LETTERS

    def _row(self, source: End, both: bool) -> list[tuple[Timing, ...]]:
        """The timings of each direction from this source to all ends; without times where nothing
        can be measured."""
        tests = {
            number: test
            for number, other in enumerate(self._ends)
            if (test := self._test(source, other, both))
        }
        outcomes: tuple[Outcome, ...] = self.bench.measure(tuple(tests.values()), self.size)
        found = dict(zip(tests, (outcome.timings for outcome in outcomes), strict=True))
        none = (Timing((), self.size),) * (2 if both else 1)
        return [found.get(number, none) for number in range(len(self._ends))]

    def _test(self, source: End, destination: End, both: bool) -> AskedTest:
        if both and source == destination:
            return ()
        ways = [(source, destination), (destination, source)][: 2 if both else 1]
        test = tuple(self._copy(*way) for way in ways)
        gpus = self._is_gpu(source) or self._is_gpu(destination)
        return () if gpus and any(t.executor.letter == "C" for t in test) else test

    def _copy(self, source: End, destination: End) -> AskedTransfer:
        owner = destination if self.reads else source
        if self._is_gpu(owner):
            count = 1 if self._dma else blocks("p2p", self.variables) or 0
            executor = End("D" if self._dma else "G", owner.index)
            return AskedTransfer(source, executor, destination, count)
        return AskedTransfer(source, End("C", owner.index), destination, self._threads)

    def _shown(self, source: End, found: Sequence[tuple[Timing, ...]], both: bool) -> Iterator[str]:
        for way in range(2 if both else 1):
            own = [timings[way] for timings in found]
            yield self._line(source, "<- " if way else " ->", [t.rate for t in own])
            if self.common.each:
                rates = [t.rates for t in own]
                yield self._line(source, "min", [min(each, default=None) for each in rates])
                yield self._line(source, "max", [max(each, default=None) for each in rates])
                deviations = [statistics.pstdev(each) if each else None for each in rates]
                yield self._line(source, " sd", deviations)
        if both:
            yield self._line(source, "<->", [_sum(timings) for timings in found])

    def _line(self, source: End, arrow: str, rates: Sequence[float | None]) -> str:
        comma = "," if self.common.csv else ""
        line = f"{'GPU' if self._is_gpu(source) else 'CPU':>5} {source.index:02d} {arrow:>3}{comma}"
        for number, rate in enumerate(rates):
            gap = "   " if number == self._cpus and number else ""
            line += f"{gap}{'N/A' if rate is None else f'{rate:.2f}':>10}{comma}"
        return line


def _sum(timings: Sequence[Timing]) -> float | None:
    rates = [timing.rate for timing in timings if timing.rate is not None]
    return sum(rates) if len(rates) == len(timings) else None


def _averages(sums: dict[tuple[bool, bool], list[float]], both: bool) -> Iterator[str]:
    kinds = [(one, other) for one in (False, True) for other in (False, True)]
    names = (f"{'CG'[one]}PU->{'CG'[other]}PU" for one, other in kinds)
    yield " " * 25 + "".join(f"  {name}" for name in names)
    known = [sums.get(kind) for kind in kinds]
    figures = (f"{statistics.fmean(each):.2f}" if each else "N/A" for each in known)
    during = " BiDir" if both else "UniDir"
    yield f"Averages (During {during}):" + "".join(f"{figure:>10}" for figure in figures)
    yield ""
