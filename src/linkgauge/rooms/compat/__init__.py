"""Other tools' command lines and output on top of linkgauge's measurements: a file a
tool, or a few of its name."""

from linkgauge.model.collective import COLLECTIVE_NAMES
from linkgauge.registry import Room

TOOLS = {
    "nvbandwidth": "nvbandwidth",
    "sailbandwidth": "sailbandwidth",
    "rblnBandwidthLatencyTest": "rbln",
    "bandwidthTest": "cuda_samples",
    "p2pBandwidthLatencyTest": "cuda_samples_p2p",
    "bandwidth_test": "bandwidth_test",
    "ping_pong": "ping_pong",
    "rocm-bandwidth-test": "rocm_bandwidth_test",
    "TransferBench": "transferbench",
    "setup_vcpu_benchmarks": "setup_vcpu_benchmarks",
    "run_vcpu_benchmark": "run_vcpu_benchmark",
    "generate_report": "generate_report",
} | dict.fromkeys((f"{name}_perf" for name in COLLECTIVE_NAMES), "nccl_tests")
"""By the name of each tool, the file that parses its arguments, measures with `linkgauge.cli.tool`
if they ask for it, prints what the tool prints and returns an exit code. It raises only
LinkgaugeError or UsageError."""
ROOM = Room(
    "compat",
    commands={"as": f"{__name__}.command:as_tool"},
    tools={name: f"{__name__}.{file}:run" for name, file in TOOLS.items()},
)
