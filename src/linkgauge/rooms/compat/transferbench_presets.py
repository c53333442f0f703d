"""TransferBench's presets by their names; those that measure from GPU to GPU: a2a, one2all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from linkgauge.cli.tool import UsageError

from . import transferbench_text as text
from .transferbench_cases import Bench
from .transferbench_environment import Common, Variables, index
from .transferbench_notation import DEVICE_LETTERS, AskedTest, AskedTransfer, End
from .transferbench_p2p import PeerToPeer
from .transferbench_preset import GPU_TYPES, Preset, blocks

NAMES = {
    "a2a": "Tests parallel transfers between all pairs of GPU devices",
    "one2all": "Test all subsets of parallel transfers from one GPU to all others",
    "p2p": "Peer-to-peer device memory bandwidth test",
}
_ELSEWHERE = "not measured here"
_COUNTS = f"{_ELSEWHERE}: it sweeps the number of a kernel's SubExecutors"
_NIC = f"{_ELSEWHERE}: NIC executors are not there yet"
REFUSED = {
    "a2a_n": _NIC,
    "a2asweep": _COUNTS,
    "dryrun": _ELSEWHERE,
    "hbm": f"{_ELSEWHERE}: see linkgauge list device_memory",
    "healthcheck": f"{_ELSEWHERE}: it knows the limits of MI300X only; see linkgauge doctor",
    "nica2a": _NIC,
    "nicp2p": _NIC,
    "nicrings": _NIC,
    "pcopy": _ELSEWHERE,
    "poda2a": f"{_ELSEWHERE}: pods are not there yet",
    "podp2p": f"{_ELSEWHERE}: pods are not there yet",
    "rsweep": f"{_ELSEWHERE}: it draws random transfers",
    "scaling": _COUNTS,
    "schmoo": _COUNTS,
    "smoketest": _ELSEWHERE,
    "sweep": f"{_ELSEWHERE}: write the tests to a file, or see linkgauge run",
    "wallclock": _ELSEWHERE,
}
_MOST_SUBSETS = 8
"""Devices of which one2all measures all subsets: with 8, 127 of them."""


class AllToAll(Preset):
    """All pairs of devices at the same time."""

    def lines(self) -> Iterator[str]:
        variables, count = self.variables, self.gpus
        mode = variables.number("A2A_MODE", 0, 0, 2)
        dma = variables.switch("USE_DMA_EXEC")
        if dma and mode:
            raise UsageError("USE_DMA_EXEC=1 copies: not with A2A_MODE=1 or 2")
        if variables.number("NUM_QUEUE_PAIRS", 0):
            raise UsageError("NUM_QUEUE_PAIRS: NIC executors are not measured")
        local = variables.switch("A2A_LOCAL")
        letter = self.letter("MEM_TYPE", GPU_TYPES)
        executors = blocks("a2a", variables) or 1
        pairs = [(i, j) for i in range(count) for j in range(count) if local or i != j]
        if not pairs:
            raise UsageError("a2a needs two GPUs, or A2A_LOCAL=1")

        def transfer(one: int, other: int) -> AskedTransfer:
            source = None if mode == 2 else End(letter, one)
            destination = None if mode == 1 else End(letter, other)
            executor = End("D" if dma else "G", other if self.reads else one)
            return AskedTransfer(source, executor, destination, executors)

        own = {
            "A2A_LOCAL": (str(int(local)), f"{'Include' if local else 'Exclude'} local transfers"),
            "A2A_MODE": (str(mode), ("Copy", "Read-Only", "Write-Only")[mode]),
            "MEM_TYPE": (str(int(letter == "F")), f"Using {letter} memory"),
            "NUM_GPU_DEVICES": (str(count), f"Using {count} GPUs"),
            "NUM_SUB_EXEC": (str(executors), f"Using {executors} subexecutors/CUs per Transfer"),
            "USE_DMA_EXEC": (str(int(dma)), f"Using {'DMA' if dma else 'GFX'} executor"),
            "USE_REMOTE_READ": self.reading,
        }
        return self._all_pairs(pairs, tuple(transfer(*pair) for pair in pairs), own, dma)

    def _all_pairs(
        self,
        pairs: Sequence[tuple[int, int]],
        test: AskedTest,
        own: dict[str, tuple[str, str]],
        dma: bool,
    ) -> Iterator[str]:
        yield from text.listing(self.common, "AllToAll", own)
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
    """From one device to all subsets of the others."""

    def lines(self) -> Iterator[str]:
        variables, count = self.variables, self.gpus
        if count < 2:
            raise UsageError("one2all needs two GPUs")
        if count > _MOST_SUBSETS:
            why = f"one2all measures all subsets of at most {_MOST_SUBSETS} GPUs"
            raise UsageError(f"{why}: set NUM_GPU_DEVICES")
        own = index(variables, "EXE_INDEX", count)
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
            ends = [End(a, n) if a != "N" else None for a, n in ((source, one), (destination, to))]
            return AskedTransfer(ends[0], End(executor, own), ends[1], executors)

        least = variables.number("SWEEP_MIN", 1, 1)
        most = min(variables.number("SWEEP_MAX", count, 1), count - 1)
        others = [number for number in range(count) if number != own]
        subsets = [
            subset for width in range(least, most + 1) for subset in combinations(others, width)
        ]
        if not subsets:
            raise UsageError("no subset is that large: see SWEEP_MIN and SWEEP_MAX")
        listed = {
            "EXE_INDEX": (str(own), f"Executing on GPU {own}"),
            "NUM_GPU_DEVICES": (str(count), f"Using {count} GPUs"),
            "NUM_GPU_SE": (str(executors), f"Using {executors} subExecutors/CUs per Transfer"),
        }
        test = tuple(transfer(other) for other in others)
        return self._subsets(others, subsets, test, listed)

    def _subsets(
        self,
        others: Sequence[int],
        subsets: Sequence[tuple[int, ...]],
        test: AskedTest,
        listed: dict[str, tuple[str, str]],
    ) -> Iterator[str]:
        yield from text.listing(self.common, "One-To-All", listed)
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
            cells = (
                f"  {'N/A' if rates[n] is None else f'{rates[n]:.3f}':>8}  {separator}"
                if n in rates
                else f"            {separator}"
                for n in others
            )
            transfers = "".join(
                f" ({t.source or 'N'} {t.executor} {t.destination or 'N'})" for t in chosen
            )
            yield f"{''.join(cells)} {len(subset)} {chosen[0].count}{transfers}"


def lines(
    name: str, bench: Bench, common: Common, variables: Variables, size: int
) -> Iterator[str]:
    """What the preset prints, while it measures. Raises UsageError for variables that do not fit,
    before anything is measured."""
    given = bench, common, variables, size
    if name == "p2p":
        return PeerToPeer(*given).lines()
    return AllToAll(*given).lines() if name == "a2a" else OneToAll(*given).lines()
