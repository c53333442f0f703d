"""A run that is killed in the middle of its work leaves the card usable for the next one."""

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from campaigns import FULL
from command_kit import alive, linkgauge
from linkgauge.engine.kept.runs import read_run

pytestmark = pytest.mark.gpu
WORKS = (
    "host_to_device_memcpy_ce", "host_to_device_memcpy_sm", "device_local_copy",
    "latency_launch", "gpu_matmul",
)  # fmt: skip
KILLS = 4 if FULL else 1
"""How often each kind of work is killed."""
DEADLINE_SECONDS = 60


def kill(work, out, after):
    """Kills a run of this benchmark, with all of its processes, so many seconds after it has begun
    to measure."""
    mark = f"linkgauge-test-{uuid.uuid4()}"
    words = ("run", "--prefix", work, "--backend", "cuda", "--for", "2m", "--out", str(out))
    run = subprocess.Popen(
        [sys.executable, "-m", "linkgauge", *words],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "MARK": mark, "LINKGAUGE_HISTORY": "none"},
    )  # fmt: skip
    end = time.monotonic() + DEADLINE_SECONDS
    while not list(Path(out).rglob("journal.jsonl")):
        assert run.poll() is None, "it ended before it was killed"
        assert time.monotonic() < end
        time.sleep(0.01)
    time.sleep(after)
    assert run.poll() is None, "it ended before it was killed"
    for process in alive(mark):
        os.kill(int(process), signal.SIGKILL)
    run.wait()
    while left := alive(mark):
        assert time.monotonic() < end, f"processes {left} are left"
        time.sleep(0.01)


@pytest.mark.parametrize("work", WORKS)
def test_the_card_is_usable_after_a_kill(work, tmp_path):
    chance = random.Random(work)
    for number in range(KILLS):
        kill(work, tmp_path / f"killed{number}", chance.uniform(0.2, 2))
        out = tmp_path / f"next{number}"
        done = linkgauge(
            "run", "host_to_device_memcpy_ce", "device_local_copy", "--backend", "cuda",
            "--profile", "quick", "--out", out, LINKGAUGE_HISTORY="none",
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        (file,) = out.rglob("run.json")
        cells = [cell for result in read_run(file).results for cell in result.cells]
        assert {cell.status for cell in cells} == {"pass"}
