"""TCP and UCX between two processes of this machine, beside iperf3, a plain program, ucx_perftest.

    python bench/network.py [ROUNDS] [SECONDS]

Runs alternate, with the same size: linkgauge, then each other program. The table has the medians
over the rounds, the median of the rounds' ratios (linkgauge's rate to the other's) with its range,
and the range of the other's own rates. The plain program (ucx_references.c) has the same kind of
pages, window and copies in a sample as linkgauge; ucx_perftest has pages of System V, and prints
one mean. Where other processes want the CPUs, none of it means anything: the load is printed, too.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import ucx_programs
from ucx_programs import Failed, free_port, linkgauge, plain, together, ucx_perftest

ROUNDS = 7
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 2.0
"""What a run measures for, about."""
SAMPLE = 256 << 20
"""Bytes of a sample."""
LOOPBACK = {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"}
SHARED = {"UCX_TLS": "posix,sysv,cma,self"}
BY_TCP, BY_UCX = "host:0@0 -> host:0@1 by nic:0.tcp", "host:0@0 -> host:0@1 by ucx"


class Case(NamedTuple):
    """What is compared, at so many bytes; `others` give other programs' bytes/s."""

    name: str
    transfers: str
    size: int
    others: Mapping[str, Callable[[int], float]]
    environment: Mapping[str, str] = {}


def iperf3(size: int) -> float:
    """It keeps one buffer at each end, and checks nothing."""
    tool = shutil.which("iperf3")
    if tool is None:
        raise Failed("iperf3 is missing (Debian: iperf3)")
    port = str(free_port())
    server = [tool, "-s", "-1", "-B", "127.0.0.1", "-p", port]
    client = [
        tool,
        "-c",
        "127.0.0.1",
        "-p",
        port,
        "-t",
        f"{SECONDS:.0f}",
        "-l",
        str(size),
        "--json",
    ]
    said = together([server, client], [{}, {}], apart=1.0)[1]
    return float(json.loads(said)["end"]["sum_received"]["bits_per_second"]) / 8


def loops(size: int) -> int:
    return max(1, SAMPLE // size)


def by_ucx(name: str, size: int, environment: Mapping[str, str], program: Path) -> Case:
    def of(memory: str) -> Callable[[int], float]:
        return lambda size: plain(program, memory, size, loops(size), SECONDS, environment)

    others = {
        "plain": of("huge"),
        "plain, System V": of("sysv"),
        "ucx_perftest": lambda size: ucx_perftest(size, environment),
    }
    return Case(name, BY_UCX, size, others, environment)


def compare(case: Case, rounds: int) -> None:
    ours: list[float] = []
    theirs: dict[str, list[float]] = {name: [] for name in case.others}
    for _ in range(rounds):
        count = loops(case.size)
        ours.append(linkgauge(case.transfers, case.size, count, SECONDS, case.environment))
        for name, other in case.others.items():
            theirs[name].append(other(case.size))
    for name, rates in theirs.items():
        ratios = sorted(own / other for own, other in zip(ours, rates, strict=True))
        print(
            f"{case.name:22} {case.size >> 10:>6} {name:16} {statistics.median(ours) / 1e9:>9.2f} "
            f"{statistics.median(rates) / 1e9:>7.2f}  {statistics.median(ratios):.3f} "
            f"({ratios[0]:.2f} to {ratios[-1]:.2f})  {min(rates) / 1e9:.2f} to "
            f"{max(rates) / 1e9:.2f}  load {os.getloadavg()[0]:.1f}",
            flush=True,
        )


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    print(f"{'':22} {'KiB':>6} {'beside':16} {'linkgauge':>9} {'it':>7}  GB/s, ratio, its range")
    with tempfile.TemporaryDirectory() as folder:
        cases = [
            Case("TCP, one stream", BY_TCP, size, {"iperf3": iperf3})
            for size in (128 << 10, 1 << 20)
        ]
        try:
            program = ucx_programs.compiled(Path(folder))
        except Failed as failed:
            print(f"no plain program: {failed}")
        else:
            for name, ways in (("UCX, shared memory", SHARED), ("UCX, TCP, loopback", LOOPBACK)):
                cases += [by_ucx(name, size, ways, program) for size in (1 << 20, 16 << 20)]
        for case in cases:
            try:
                compare(case, rounds)
            except Failed as failed:
                print(f"{case.name:22} {case.size >> 10:>6} {failed}", flush=True)


if __name__ == "__main__":
    main()
