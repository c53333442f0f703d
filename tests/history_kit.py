"""Stores and runs for the tests of the history: SQLite always, PostgreSQL where Debian's is
installed."""

import os
import shutil
import subprocess
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import text

from configurations_kit import cell, result
from fakes import device, machine
from linkgauge.model.documents.result import Run
from linkgauge.model.hardware.inventory import HostDetails, Inventory
from linkgauge.model.settings import Settings

_NUMBERS = count()
BENCHMARK = "host_to_device_memcpy_ce"
NOISE = (0.0, 0.004, -0.003, 0.006, -0.005, 0.002, -0.001, 0.005, -0.004, 0.001)
"""Relative deviations of runs, over and over."""


def run_at(number, figure=50e9, *, label="nightly", driver="570", cells=2, simulated=False, **more):
    """A run of the history's machine, one a day; every cell has the same figure."""
    started = f"2026-{1 + number // 28:02}-{1 + number % 28:02}T12:00:00.000Z"
    figure *= 1 + NOISE[number % len(NOISE)]
    of = machine([replace(device(0, "cuda", driver=driver), model="NVIDIA H200")])
    of = replace(
        of,
        inventory=Inventory(host=HostDetails(command_line="ro quiet", firmware="1.2")),
        simulated="box" if simulated else None,
    )
    values = {
        "id": f"r{number:03}", "label": label, "simulated": simulated, "command": ("linkgauge",),
        "started": started, "finished": started, "machine": of,
        "settings": Settings(sizes=(64,)),
        "results": (result(BENCHMARK, *(cell("0", str(n), figure) for n in range(cells))),),
    }  # fmt: skip
    return Run(**values | more)


def counted(store, table):
    """How many rows this table has."""
    with store.reading() as connection:
        return connection.execute(text(f"SELECT count(*) FROM {table}")).scalar()


def postgresql() -> Path:
    """The folder of Debian's programs. Skips where they are not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        if "postgresql" in os.environ.get("LINKGAUGE_REQUIRE", ""):
            pytest.fail("postgresql is not installed")
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    pytest.importorskip("psycopg", exc_type=ImportError)
    return found[-1].parent


@contextmanager
def cluster(folder: Path):
    """A server of its own that listens on a socket in the folder alone, and forgets all."""
    programs, data = postgresql(), folder / "data"
    as_user = []
    if os.geteuid() == 0:  # it refuses to be run by root
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]
        shutil.chown(folder, "postgres")

    def call(*command):
        subprocess.run(
            [*as_user, *map(str, command)], check=True, timeout=60, cwd="/",
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    call(programs / "initdb", "-D", data, "-U", "linkgauge", "--auth=trust", "--no-sync")
    options = f"-c listen_addresses='' -c fsync=off -k {folder}"
    call(programs / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start")
    try:
        yield folder
    finally:
        call(programs / "pg_ctl", "-D", data, "-m", "immediate", "stop")


def database(server):
    """The address of a new database."""
    import psycopg

    name = f"h{next(_NUMBERS)}"
    with psycopg.connect(f"host={server} user=linkgauge dbname=postgres", autocommit=True) as one:
        one.execute(f"CREATE DATABASE {name}")
    return f"postgresql://linkgauge:secret@/{name}?host={server}"
