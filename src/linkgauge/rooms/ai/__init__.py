"""Measures AI workloads on devices that torch supports, and load on a running server."""

from linkgauge.registry import Room

ROOM = Room(
    "ai",
    commands={"ai": f"{__name__}.command:ai"},
    benchmarks={
        "AI workloads (torch)": f"{__name__}.benchmarks:WORKLOADS",
        "Servers under load": f"{__name__}.benchmarks:SERVING",
    },
    operations={
        "torch.workload": f"{__name__}.workloads:Workloads",
        "host.workload": f"{__name__}.serving:group_of",
    },
    sections=(f"{__name__}.section:SECTION",),
)
