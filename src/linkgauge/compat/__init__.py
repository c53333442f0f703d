"""Other tools' command lines and output on top of linkgauge's measurements: one file per tool.

A tool's module has `run(arguments, where) -> int`: it parses that tool's own arguments, measures
with base.py if they ask for it, prints what the tool prints and returns an exit code. It raises
only LinkgaugeError or UsageError.
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
    "ping_pong": "ping_pong",
    "setup_vcpu_benchmarks": "setup_vcpu_benchmarks",
    "run_vcpu_benchmark": "run_vcpu_benchmark",
}
"""Each tool's name and the module that implements it, imported only when needed."""

ToolRunner = Callable[[Sequence[str], Where], int]


def tool(name: str) -> ToolRunner:
    """The tool of this name, which must be one of TOOLS."""
    run: ToolRunner = import_module(f"{__name__}.{TOOLS[name]}").run
    return run
