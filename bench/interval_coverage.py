"""How often the intervals of a run hold what other runs find: fresh processes, none dropped.

Runs the same benchmarks in so many processes, one after another. For each cell: how many of the
intervals hold the median of all medians, and half the width of the middle interval over the
standard deviation of the medians. Prints a markdown table; `--csv` keeps every interval.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median, stdev

from linkgauge.engine.runs import read_run
from linkgauge.model.result import Run

BENCHMARKS = (
    "device_local_copy",
    "host_device_latency_sm",
    "host_to_device_memcpy_ce",
    "device_to_host_memcpy_sm",
    "device_to_device_memcpy_read_ce",
    "device_to_device_memcpy_write_sm",
)
Cell = tuple[str, str, str]
Interval = tuple[float, float, float]
"""Median, low, high."""


def measure(benchmarks: list[str], options: list[str], out: Path) -> Run:
    command = (sys.executable, "-m", "linkgauge", "run", *benchmarks, *options, "--out", str(out))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = sorted(out.rglob("run.json"))
    if done.returncode != 0 or not found:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
    return read_run(found[-1])


def intervals_of(run: Run) -> dict[Cell, Interval]:
    """Of each measured cell; NaN where there is none, which holds nothing."""
    nothing = (float("nan"), float("nan"))
    return {
        (result.benchmark, cell.row, cell.column): (
            cell.summary.median,
            *(cell.summary.ci95 or nothing),
        )
        for result in run.results
        for cell in result.cells
        if cell.summary is not None
    }


def table(taken: dict[Cell, list[Interval]]) -> str:
    lines = [
        "| benchmark | cell | runs | held | half-width ÷ deviation | deviation | middle interval |",
        "|---|---|---|---|---|---|---|",
    ]
    for (name, row, column), own in taken.items():
        centre = median(figure for figure, _, _ in own)
        held = sum(low <= centre <= high for _, low, high in own)
        spread = stdev(figure for figure, _, _ in own) if len(own) > 1 else float("nan")
        half = median((high - low) / 2 for _, low, high in own)
        lines.append(
            f"| {name} | {row}, {column} | {len(own)} | {held} | {half / spread:.2f} | "
            f"{spread / centre:.3%} | ±{half / centre:.3%} |"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=24, help="processes (default: 24)")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="every interval")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the runs there")
    parser.add_argument("benchmarks", nargs="*", default=list(BENCHMARKS))
    options = parser.parse_args()
    taken: dict[Cell, list[Interval]] = defaultdict(list)
    try:
        for number in range(options.runs):
            with tempfile.TemporaryDirectory() as temporary:
                folder = (options.keep or Path(temporary)) / f"{number:02}"
                run = measure(options.benchmarks, ["--backend", options.backend], folder)
            for cell, interval in intervals_of(run).items():
                taken[cell].append(interval)
    except (RuntimeError, OSError) as error:
        print(f"interval_coverage: {error}", file=sys.stderr)
        return 1
    print(table(taken))
    if options.csv is not None:
        with options.csv.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("benchmark", "row", "column", "run", "median", "low", "high"))
            for cell, own in taken.items():
                writer.writerows((*cell, number, *each) for number, each in enumerate(own))
    return 0


if __name__ == "__main__":
    sys.exit(main())
