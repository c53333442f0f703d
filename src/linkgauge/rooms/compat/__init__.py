"""Offers linkgauge's measurements with the command lines and output of other tools. Each tool has a
file, or a folder of its name."""

from linkgauge.registry import Room

TOOLS = {
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
ROOM = Room(
    "compat",
    commands={"as": f"{__name__}.command:as_tool"},
    tools={name: f"{__name__}.{place}" for name, place in TOOLS.items()},
)
