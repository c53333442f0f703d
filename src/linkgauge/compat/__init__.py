"""Other tools' command lines and output over linkgauge's measurements: one file a tool.

A tool's module has `run(arguments, where) -> int`: it parses that tool's own arguments, measures
with base.py where it is told to, prints what the tool prints and returns an exit code. What it
raises is a LinkgaugeError or a UsageError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

from .base import Where

TOOLS = {
    "nvbandwidth": "nvbandwidth",
    "sailbandwidth": "sailbandwidth",
    "rblnBandwidthLatencyTest": "rbln",
    "gc-hosttraffictest": "gc_hosttraffictest",
    "bandwidthTest": "cuda_samples",
    "p2pBandwidthLatencyTest": "cuda_samples_p2p",
    "bandwidth_test": "bandwidth_test",
}
"""Each tool's name and the module that speaks it, imported only when it is asked for."""

ToolRunner = Callable[[Sequence[str], Where], int]


def tool(name: str) -> ToolRunner:
    """The tool of this name, which must be one of TOOLS."""
    run: ToolRunner = import_module(f"{__name__}.{TOOLS[name]}").run
    return run
