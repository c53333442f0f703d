"""How often the intervals of a run hold what other runs find: fresh processes, none dropped.

Runs the same benchmarks in so many processes, one after another. For each cell: how many of the
intervals hold the median of all medians, and half the width of the middle interval over the
standard deviation of the medians. Prints a markdown table; `--csv` keeps every interval, `--keep`
the runs. The deviation of 24 medians is itself known to 15 % only: `--from` reads several such sets
of runs again, forms their intervals as this version does, and joins what the sets say.
"""

from __future__ import annotations

import argparse
import csv
import math
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean, median, variance
from typing import NamedTuple

from linkgauge.engine.kept.runs import read_run
from linkgauge.model.documents.result import Run
from linkgauge.model.stats.intervals import estimates
from linkgauge.model.stats.modes import cut

BENCHMARKS = (
    "device_local_copy",
    "host_device_latency_sm",
    "host_to_device_memcpy_ce",
    "device_to_host_memcpy_sm",
    "device_to_device_memcpy_read_ce",
    "device_to_device_memcpy_write_sm",
)
Cell = tuple[str, str, str]


class Taken(NamedTuple):
    """A cell of one run."""

    median: float
    low: float
    high: float


Set = dict[Cell, list[Taken]]
"""For each cell, what the runs of a set found."""


def measure(benchmarks: list[str], options: list[str], out: Path) -> Run:
    command = (sys.executable, "-m", "linkgauge", "run", *benchmarks, *options, "--out", str(out))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = sorted(out.rglob("run.json"))
    if done.returncode != 0 or not found:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
    return read_run(found[-1])


def cells_of(run: Run) -> dict[Cell, Taken]:
    """The figure and interval of each measured cell; NaN for a missing interval, which holds
    nothing."""
    nothing = (float("nan"), float("nan"))
    return {
        (result.benchmark, cell.row, cell.column): Taken(
            cell.summary.median, *(cell.summary.ci95 or nothing)
        )
        for result in run.results
        for cell in result.cells
        if cell.summary is not None
    }


def formed_again(run: Run) -> dict[Cell, Taken]:
    """The same for a stored run, from its samples."""
    again: dict[Cell, Taken] = {}
    for result in run.results:
        cells = [cell for cell in result.cells if cell.summary is not None]
        repetitions = [list(cut(cell.samples, map(sum, cell.repetitions))) for cell in cells]
        for cell, one in zip(cells, estimates(repetitions), strict=True):
            if one is not None:
                key = result.benchmark, cell.row, cell.column
                again[key] = Taken(one.figure, *one.interval())
    return again


def gathered(found: Iterable[dict[Cell, Taken]]) -> Set:
    runs: Set = defaultdict(list)
    for cells in found:
        for cell, one in cells.items():
            runs[cell].append(one)
    return runs


def measured(options: argparse.Namespace) -> Iterator[Run]:
    for number in range(options.runs):
        with tempfile.TemporaryDirectory() as temporary:
            folder = (options.keep or Path(temporary)) / f"{number:02}"
            yield measure(options.benchmarks, ["--backend", options.backend], folder)


def table(sets: Sequence[Set]) -> str:
    lines = [
        "| benchmark | cell | held by set | of | half-width ÷ deviation | deviation | half-width |",
        "|---|---|---|---|---|---|---|",
    ]
    for cell in sets[0]:
        held, halves, variances = [], [], []
        for own in (one[cell] for one in sets):
            centre = median(one.median for one in own)
            held.append(sum(one.low <= centre <= one.high for one in own))
            halves += [(one.high - one.low) / 2 / centre for one in own]
            variances.append(variance([one.median / centre for one in own]))
        half, spread = median(halves), math.sqrt(fmean(variances))
        name, row, column = cell
        lines.append(
            f"| {name} | {row}, {column} | {' '.join(map(str, held))} | {len(halves)} | "
            f"{half / spread:.2f} | {spread:.3%} | ±{half:.3%} |"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=24, help="processes (default: 24)")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="every interval")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the runs there")
    parser.add_argument("--from", type=Path, dest="kept", metavar="FOLDER", nargs="+",
                        default=[], help="sets of runs kept there")  # fmt: skip
    parser.add_argument("benchmarks", nargs="*", default=list(BENCHMARKS))
    options = parser.parse_args()
    try:
        kept = [map(read_run, sorted(folder.rglob("run.json"))) for folder in options.kept]
        sets = [gathered(map(formed_again, runs)) for runs in kept]
        sets = sets or [gathered(map(cells_of, measured(options)))]
    except (RuntimeError, OSError) as error:
        print(f"interval_coverage: {error}", file=sys.stderr)
        return 1
    print(table(sets))
    if options.csv is not None:
        with options.csv.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("benchmark", "row", "column", "set", "run", "median", "low", "high"))
            for number, one in enumerate(sets):
                for cell, own in one.items():
                    writer.writerows((*cell, number, run, *each) for run, each in enumerate(own))
    return 0


if __name__ == "__main__":
    sys.exit(main())
