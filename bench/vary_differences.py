"""How often `linkgauge vary` calls settings different: of the same placement twice, and of half the
CPUs.

Each comparison is a `vary` of its own, at a significance of 1 %: of 40 that compare a placement
with itself, at most 2 may be called different; of 40 that compare all CPUs with half of them, all
must be, for benchmarks whose threads the machine has a CPU for. Beside other load that the kernel
shares CPUs with, half the CPUs may well do as much: `--real-time` gives `vary` real-time priority,
where that is allowed (root), so that the CPUs are its own. `--machine` measures a simulated one.
Prints a markdown table; exit code 1 if a bar is missed. Needs linkgauge on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec

from linkgauge.model.documents.variation import Variation

COMPARISONS, MOST_SAME = 40, 2
PRIORITY = 10
"""Real-time priority, of 1 to 99."""
BENCHMARKS = ("cpu_primes_all",)
QUICK = ("--max-time", "0.1", "--size", "16M")
Cell = tuple[str, str, str]


def vary(benchmarks: Sequence[str], settings: Sequence[str], more: Sequence[str]) -> Variation:
    """One comparison. Raises RuntimeError if it fails."""
    with tempfile.TemporaryDirectory() as out:
        command = [
            sys.executable, "-m", "linkgauge", "vary", *benchmarks, *settings, *more,
            "--out", out, "--json",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
    return msgspec.json.decode(done.stdout, type=Variation)


def directions(variation: Variation) -> Iterator[tuple[Cell, str]]:
    """What the second setting makes of each cell."""
    for cell in variation.cells:
        yield (cell.benchmark, cell.row, cell.column), cell.settings[1].direction


def halves(cpus: Sequence[int]) -> tuple[str, str]:
    """All of them, and the first half."""
    every, half = (",".join(map(str, own)) for own in (cpus, cpus[: len(cpus) // 2]))
    return every, half


def campaign(name: str, pair: tuple[str, str], options: argparse.Namespace) -> Counter[Cell]:
    """How many comparisons of each cell are called different."""
    settings = [word for value in pair for word in ("--cpus", value)]
    more = [*QUICK, *(("--machine", options.machine) if options.machine else ())]
    different: Counter[Cell] = Counter()
    for number in range(options.comparisons):
        for cell, direction in directions(vary(options.benchmarks, settings, more)):
            different[cell] += direction in ("better", "worse")
        print(f"{name}: {number + 1} of {options.comparisons}", dict(different), file=sys.stderr)
    return different


def cpus_of(machine: str | None) -> list[int]:
    """Those that may be used, here or on a simulated machine."""
    if machine is None:
        return sorted(os.sched_getaffinity(0))
    from linkgauge.backends.sim.backend import simulate
    from linkgauge.backends.sim.description import load
    from linkgauge.model.settings import EngineSettings, Simulation

    host = simulate(Simulation(*load(machine)), EngineSettings()).host()
    return sorted(cpu for node in host.nodes for cpu in node.cpus)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comparisons", type=int, default=COMPARISONS)
    parser.add_argument("--machine", help="a simulated machine")
    parser.add_argument("--real-time", action="store_true", help="at real-time priority")
    parser.add_argument("--only", choices=("same", "half"), help="one of the two")
    parser.add_argument("benchmarks", nargs="*", default=list(BENCHMARKS))
    options = parser.parse_args()
    if options.real_time:
        with suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    every, half = halves(cpus_of(options.machine))
    real_time = os.sched_getscheduler(0) == os.SCHED_FIFO
    print("| settings | priority | cell | called different | bar |\n|---|---|---|---|---|")
    missed = False
    for name, pair in (("same", (every, every)), ("half", (every, half))):
        if options.only not in (None, name):
            continue
        bar = f"at most {MOST_SAME}" if name == "same" else "all"
        for cell, count in campaign(name, pair, options).items():
            low = count <= MOST_SAME if name == "same" else count == options.comparisons
            missed |= not low
            print(
                f"| {' against '.join(pair)} | {'real-time' if real_time else 'normal'} | "
                f"{' '.join(cell)} | {count} of {options.comparisons} | {bar} |"
            )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
