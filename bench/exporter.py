#!/usr/bin/env python3
"""How the exporter bears scrapes: rate, errors, the time of a scrape, its memory and CPU time.

    bench/exporter.py [--rate 100] [--seconds 60] [--machine dgx-h200-8] [--every 5]

Measures the machine once into a history of its own, starts `linkgauge exporter` on it, and scrapes
it at this rate, each time by a new connection and packed, as Prometheus asks for it. Every few
seconds another run is added to the history, as `linkgauge watch` does. Memory is read once the
exporter has answered for a tenth of the time, and at the end.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from linkgauge.engine.kept.runs import latest_run, read_run
from linkgauge.history.address import address
from linkgauge.history.store import opened
from linkgauge.history.writing import add
from linkgauge.model.documents.result import Run
from linkgauge.model.errors import InputError

SCRAPERS = 4


class Scrapes(NamedTuple):
    """What came of scraping: `seconds` of each answer in order, errors in words, bytes of the last
    page, KiB of memory after the first tenth and at the end, CPU seconds of the exporter."""

    rate: float
    seconds: list[float]
    errors: list[str]
    size: int
    before: int
    after: int
    cpu: float


def quantile(seconds: list[float], share: float) -> float:
    return sorted(seconds)[min(len(seconds) - 1, int(share * len(seconds)))]


def measure(machine: str, folder: Path) -> Run:
    """A run of the machine, which is also in the history of the folder."""
    command = [sys.executable, "-m", "linkgauge", "run", "--machine", machine, "--samples", "2",
               "--profile", "quick", "--out", str(folder / "results")]  # fmt: skip
    done = subprocess.run(
        command, env=_environment(folder), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        check=False, text=True,
    )  # fmt: skip
    try:
        return read_run(latest_run(folder / "results"))
    except InputError as error:
        sys.exit(f"{error}: {done.stderr}")


def _environment(folder: Path) -> dict[str, str]:
    own = {"LINKGAUGE_HISTORY": str(folder / "history.db"), "LINKGAUGE_NO_REPORT": "1"}
    return {**os.environ, **own}


@contextmanager
def exporting(folder: Path, *options: str) -> Iterator[tuple[int, int]]:
    """A running exporter: its process and its port."""
    command = [sys.executable, "-m", "linkgauge", "exporter", "--listen", "127.0.0.1:0", *options]
    with subprocess.Popen(
        command, env=_environment(folder), stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            line = process.stderr.readline() if process.stderr is not None else ""
            match = re.search(r":([0-9]+)/metrics", line)
            if match is None:
                sys.exit(f"{' '.join(command)}: {line}")
            yield process.pid, int(match[1])
        finally:
            process.terminate()


def scrape(port: int) -> tuple[float, int]:
    """How long one took, in seconds, and its bytes. Raises what goes wrong."""
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/metrics", headers={"Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    if answer.status != 200 or not body.startswith(b"\x1f\x8b"):
        raise ValueError(f"status {answer.status}, {len(body)} bytes")
    return time.perf_counter() - began, len(body)


def memory(pid: int) -> int:
    """KiB."""
    status = Path(f"/proc/{pid}/status").read_text("utf-8")
    return int(re.findall(r"VmRSS:\s+([0-9]+)", status)[0])


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def scrapes(pid: int, port: int, rate: float, seconds: float) -> Scrapes:
    """Scrapes at a rate, whether answers come in time or not."""
    count = int(rate * seconds)
    took: list[float] = []
    errors: list[str] = []
    sizes: list[int] = []
    memories: list[int] = []
    began, cpu = time.perf_counter(), cpu_seconds(pid)

    def one(number: int) -> None:
        time.sleep(max(0.0, began + number / rate - time.perf_counter()))
        if number == count // 10:
            memories.append(memory(pid))
        try:
            of, size = scrape(port)
            took.append(of)
            sizes.append(size)
        except (OSError, ValueError, http.client.HTTPException) as error:
            errors.append(repr(error))

    with ThreadPoolExecutor(SCRAPERS) as pool:
        list(pool.map(one, range(count)))
    lasted = time.perf_counter() - began
    return Scrapes(
        len(took) / lasted, took, errors, sizes[-1] if sizes else 0, memories[0], memory(pid),
        cpu_seconds(pid) - cpu,
    )  # fmt: skip


@contextmanager
def adding(folder: Path, run: Run, every: float) -> Iterator[None]:
    """Adds the run to the history over and over, each time as one that began later."""
    over = threading.Event()

    def loop() -> None:
        url, number = address(str(folder / "history.db")), 0
        assert url is not None
        while not over.wait(every):
            number += 1
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            with opened(url) as store:
                add(store, replace(run, id=f"more{number}", started=now, finished=now), None)

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--machine", default="dgx-h200-8")
    parser.add_argument("--every", type=float, default=5.0, help="seconds from run to run")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = measure(asked.machine, folder)
        cells = sum(len(result.cells) for result in run.results)
        with exporting(folder, "--machine", asked.machine) as (pid, port):
            scrape(port)
            with adding(folder, run, asked.every):
                found = scrapes(pid, port, asked.rate, asked.seconds)
    share = found.cpu / asked.seconds
    print(f"{cells} cells, a page of {found.size / 1e3:.0f} kB packed")
    print(f"{found.rate:.1f} scrapes/s, {len(found.seconds)} answered, {len(found.errors)} errors")
    print(
        f"a scrape: median {1e3 * quantile(found.seconds, 0.5):.1f} ms, "
        f"p99 {1e3 * quantile(found.seconds, 0.99):.1f} ms, "
        f"max {1e3 * max(found.seconds):.1f} ms; {share:.0%} of a CPU"
    )
    print(f"memory: {found.before / 1024:.1f} MiB, at the end {found.after / 1024:.1f} MiB")
    for error in found.errors[:5]:
        print(error)


if __name__ == "__main__":
    main()
