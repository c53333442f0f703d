"""Other tools' command lines and output on top of linkgauge's measurements: one file per tool.

A tool's module has `run(arguments, where) -> int`: it parses that tool's own arguments, measures
with base.py if they ask for it, prints what the tool prints and returns an exit code. It raises
only LinkgaugeError or UsageError. A module of several tools has `run_as(name, arguments, where)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module

from linkgauge.model.collective import COLLECTIVE_NAMES

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
    "rocm-bandwidth-test": "rocm_bandwidth_test",
    "TransferBench": "transferbench",
    "setup_vcpu_benchmarks": "setup_vcpu_benchmarks",
    "run_vcpu_benchmark": "run_vcpu_benchmark",
    "generate_report": "generate_report",
} | {f"{name}_perf": "nccl_tests" for name in COLLECTIVE_NAMES}
"""Each tool's name and the module that implements it, imported only when needed."""

ToolRunner = Callable[[Sequence[str], Where], int]


def tool(name: str) -> ToolRunner:
    """The tool of this name, which must be one of TOOLS."""
    module = import_module(f"{__name__}.{TOOLS[name]}")
    run: ToolRunner = partial(module.run_as, name) if hasattr(module, "run_as") else module.run
    return run
