"""The doctor's checks of another tool's output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from linkgauge.judge.findings import Evidence, Finding, Severity
from linkgauge.model.cell_id import spoken

_HOST_WAY = "everything between two GPUs goes over the host's memory, whatever links join them"
_TCP = "hosts exchange by TCP, which carries a few GB/s, whatever the adapters could"


class _Setting(NamedTuple):
    """Values of a setting that cost bandwidth: what they do, why that matters, and whether they
    matter only between hosts, or only to GPUs without links of their own."""

    values: tuple[str, ...]
    effect: str
    why: str
    between_hosts: bool = False
    without_links: bool = False


_COST = {
    "NCCL_P2P_DISABLE": _Setting(("1",), "GPUs may not copy to each other", _HOST_WAY),
    "NCCL_P2P_LEVEL": _Setting(("LOC", "0"), "GPUs may not copy to each other", _HOST_WAY),
    "NCCL_IB_DISABLE": _Setting(("1",), "no InfiniBand or RoCE adapter is used", _TCP, True),
    "NCCL_NET": _Setting(("Socket",), "no InfiniBand or RoCE adapter is used", _TCP, True),
    "NCCL_NET_GDR_LEVEL": _Setting(
        ("LOC", "0"), "adapters may not reach the GPUs' memory",
        "data crosses the host's memory on its way to the network", True,
    ),
    "NCCL_SHM_DISABLE": _Setting(
        ("1",), "GPUs may not exchange over shared memory",
        "without peer access they exchange by the network, even on one host", without_links=True,
    ),
    "NCCL_NVLS_ENABLE": _Setting(
        ("0",), "switches add nothing up", "all_reduce stays below what the links carry"
    ),
    "NCCL_PROTO": _Setting(
        ("LL",), "only the protocol for small sizes is used", "half of what LL moves are flags"
    ),
}  # fmt: skip
_FORCED = _Setting(
    ("PHB", "SYS"), "GPUs copy to each other through the CPU",
    "CPUs forward such copies slowly where many run at once, as in alltoall; copies over the "
    "host's memory may be faster", without_links=True,
)  # fmt: skip
"""NCCL's user guide, environment variables; nccl issue 1603."""


def check_settings(evidence: Evidence) -> Iterator[Finding]:
    """Finds settings of NCCL that cost bandwidth, if there is a figure that is not known to be
    well."""
    if evidence.tool is None:
        return
    cells = tuple(
        spoken(result, cell)
        for result in evidence.results
        for cell in result.cells
        if cell.verdict != "ok" and len(cell.transfers) > 1
    )
    is_linked = any(one.links for one in evidence.machine.known.accelerators)
    several = len(evidence.tool.hosts) > 1
    for name, value in evidence.tool.settings.items() if cells else ():
        cost = _FORCED if (name, value) in _FORCES else _COST.get(name)
        if cost is None or value not in cost.values or (cost.between_hosts and not several):
            continue
        if not (cost.without_links and is_linked):
            remedy = (f"unset {name}", "# and measure again")
            found = f"it is {value}, so that {cost.effect}"
            yield Finding("settings", "warn", name, found, cost.why, remedy, cells)


_FORCES = {("NCCL_P2P_LEVEL", value) for value in _FORCED.values}


def check_hosts(evidence: Evidence) -> Iterator[Finding]:
    """Finds hosts whose figures are worse than those of the others that ran the same."""
    peers = evidence.tool.peers if evidence.tool is not None else ()
    for one in peers:
        if not one.low or one.share is None:
            continue
        found = (
            f"{one.low} of {one.cells} figures are below those of {_others(len(peers) - 1)}, "
            f"at worst {one.worst}: {one.share:.0%} of theirs"
        )
        if len(peers) > 2:
            why = (
                "hosts that ran the same should agree, and the others do: the cause is at this one"
            )
        else:
            why = "of two hosts, nothing tells which is as usual: a third one would"
        severity: Severity = "fail" if len(peers) > 2 else "warn"
        yield Finding("host", severity, one.host, found, why, cells=(one.worst,))


def _others(count: int) -> str:
    return f"the other {count} hosts" if count > 1 else "the other host"
