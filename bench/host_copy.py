"""Compare our host copy with STREAM's: alternating runs, the same size, all CPUs, the same count.

STREAM counts a copy's bytes twice, read and written. Here our payload is doubled to match it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from linkgauge import _native

SOURCE = Path(__file__).with_name("stream_copy.c")
FLAGS = ("-O3", "-march=native", "-fopenmp")
SMALLEST = 512 << 20
REPETITIONS = 20


@dataclass(frozen=True)
class Run:
    """Median and best of one run's repetitions, in bytes/s as STREAM counts them."""

    median: float
    best: float


def ratio(host: Sequence[Run], stream: Sequence[Run]) -> float:
    """Return host copy / STREAM copy: the median of one's medians over that of the other's."""
    return median(run.median for run in host) / median(run.median for run in stream)


def array_bytes(cpus: Sequence[int]) -> int:
    """Return the size of each array: STREAM asks for 4 times all last-level caches, at least."""
    caches = {}
    for cpu in cpus:
        for level in Path(f"/sys/devices/system/cpu/cpu{cpu}/cache").glob("index3"):
            kibibytes = int((level / "size").read_text().strip().removesuffix("K"))
            caches[(level / "shared_cpu_list").read_text()] = kibibytes << 10
    return max(SMALLEST, 4 * sum(caches.values()))


def build_stream(folder: Path) -> Path:
    """Compile STREAM's copy; raises RuntimeError where that cannot be done."""
    compiler = shutil.which("gcc")
    if compiler is None:
        raise RuntimeError("gcc is not installed: it compiles the STREAM copy to compare with")
    program = folder / "stream_copy"
    command = [compiler, *FLAGS, str(SOURCE), "-o", str(program)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode != 0:
        raise RuntimeError(f"gcc could not compile {SOURCE.name}: {built.stderr.strip()}")
    return program


def run_stream(program: Path, size: int, cpus: Sequence[int]) -> Run:
    """Run STREAM's copy once, in a process of its own; raises RuntimeError where it fails."""
    environment = os.environ | {"OMP_NUM_THREADS": str(len(cpus)), "OMP_PROC_BIND": "true"}
    command = [str(program), str(size // 8), str(REPETITIONS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the STREAM copy failed: {done.stderr.strip()}")
    return Run(*map(float, done.stdout.split()))


def run_host(size: int, cpus: Sequence[int]) -> Run:
    """Run our copy once; raises RuntimeError where it is not exact."""
    source = _native.Memory(size, _native.Kind.PINNED, None, cpus)
    target = _native.Memory(size, _native.Kind.PINNED, None, cpus)
    _native.fill(source.address, size, 1, _native.Pattern.WORDS, False, cpus)
    job = _native.Job(_native.Op.COPY, source.address, target.address, size, 0, cpus)
    team = _native.Team([job])
    seconds = []
    for _ in range(1 + REPETITIONS):
        team.arm(1)
        team.open()
        (span,) = team.wait()
        seconds.append(span.end - span.begin)
    team.close()
    wrong = _native.first_mismatch(target.address, size, 1, _native.Pattern.WORDS, cpus)
    if wrong is not None:
        raise RuntimeError(f"the host copy is wrong at byte {wrong}")
    counted = sorted(seconds[1:])
    return Run(2 * size / counted[len(counted) // 2], 2 * size / counted[0])


def main() -> int:
    """Print each round, the medians and the ratio; 1 where that is impossible."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="alternations (default: 7)")
    rounds = max(1, parser.parse_args().rounds)
    cpus = sorted(os.sched_getaffinity(0))
    size = array_bytes(cpus)
    host: list[Run] = []
    stream: list[Run] = []
    print(f"copy of {size >> 20} MiB by {len(cpus)} threads; GB/s, read + written, median (best)")
    try:
        with tempfile.TemporaryDirectory() as folder:
            program = build_stream(Path(folder))
            for number in range(1, rounds + 1):
                stream.append(run_stream(program, size, cpus))
                host.append(run_host(size, cpus))
                print(f"round {number}: STREAM {show(stream[-1])}   linkgauge {show(host[-1])}")
    except (RuntimeError, OSError) as error:
        print(f"host_copy: {error}", file=sys.stderr)
        return 1
    middle = [median(run.median for run in runs) / 1e9 for runs in (stream, host)]
    print(f"median:  STREAM {middle[0]:6.2f}           linkgauge {middle[1]:6.2f}")
    print(f"host copy / STREAM copy = {ratio(host, stream):.2f}")
    return 0


def show(run: Run) -> str:
    """Format a run in GB/s."""
    return f"{run.median / 1e9:6.2f} ({run.best / 1e9:6.2f})"


if __name__ == "__main__":
    sys.exit(main())
