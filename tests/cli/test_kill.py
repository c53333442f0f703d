"""A kill -9 at any moment costs a run nothing that was measured, and leaves nothing behind."""

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from pathlib import Path

import pytest

from campaigns import FULL, trials
from command_kit import alive, called, linkgauge
from linkgauge.engine.kept.journal import MeasuredRepetition, read_records
from linkgauge.engine.kept.runs import read_run
from linkgauge.engine.locks import hold

# What strikes and drifts does so by the number of the cell, not of the cells measured so far.
FAULTS = ("drift * per_cell=-0.02%", "jitter sim:2", "flip * offset=77 cells=3..5",
          "crash * cells=40", "crash * signal=KILL cells=90")  # fmt: skip
RUN = (
    *("--machine", "ppu-8", "--profile", "quick"),
    *(() if FULL else ("--prefix", "device_to_device_memcpy_read")),
    *(w for fault in FAULTS for w in ("--fault", fault)),
)
DEADLINE_SECONDS = 60
OF_OTHERS = ("mpich_", "PostgreSQL.")
"""Names in /dev/shm of what other tests use meanwhile."""


def shared_memory():
    """The files there that are not of other tests."""
    files = Path("/dev/shm").iterdir()
    return {file for file in files if not file.name.startswith(OF_OTHERS)}


# A run that holds a device, although no accelerator is there.
HOLDING = """
import sys
import linkgauge.engine.locks as locks
key = sys.argv.pop(1)
locks.devices_measured = lambda machine, plan: {key: "sim:0"}
from linkgauge.cli.main import main
main()
"""


def journals(out):
    """Theirs below `out`; unlike `rglob`, `walk` passes by a folder that goes meanwhile."""
    return [Path(at) / "journal.jsonl" for at, _, files in os.walk(out) if "journal.jsonl" in files]


def lines_in(out):
    return sum(path.read_bytes().count(b"\n") for path in journals(out))


def kill(arguments, out, chance, whole_seconds, whole_lines):
    """Starts a run and kills it: after some time, or once some records are there."""
    mark, key = f"linkgauge-test-{uuid.uuid4()}", str(uuid.uuid4())
    run = subprocess.Popen(
        [sys.executable, "-c", HOLDING, key, "run", *arguments], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env={**os.environ, "MARK": mark},
    )  # fmt: skip
    if chance.random() < 0.5:
        time.sleep(chance.uniform(0, whole_seconds))
    else:
        enough = chance.randrange(1, whole_lines + 1)
        while run.poll() is None and lines_in(out) < enough:
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.003))
    run.kill()
    assert run.wait() in (3, -signal.SIGKILL)
    with hold({key: "sim:0"}):
        pass
    for _ in range(DEADLINE_SECONDS * 100):
        if not alive(mark):
            return
        time.sleep(0.01)
    pytest.fail("the run left a process behind")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that was not killed, how often it repeated each cell, and the seconds and the records
    that it took."""
    out = tmp_path_factory.mktemp("whole")
    begin = time.monotonic()
    done = linkgauge("run", *RUN, "--out", out)
    seconds = time.monotonic() - begin
    assert done.returncode == 3, done.stderr
    return read_run(journals(out)[0].parent), repeated(journals(out)[0]), seconds, lines_in(out)


def repeated(journal):
    """How often each cell was measured."""
    return Counter(
        (record.table, record.cell.row, record.cell.column)
        for record in read_records(journal.read_bytes())
        if isinstance(record, MeasuredRepetition)
    )


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "seed", range(trials("run: killed at any moment, it goes on to the same cells"))
)
def test_a_killed_run_goes_on_to_the_cells_of_an_unbroken_one(tmp_path, whole, seed):
    chance = random.Random(seed)
    unbroken, repetitions, *extent = whole
    before = shared_memory()
    kill((*RUN, "--out", str(tmp_path)), tmp_path, chance, *extent)
    if not journals(tmp_path):
        return  # it was killed before it had begun
    (journal,) = journals(tmp_path)
    for _ in range(chance.randrange(3)):
        kill(("--resume", str(journal.parent)), tmp_path, chance, *extent)
    done = called("run", "--resume", journal.parent)
    assert done.returncode == 3, done.stderr
    assert repeated(journal) == repetitions
    run = read_run(journal.parent / "run.json")
    assert run.results == unbroken.results  # a simulated machine measures the same again
    shown = called("show", journal, "--json").stdout
    assert shown == called("show", journal.parent, "--json").stdout
    assert shared_memory() <= before
