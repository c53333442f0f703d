"""bench/history.py: with 1,000 runs of 1,000 cells, a list takes less than 1 s and a trend less
than 2 s (`make test-long`); in SQLite, and in PostgreSQL where it is installed."""

import os
import tempfile
from pathlib import Path

import pytest

from history import measure
from history_kit import cluster

FULL = os.environ.get("LINKGAUGE_CAMPAIGN") == "full"
RUNS, CELLS = (1000, 1000) if FULL else (3, 12)
LIMITS = {
    "list": 1.0,
    "list --json": 1.0,
    "trend device_to_device_0": 2.0,
    "trend device_to_device_0 0,1": 2.0,
    "the gate's baseline": 1.0,
}
"""Seconds."""


@pytest.fixture(params=["sqlite", "postgresql"] if FULL else ["sqlite"])
def url(request, tmp_path):
    if request.param == "sqlite":
        yield str(tmp_path / "history.db")
        return
    with tempfile.TemporaryDirectory(prefix="lg-") as folder:
        Path(folder).chmod(0o755)
        with cluster(Path(folder)) as place:
            yield f"postgresql://linkgauge@/postgres?host={place}"


def test_many_runs_are_listed_and_judged_quickly(url):
    """All commands end well; how long they take is judged in the long campaign alone."""
    found = measure(url, RUNS, CELLS, times=3 if FULL else 1)
    assert found.keys() == {"add", *LIMITS}
    slow = {what: found[what] for what, limit in LIMITS.items() if found[what][0] > limit}
    assert not FULL or not slow
