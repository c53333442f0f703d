"""Another tool's command line, in this process, on a simulated machine."""

from __future__ import annotations

import json
import sys
from typing import Any, NamedTuple

from msgspec.structs import replace

from linkgauge.backends.sim.description import load
from linkgauge.compat import base, tool
from linkgauge.compat.base import UsageError, Where
from linkgauge.model.settings import Simulation

ONE_DEVICE = """
source: a test's
noise: 0%
host:
  cpu_model: Test CPU
  nodes: [{count: 1, cpus: 8, memory: 4G, rate: 100 GB/s}]
link_kinds:
  pcie: {kind: pcie, rate: 20 GB/s}
devices:
  - {count: 1, model: Test Card, memory: 1G, memory_rate: 1 TB/s}
links:
  - {kind: pcie, each: sim:0, to: host:0}
"""


class Spoken(NamedTuple):
    code: int
    out: str
    err: str


def where(machine="ppu-8", *faults):
    """A shipped machine by name, or the text of a description."""
    named = ("test", machine) if "\n" in machine else load(machine)
    return Where(simulation=Simulation(*named, faults))


def speak(capfd, name, *arguments, on=None):
    """What the tool printed, and its exit code; what it refuses is said as `linkgauge as` does."""
    try:
        code = tool(name)(arguments, on or where())
    except UsageError as error:
        print(f"{name}: {error}", file=sys.stderr)
        code = error.exit_code
    out, err = capfd.readouterr()
    return Spoken(code, out, err)


def document(spoken: Spoken) -> Any:
    """What stands under the only root of the JSON that a tool printed."""
    (root,) = json.loads(spoken.out).values()
    return root


def interrupted_after(count):
    """base.measure as Ctrl-C leaves it, with so many cells of the first benchmark measured."""

    def measure(context, benchmarks, *, observer=None, **more):
        run = base.measure(context, benchmarks, **more)
        first = run.results[0]
        results = (replace(first, cells=first.cells[:count]),) if count else ()
        return replace(run, results=results, finished=None)

    return measure
