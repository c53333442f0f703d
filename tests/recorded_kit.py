"""Recorded runs of real machines (tests/data)."""

import gzip
from functools import cache
from pathlib import Path

from linkgauge.engine.kept.runs import read_run, run_of

DATA = Path(__file__).parent / "data"
FOLDER = DATA / "runs-2xH100"
HEALTHY = tuple(f"{number:02}" for number in range(1, 11))
"""Ten runs on two healthy H100s, one after another."""


@cache
def recorded_run(name):
    """The run of this name."""
    return run_of(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()), Path(f"{name}.json"))


@cache
def recorded_of_four(name):
    """The run of this name on four H200s."""
    return read_run(DATA / "runs-4xH200" / f"{name}.tar.zst")


OF_ONE = tuple(f"{number:02}" for number in range(1, 7))
"""Six runs on one healthy H200, one after another."""
BESIDE_A_LOAD = tuple(f"busy-{kind}-{number}" for kind in ("pcie", "sm") for number in (1, 2, 3))
"""Runs beside a process that copies to the H200, or multiplies matrices on it."""


def recorded_of_one(name):
    """The run of this name on one H200."""
    data = (DATA / "recorded" / "1xh200" / f"{name}.json.gz").read_bytes()
    return run_of(gzip.decompress(data), Path(f"{name}.json"))
