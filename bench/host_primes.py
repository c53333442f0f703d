"""Compare the search for primes with Debian's sysbench: the same events, in turns.

One thread, and one on each CPU. Both programs have the same CPUs, and a run of each counts the same
events, so many that it lasts about `--seconds`. A ratio is of two neighbours in time, the fastest
of three runs each: what disturbs a run on a busy host is not the program. Both have real-time
priority where that is allowed (root), so that no other process comes between: beside others, the
ratio would be of placement, which sysbench leaves to the kernel. Pairs are added until the ratio's
interval is narrow, or time is up. `--markdown` prints the row of docs/benchmarks.md. Needs
sysbench (`apt-get install sysbench`), and linkgauge on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from statistics import median, quantiles

import msgspec

from host_copy import describe, take_turns
from linkgauge.backends.operations.by_threads import PrimesGroup
from linkgauge.backends.protocol import run
from linkgauge.machine.host import read_host
from linkgauge.model.operations.operation import PRIMES
from linkgauge.model.stats.summary import median_interval

BAR = 0.97, 1.03
"""Bars for the ratio's median."""
ROUNDS, NARROW, SECONDS = 9, 0.005, 30.0
"""Pairs at a time, until half the interval is this narrow or a case has taken this many seconds."""
RATE = re.compile(r"events per second:\s*([0-9.]+)")


class Outcome(msgspec.Struct, frozen=True):
    """Events per second of each, the ratio of ours to sysbench's, its interval, and the quartiles
    of the pairs' ratios."""

    threads: int
    ours: float
    reference: float
    ratio: float
    interval: tuple[float, float]
    quartiles: tuple[float, float]
    pairs: int

    @property
    def holds(self) -> bool:
        return BAR[0] <= self.ratio <= BAR[1]


def ours(cpus: Sequence[int], events: int) -> float:
    """Seconds from the first thread's start to the last one's end, which is what sysbench divides
    by: on a quiet machine the same as by the sum of the threads' own rates."""
    with closing(PrimesGroup([cpus], PRIMES["primes"])) as group:
        return run(group, events).span


def sysbench(program: str, cpus: Sequence[int], events: int) -> float:
    """The same of sysbench. Raises RuntimeError if it fails."""
    command = [
        program, "cpu", f"--cpu-max-prime={PRIMES['primes']}", f"--threads={len(cpus)}",
        f"--events={events}", "--time=0", "run",
    ]  # fmt: skip
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)  # which it inherits
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        os.sched_setaffinity(0, mine)
    found = RATE.search(done.stdout)
    if done.returncode != 0 or found is None:
        raise RuntimeError(f"sysbench failed: {(done.stderr or done.stdout).strip()[:200]}")
    return events / float(found[1])


def take_precedence() -> str:
    """Asks for real-time priority, which threads and programs started from here inherit. Returns
    whether they have it, for the heading of the table."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError as error:
        return f"beside other processes (no real-time priority: {error.strerror})"
    return "at real-time priority"


def compare(program: str, cpus: Sequence[int], seconds: float) -> Outcome:
    trial = 200 * len(cpus)
    ours(cpus, trial)  # brings the CPUs up to speed
    events = max(trial, round(trial * seconds / ours(cpus, trial)))
    runs: dict[str, Callable[[], float]] = {
        "": lambda: ours(cpus, events),
        "sysbench": lambda: sysbench(program, cpus, events),
    }
    begun = time.monotonic()
    mine: list[float] = []
    theirs: list[float] = []
    while True:
        taken = take_turns(runs, ROUNDS)
        mine += taken[""]
        theirs += taken["sysbench"]
        ratios = sorted(their / own for own, their in zip(mine, theirs, strict=True))
        low, high = median_interval(ratios) or (ratios[0], ratios[-1])
        if high - low <= 2 * NARROW or time.monotonic() - begun > SECONDS:
            break
    first, _, third = quantiles(ratios)
    return Outcome(
        len(cpus), events / median(mine), events / median(theirs), median(ratios), (low, high),
        (first, third), len(ratios),
    )  # fmt: skip


def show(one: Outcome) -> str:
    low, high = one.interval
    first, third = one.quartiles
    return (
        f"{one.threads:>7}{one.ours:>12.1f}{one.reference:>12.1f}   {one.ratio:.3f} "
        f"[{low:.3f}, {high:.3f}]   {first:.3f} … {third:.3f}{one.pairs:>8}   "
        f"{BAR[0]} … {BAR[1]}{'' if one.holds else '  MISSED'}"
    )


def markdown(about: str, outcomes: Sequence[Outcome]) -> str:
    cells = (
        f"{one.ours:.0f}, {one.ratio:.3f} [{one.interval[0]:.3f}, {one.interval[1]:.3f}]"
        for one in outcomes
    )
    return f"| {about} | {' | '.join(cells)} |"


def main() -> int:
    """Prints each case; 1 if one misses the bar or cannot be measured, 0 without sysbench."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.2, help="about how long a run lasts")
    parser.add_argument("--markdown", action="store_true", help="print the row of the table, too")
    options = parser.parse_args()
    program = shutil.which("sysbench")
    if program is None:
        print("host_primes: skipped: sysbench is not installed (apt-get install sysbench)")
        return 0
    host = read_host()
    cpus = [cpu for node in host.nodes for cpu in node.cpus]
    largest = max(host.nodes, key=lambda node: len(node.cpus))
    outcomes = []
    print(f"{describe(host, largest)}, {take_precedence()}")
    print("threads    events/s    sysbench   ratio                  quartiles          pairs   bar")
    try:
        for used in dict.fromkeys((tuple(cpus[:1]), tuple(cpus))):
            outcomes.append(compare(program, used, options.seconds))
            print(show(outcomes[-1]), flush=True)
    except (RuntimeError, OSError) as error:
        print(f"host_primes: {error}", file=sys.stderr)
        return 1
    if options.markdown:
        print(markdown(describe(host, largest), outcomes))
    return 0 if all(one.holds for one in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
