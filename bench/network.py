"""TCP and UCX between two processes of this machine, beside iperf3 and ucx_perftest.

    python bench/network.py [ROUNDS]

Runs alternate: one of linkgauge, one of the other tool, with the same size. The table has the
medians over the rounds, and the median of the rounds' ratios with its range.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

PORT = 7733
ROUNDS = 7
SECONDS = 2
"""What a run measures for, about."""


class Case(NamedTuple):
    """What is compared, at so many bytes; `other` gives the other tool's bytes/s."""

    name: str
    transfers: str
    size: int
    other: Callable[[int], float]
    environment: dict[str, str]


def linkgauge(case: Case) -> float:
    """Bytes/s of a copy between two ranks, every byte of which is verified."""
    command = [sys.executable, "-m", "linkgauge", "copy", case.transfers, "--size", str(case.size),
               "--max-time", str(SECONDS), "--json"]  # fmt: skip
    told = {
        **os.environ, **case.environment, "LINKGAUGE_RANKS": "2", "LINKGAUGE_TOKEN": "bench-only",
        "LINKGAUGE_FIRST": f"127.0.0.1:{PORT}", "LINKGAUGE_HISTORY": "none",
        "LINKGAUGE_NO_REPORT": "1",
    }  # fmt: skip
    ranks = [
        subprocess.Popen(command, env={**told, "LINKGAUGE_RANK": str(rank)}, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for rank in (0, 1)
    ]  # fmt: skip
    said, problem = ranks[0].communicate(timeout=120)
    ranks[1].communicate(timeout=120)
    try:
        (cell,) = json.loads(said)["results"][0]["cells"]
    except (ValueError, KeyError, IndexError):
        sys.exit(f"{case.name}: {problem or said}")
    if not cell["verified"]:
        sys.exit(f"{case.name}: not verified: {cell}")
    return float(cell["summary"]["median"])


def pair(server: Sequence[str], client: Sequence[str], environment: dict[str, str]) -> str:
    """What the client of two processes prints."""
    told = {**os.environ, **environment}
    serving = subprocess.Popen(server, env=told, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)  # fmt: skip
    try:
        time.sleep(1)
        done = subprocess.run(client, env=told, capture_output=True, text=True, timeout=120,
                              check=True)  # fmt: skip
    finally:
        serving.terminate()
        serving.wait()
    return done.stdout


def iperf3(size: int) -> float:
    """It keeps one buffer at each end, and checks nothing."""
    server = ["iperf3", "-s", "-1", "-B", "127.0.0.1", "-p", str(PORT + 1)]
    client = ["iperf3", "-c", "127.0.0.1", "-p", str(PORT + 1), "-t", str(SECONDS), "-l",
              str(size), "--json"]  # fmt: skip
    return float(json.loads(pair(server, client, {}))["end"]["sum_received"]["bits_per_second"]) / 8


def ucx_perftest(environment: dict[str, str]) -> Callable[[int], float]:
    def measured(size: int) -> float:
        tool = perftest() or "ucx_perftest"
        loops = str(max(20, (2 << 30) // size))
        common = ["-t", "ucp_put_bw", "-s", str(size), "-n", loops, "-w", "5", "-p",
                  str(PORT + 2), "-f"]  # fmt: skip
        libraries = {"LD_LIBRARY_PATH": str(Path(tool).parent.parent / "lib")}
        told = {**environment, **(libraries if "libucx" in tool else {})}
        said = pair([tool, *common], [tool, "127.0.0.1", *common], told)
        # The last row: iterations, three times of one in us, two rates in MB/s (of 2^20 bytes).
        row = [line.split() for line in said.splitlines() if line.split()[:1] == [loops]][-1]
        return float(row[5]) * (1 << 20)

    return measured


def perftest() -> str | None:
    """The wheel's, of the same library; else the system's."""
    try:
        import libucx
    except ImportError:
        return shutil.which("ucx_perftest")
    found = Path(libucx.__file__).parent / "bin" / "ucx_perftest"
    return str(found) if os.access(found, os.X_OK) else shutil.which("ucx_perftest")


LOOPBACK = {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"}
SHARED = {"UCX_TLS": "posix,sysv,cma,self"}
CASES = (
    Case("TCP, one stream", "host:0@0 -> host:0@1 by nic:0.tcp", 128 << 10, iperf3, {}),
    Case("TCP, one stream", "host:0@0 -> host:0@1 by nic:0.tcp", 1 << 20, iperf3, {}),
    Case("UCX, shared memory", "host:0@0 -> host:0@1 by ucx", 1 << 20,
         ucx_perftest(SHARED), SHARED),
    Case("UCX, shared memory", "host:0@0 -> host:0@1 by ucx", 16 << 20,
         ucx_perftest(SHARED), SHARED),
    Case("UCX, TCP over loopback", "host:0@0 -> host:0@1 by ucx", 1 << 20,
         ucx_perftest(LOOPBACK), LOOPBACK),
    Case("UCX, TCP over loopback", "host:0@0 -> host:0@1 by ucx", 16 << 20,
         ucx_perftest(LOOPBACK), LOOPBACK),
)  # fmt: skip


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    print(f"{'':24} {'KiB':>6} {'linkgauge':>10} {'other':>8}  GB/s    ratio (range)")
    for case in CASES:
        tool = "iperf3" if case.other is iperf3 else perftest()
        if tool is None or shutil.which(tool) is None:
            print(
                f"{case.name:24} skip: {'iperf3' if tool == 'iperf3' else 'ucx-utils'} is missing"
            )
            continue
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(linkgauge(case))
            theirs.append(case.other(case.size))
        ratios = sorted(own / other for own, other in zip(ours, theirs, strict=True))
        print(
            f"{case.name:24} {case.size >> 10:>6} {statistics.median(ours) / 1e9:>10.2f} "
            f"{statistics.median(theirs) / 1e9:>8.2f}          {statistics.median(ratios):.2f} "
            f"({ratios[0]:.2f} to {ratios[-1]:.2f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
