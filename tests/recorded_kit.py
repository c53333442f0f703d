"""Recorded runs of real machines (tests/data)."""

import gzip
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
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


RECORDED = DATA / "recorded"


def _of(pattern):
    return tuple(
        f"{one.parent.name}/{one.name.removesuffix('.json.gz')}"
        for one in sorted(RECORDED.glob(f"{pattern}.json.gz"))
    )


OF_ONE, OF_ANOTHER = _of("1xh200/[0-9]*"), _of("1xh200-b/[0-9]*")
"""Runs on one healthy H200, one after another, and on another of another day and host."""
OF_TWO = _of("2xh200/[0-9]*")
"""Runs on two healthy H200s, one after another."""
OF_CPUS = {count: _of(f"{count}cpus/[0-9]*") for count in (2, 16)}
"""Runs on idle guests of so many CPUs, one after another."""
BESIDE_A_LOAD = _of("[12]xh200*/busy-*")
"""Runs beside a process that copies to an H200, multiplies on it, or copies in host memory."""


def recorded_at(path):
    """The run that this file keeps."""
    if path.name.endswith(".json.gz"):
        return run_of(gzip.decompress(path.read_bytes()), path)
    return read_run(path)


def recorded_of_one(name):
    """The run of this name on one H200."""
    data = (RECORDED / f"{name}.json.gz").read_bytes()
    return run_of(gzip.decompress(data), Path(f"{name}.json"))


def recordings_tool():
    """tools/recordings as a module."""
    path = DATA.parents[1] / "tools" / "recordings"
    loader = SourceFileLoader("recordings", str(path))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module
