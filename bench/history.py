#!/usr/bin/env python3
"""How long the history takes with many runs: adding one, listing all, the trend of a benchmark.

    bench/history.py [--runs N] [--cells N] [URL…]

Without a URL, SQLite in a folder of its own. A few runs are added to an empty store as a command
adds them, and the database then copies them, with noise, until there are as many as asked for:
`add` is the median of the runs that were added. The commands are timed as processes, the best of
three. A store that has runs is measured as it is.
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
from hashlib import sha256
from pathlib import Path
from time import perf_counter, process_time

from msgspec.structs import replace
from sqlalchemy import Connection, insert, select, text

from linkgauge.history.address import address, shown
from linkgauge.history.reading import Filter, earlier_runs
from linkgauge.history.reading import runs_of as runs_in
from linkgauge.history.store import opened
from linkgauge.history.tables import DIGEST, figures, results, runs
from linkgauge.history.writing import add
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.hardware.inventory import HostDetails, Inventory
from linkgauge.model.hardware.machine import Device, Host, Machine
from linkgauge.model.notation import parse_transfer
from linkgauge.model.settings import Settings
from linkgauge.model.stats.summary import summarize
from linkgauge.model.transfer import Report
from linkgauge.uses.earlier_runs import MOST

DEVICES = 8
SIZE = 512 << 20
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
LOSS, NOISE = 0.05, 0.01
FEW = 8
"""The runs that are added as commands add them."""


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


def copy_runs(connection: Connection, count: int) -> None:
    """Copies the runs of an empty history that got a few, in turn, until there are `count`: one an
    hour, the earlier half at the first level. Figures vary by a hundredth. The database does it: a
    thousand runs of a thousand cells take seconds."""
    first = [*connection.execute(select(runs).order_by(runs.c.started)).mappings()]
    half = len(first) // 2
    rows, copies = [], []
    for number in range(len(first), count):
        model = first[number % half + (half if 2 * number >= count else 0)]
        moment = BEGAN + timedelta(hours=number)
        digest = sha256(str(number).encode()).hexdigest()[: 2 * DIGEST]
        own = {"id": number + 1, "digest": digest, "uid": f"{moment:%Y%m%dT%H%M%SZ}"}
        own |= dict.fromkeys(("started", "finished"), int(moment.timestamp() * 1e6))
        rows.append({**model, **own})
        copies.append({"run": number + 1, "model": model["id"]})
    if not rows:
        return
    connection.execute(insert(runs), rows)
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA cache_size = -2000000")  # 2 GB, for the index on runs
    connection.execute(text("CREATE TEMPORARY TABLE copies (run INTEGER, model INTEGER)"))
    connection.execute(
        text("INSERT INTO copies VALUES (:run, :model)"),
        copies,
    )
    for table in (results, figures):
        names = [column.name for column in table.columns]
        noise = "(1 + 0.01 * ((f.cell_id * 7919 + c.run * 104729) % 1000 - 500) / 1000.0)"
        taken = [
            "c.run" if name == "run_id"
            else f"f.{name} * {noise}" if name in ("figure", "median", "low", "high")
            else f"f.{name}"
            for name in names
        ]  # fmt: skip
        connection.execute(
            text(
                f"INSERT INTO {table.name} ({', '.join(names)}) SELECT {', '.join(taken)} "
                f"FROM {table.name} f JOIN copies c ON c.model = f.run_id"
            )
        )


def timed(*arguments: str, url: str, times: int) -> tuple[float, float]:
    """The least seconds, and the least CPU seconds, of a command in a process of its own."""
    environment = {**os.environ, "LINKGAUGE_HISTORY": url}
    command = [sys.executable, "-m", "linkgauge", *arguments]
    seconds, cpu = [], []
    for _ in range(times):
        began, before = perf_counter(), os.times()
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        seconds.append(perf_counter() - began)
        cpu.append(sum(after[2:4]) - sum(before[2:4]))
    return min(seconds), min(cpu)


def measure(url: str, count: int, cells: int, times: int = 3) -> dict[str, tuple[float, float]]:
    """Fills the store, unless there are runs. Returns the seconds, and the CPU seconds, of each
    thing that is done with it."""
    place = address(url)
    if place is None:
        raise SystemExit("give the URL of a store")
    found: dict[str, tuple[float, float]] = {}
    own = [*runs_of(FEW, cells)]
    with opened(place) as store:
        if not runs_in(store, Filter(last=1)):
            adding = []
            for run in own:
                began = perf_counter()
                add(store, run, Path("/results"))
                adding.append(perf_counter() - began)
            found["add"] = statistics.median(adding), statistics.median(adding)
            with store.writing(alone=True) as connection:
                copy_runs(connection, count)
        moment = (BEGAN + timedelta(hours=count)).isoformat().replace("+00:00", "Z")
        latest = replace(own[-1], started=moment)
        began, before = perf_counter(), process_time()
        measured = {result.benchmark for result in latest.results}
        earlier_runs(store, latest, last=MOST, benchmarks=measured)
        found["the gate's baseline"] = perf_counter() - began, process_time() - before
    trend = "history", "trend", "device_to_device_0"
    for words in (("history", "list"), (*trend, "0,1"), trend, ("history", "list", "--json")):
        found[" ".join(words[1:])] = timed(*words, url=url, times=times)
    return found


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
            for what, (seconds, cpu) in found.items():
                print(f"  {what:<32}{seconds:8.3f} s{cpu:8.3f} s of CPU")


if __name__ == "__main__":
    main()
