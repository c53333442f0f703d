"""Lists the optional features, called rooms. Each has its own folder, and none imports another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from linkgauge.registry import Room

__all__ = ["Room"]


def _room(name: str, **adds: Mapping[str, str] | tuple[str, ...]) -> Room:
    def placed(place: str) -> str:
        return f"{__name__}.{name}{'' if place.startswith(':') else '.'}{place}"

    found: dict[str, Any] = {
        kind: tuple(map(placed, own))
        if isinstance(own, tuple)
        else {key: placed(place) for key, place in own.items()}
        for kind, own in adds.items()
    }
    return Room(name, **found)


_TOOLS = {
    "nvbandwidth": "nvbandwidth:run",
    "sailbandwidth": "sailbandwidth:run",
    "rblnBandwidthLatencyTest": "rbln:run",
    "bandwidthTest": "cuda_samples:run",
    "p2pBandwidthLatencyTest": "cuda_samples_p2p:run",
    "bandwidth_test": "nvlink_suite:run_bandwidth_test",
    "ping_pong": "nvlink_suite:run_ping_pong",
    "stream": "host_tools:run_stream",
    "sysbench": "host_tools:run_sysbench",
    "setup_vcpu_benchmarks": "vcpu_benchmarks:run_setup",
    "run_vcpu_benchmark": "vcpu_benchmarks:run_benchmark",
    "generate_report": "vcpu_benchmarks:run_report",
} | {
    f"{collective}_perf": "nccl_tests:run"
    for collective in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",
                       "alltoall", "gather", "scatter", "sendrecv", "hypercube")
}  # fmt: skip
"""The function of each tool. It reads the arguments, measures with `linkgauge.cli.tool` if they
request measurements, prints the tool's output and returns an exit code. It raises only
LinkgaugeError or UsageError."""
ROOMS: tuple[Room, ...] = (
    _room(
        "ai",
        commands={"ai": "command:ai"},
        benchmarks={
            "AI workloads (torch)": "benchmarks:WORKLOADS",
            "Servers under load": "benchmarks:SERVING",
        },
        operations={"torch.workload": "workloads:Workloads", "host.workload": "serving:group_of"},
        sections=("entry:SECTION",),
    ),
    _room("capture", commands={"capture": "command:capture"}),
    _room("check", commands={"check": "command:check"}),
    _room("compat", commands={"as": "command:as_tool"}, tools=_TOOLS),
    _room(
        "describe",
        commands={"describe": "command:describe_run"},
        machines={"runs": "runs:given"},
    ),
    _room("expect", commands={"expect": "command:expect"}),
    _room("exporter", commands={"exporter": "command:exporter"}),
    _room(
        "gate",
        commands={
            "compare": "command:compare", "baseline": "command:baseline", "gate": "command:gate",
        },
    ),
    _room("history", commands={"history": "command:history"}),
    _room(
        "judge_files",
        commands={"judge": "command:judge_files"},
        checks=("entry:check_tool",),
        sections=("entry:SECTION",),
        machines={"texts": "descriptions:given"},
    ),
    _room("mcp", commands={"mcp": "command:mcp"}),
    _room(
        "network",
        benchmarks={"Over network interfaces": "benchmarks:OVER_NICS"},
        ranks={"net": "rank:create"},
    ),
    _room("notebook", commands={"export": "export:export"}),
    _room(
        "scale",
        commands={"scale": "command:scale"},
        sections=("entry:SECTION",),
        kept={"scale.json": ":SCALING"},
    ),
    _room("share", commands={"pack": "command:pack", "share": "command:share"}),
    _room("soak", sections=(":SECTION",)),
    _room(
        "traffic",
        commands={"traffic": "command:traffic"},
        tools={"gc-hosttraffictest": "gc_hosttraffictest:run"},
    ),
    _room(
        "vary", commands={"vary": "command:vary"}, kept={"vary.json": ":VARIATION"}
    ),
    _room("vm", commands={"vm": "command:vm"}),
    _room("watch", commands={"watch": "command:watch"}),
)  # fmt: skip
