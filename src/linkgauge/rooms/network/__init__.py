"""Moves bytes between ranks by network interfaces, with TCP, UCX and RDMA (backend `net`)."""

from linkgauge.registry import Room

ROOM = Room(
    "network",
    benchmarks={"Over network interfaces": f"{__name__}.benchmarks:OVER_NICS"},
    ranks={"net": f"{__name__}.rank:create"},
)
