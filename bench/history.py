#!/usr/bin/env python3
"""How long the history takes with many runs: adding one, listing all, the trend of a benchmark.

    bench/history.py [--runs N] [--cells N] [URL…]

Without a URL, SQLite in a folder of its own. Each store should be empty: runs are added to it. The
commands are timed as processes, the best of three; `add` is the median of all runs.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter

from linkgauge.history.address import address, shown
from linkgauge.history.store import opened
from linkgauge.history.writing import add
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.hardware.inventory import HostDetails, Inventory
from linkgauge.model.hardware.machine import Device, Host, Machine
from linkgauge.model.notation import parse_transfer
from linkgauge.model.settings import Settings
from linkgauge.model.stats.summary import summarize
from linkgauge.model.transfer import Report

DEVICES = 8
SIZE = 512 << 20
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
LOSS, NOISE = 0.05, 0.01


def runs_of(count: int, cells: int, seed: int = 1) -> Iterator[Run]:
    """Runs of one machine, one an hour; in the middle the driver changes and 5 % is lost."""
    draw = random.Random(seed)
    places = [(r, c) for r in range(DEVICES) for c in range(DEVICES) if r != c]
    names = [f"device_to_device_{n}" for n in range(-(-cells // len(places)))]
    for number in range(count):
        level = 4e11 * (1 - LOSS if 2 * number >= count else 1)
        moment = (BEGAN + timedelta(hours=number)).isoformat().replace("+00:00", "Z")
        results = tuple(
            _result(name, places[: cells - at * len(places)], level, draw)
            for at, name in enumerate(names)
        )
        yield Run(
            id=moment.replace("-", "").replace(":", ""),
            label="nightly",
            command=("linkgauge", "run"),
            started=moment,
            finished=moment,
            machine=_machine("575" if 2 * number >= count else "570"),
            settings=Settings(sizes=(SIZE,)),
            results=results,
        )


def _result(name: str, places: list[tuple[int, int]], level: float, draw: random.Random) -> Result:
    cells = []
    for row, column in places:
        median = draw.gauss(level, level * NOISE)
        transfer = parse_transfer(f"cuda:{row} -> cuda:{column} by ce")
        cells.append(
            CellResult(
                str(row), str(column), (transfer,), Report.FIRST, "pass",
                summary=summarize([median * 0.999, median, median * 1.001]),
            )
        )  # fmt: skip
    return Result(
        benchmark=name, title=name, backend="cuda", size=SIZE, unit="B/s", better="higher",
        status="pass", cells=tuple(cells),
    )  # fmt: skip


def _machine(driver: str) -> Machine:
    host = Host("node1", "Debian 12", "6.1", "x86_64", "CPU", 64, (), 1 << 40, 1 << 40, None, None)
    devices = tuple(
        Device(f"cuda:{n}", "NVIDIA H200", 140 << 30, 140 << 30, driver) for n in range(DEVICES)
    )
    return Machine(host, {"cuda": devices}, inventory=Inventory(host=HostDetails(firmware="1.2")))


def timed(*arguments: str, url: str, times: int) -> float:
    """Seconds of a command in a process of its own, the best of some."""
    environment = {**os.environ, "LINKGAUGE_HISTORY": url}
    command = [sys.executable, "-m", "linkgauge", "history", *arguments]
    seconds = []
    for _ in range(times):
        began = perf_counter()
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        seconds.append(perf_counter() - began)
    return min(seconds)


def measure(url: str, runs: int, cells: int, times: int = 3) -> dict[str, float]:
    """Fills the store; the seconds of each thing that is done with it."""
    place = address(url)
    if place is None:
        raise SystemExit("give the URL of a store")
    adding = []
    with opened(place) as store:
        for run in runs_of(runs, cells):
            began = perf_counter()
            add(store, run, Path("/results"))
            adding.append(perf_counter() - began)
    return {
        "add": statistics.median(adding),
        "list": timed("list", url=url, times=times),
        "list --json": timed("list", "--json", url=url, times=times),
        "trend of a benchmark": timed("trend", "device_to_device_0", url=url, times=times),
        "trend of a cell": timed("trend", "device_to_device_0", "0,1", url=url, times=times),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("urls", metavar="URL", nargs="*")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for url in given.urls or [str(Path(folder) / "history.db")]:
            found = measure(url, given.runs, given.cells)
            place = address(url)
            print(f"{given.runs} runs of {given.cells} cells in {place and shown(place)}")
            for what, seconds in found.items():
                print(f"  {what:<22}{seconds:8.3f} s")


if __name__ == "__main__":
    main()
