"""Copies by UCX between the memories of two GPUs, beside ucx_perftest and a plain program.

    python bench/ucx_gpus.py [SECONDS] [SIZE_MIB]

Runs of linkgauge, ucx_perftest and the plain program alternate for most of so many seconds; a ratio
is of two neighbours in time. Then copies between hosts and GPUs, by UCX's own choice and over the
loopback, must carry every byte. Needs two GPUs, gcc, the wheel libucx (its module for CUDA calls
the driver alone, whatever its version) and linkgauge on PYTHONPATH. The exit status is 1 if a copy
fails or a median ratio misses the bar.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import ucx_programs
from linkgauge.backends.host_memory import HostRank
from linkgauge.machine.interfaces import read_interfaces
from ucx_programs import Failed

BAR = 0.05
SECONDS, SIZE_MIB = 100.0, 256
SMALL = 16 << 20
"""Bytes of copies that only have to carry every byte."""
LEAST_ROUNDS = 3
LOOPS = 32
"""Copies of a sample: 20 ms and more of NVLink, at 256 MiB."""
ONE_TAKES = 30.0
"""Seconds that one program may take."""
MOVED = 256 << 30
"""Bytes that ucx_perftest moves: most of a second of NVLink."""
SWAPPED = {"CUDA_VISIBLE_DEVICES": "1,0"}
"""So that the client of ucx_perftest, which has its second GPU, moves from the same one."""
WORDS = {"UCX_PROTO_INFO": "y", "UCX_LOG_LEVEL": "info"}
"""What makes UCX say what it does."""


def carried() -> dict[str, str]:
    """What has to arrive, by what it shows."""
    node = HostRank(0, "UCX").home.index
    host0, host1, gpu0, gpu1 = f"host:{node}@0", f"host:{node}@1", "cuda:0@0", "cuda:1@1"
    found = {
        "got by the destination": f"{gpu0} -> {gpu1} by {gpu1}.ucx",
        "host and GPU at once": f"{host0} -> {gpu1} by ucx & {gpu0} -> {host1} by ucx",
    }
    loopback = next((at for at, nic in enumerate(read_interfaces()) if nic.is_loopback), None)
    if loopback is not None:
        over = f"by nic:{loopback}.ucx"
        found["over the loopback"] = f"{gpu0} -> {gpu1} {over} & {host1} -> {gpu0} {over}"
    return found


EXPLAINED: set[str] = set()


def explain(transfers: str, failed: Failed) -> None:
    """Prints what failed, and what UCX says of the first that does."""
    print(f"FAILED: {failed}", flush=True)
    if EXPLAINED:
        return
    EXPLAINED.add(transfers)
    try:
        ucx_programs.linkgauge(transfers, SMALL, 4, 0.2, WORDS, ONE_TAKES)
    except Failed as again:
        print(f"and with UCX's words: {again}", flush=True)
    else:
        print("a second time, with 16 MiB, it did not fail", flush=True)


def check_carried(until: float) -> bool:
    """Whether everything arrives."""
    good = True
    for name, transfers in carried().items():
        begun = time.monotonic()
        if begun > until:
            print(f"{name:24} not tried: no time is left", flush=True)
            return False
        try:
            rate = ucx_programs.linkgauge(transfers, SMALL, 4, 0.2, {}, ONE_TAKES)
        except Failed as failed:
            good = False
            explain(transfers, failed)
        else:
            took = time.monotonic() - begun
            print(f"{name:24} verified, {rate / 1e9:8.2f} GB/s  ({took:.0f} s)", flush=True)
    return good


def main() -> int:
    begun = time.monotonic()
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    size = (int(sys.argv[2]) if len(sys.argv) > 2 else SIZE_MIB) << 20
    transfers = "cuda:0@0 -> cuda:1@1 by ucx"
    with tempfile.TemporaryDirectory() as folder:
        runs: dict[str, Callable[[], float]] = {
            "linkgauge": lambda: ucx_programs.linkgauge(
                transfers, size, LOOPS, 1.0, timeout=ONE_TAKES
            ),
            "ucx_perftest": lambda: ucx_programs.ucx_perftest(
                size, SWAPPED, memory="cuda", moved=MOVED, timeout=ONE_TAKES
            ),
        }
        try:
            program = ucx_programs.compiled(Path(folder))
        except Failed as failed:
            print(f"no plain program: {failed}", flush=True)
        else:
            runs["plain program"] = lambda: ucx_programs.plain(
                program, "cuda", size, LOOPS, 1.0, timeout=ONE_TAKES
            )
        rates, broken = alternate(runs, begun + 0.7 * seconds, transfers)
    good = report(rates) and not broken
    return 0 if check_carried(begun + seconds) and good else 1


def alternate(
    runs: dict[str, Callable[[], float]], until: float, transfers: str
) -> tuple[dict[str, list[float]], bool]:
    """What each has reached, round by round, and whether one failed: it drops out."""
    rates: dict[str, list[float]] = {name: [] for name in runs}
    broken, longest = False, 0.0
    while len(rates["linkgauge"]) < LEAST_ROUNDS or time.monotonic() + longest < until:
        begun = time.monotonic()
        for name, run in tuple(runs.items()):
            try:
                rates[name].append(run())
            except Failed as failed:
                broken = True
                explain(transfers, failed) if name == "linkgauge" else print(f"FAILED: {failed}")
                del runs[name], rates[name]
        if "linkgauge" not in runs:
            return {}, True
        longest = max(longest, time.monotonic() - begun)
    return rates, broken


def report(rates: dict[str, list[float]]) -> bool:
    """Prints a table; whether all medians are within the bar."""
    good = len(rates) > 1
    for name, found in rates.items():
        words = f"{name:24} {statistics.median(found) / 1e9:8.2f} GB/s"
        words += f" ({min(found) / 1e9:.2f} to {max(found) / 1e9:.2f}, {len(found)} rounds)"
        if name != "linkgauge":
            ratios = sorted(own / its for own, its in zip(rates["linkgauge"], found, strict=True))
            ratio = statistics.median(ratios)
            good &= (met := abs(ratio - 1) <= BAR)
            words += f"  linkgauge/it {ratio:.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f}): "
            words += "within 5 %" if met else "MISSED"
        print(words, flush=True)
    return good


if __name__ == "__main__":
    sys.exit(main())
