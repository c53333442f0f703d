"""The doctor's checks of another tool's output."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.judge.findings import Evidence, Finding
from linkgauge.model.cell_id import spoken

_FORBID = {"NCCL_P2P_LEVEL": ("LOC", "0"), "NCCL_P2P_DISABLE": ("1",)}
_FORCE = {"NCCL_P2P_LEVEL": ("PHB", "SYS")}
"""Settings that keep GPUs from copying to each other, or let them do so through the CPU (NCCL's
user guide, environment variables; nccl issue 1603)."""


def check_settings(evidence: Evidence) -> Iterator[Finding]:
    """Settings of NCCL that forbid copies between GPUs or, where these have no links of their own,
    send them through the CPU, where a figure is not known to be well."""
    if evidence.tool is None:
        return
    cells = tuple(
        spoken(result, cell)
        for result in evidence.results
        for cell in result.cells
        if cell.verdict != "ok" and len(cell.transfers) > 1
    )
    is_linked = any(one.links for one in evidence.machine.known.accelerators)
    for name, value in evidence.tool.settings.items() if cells else ():
        if value in _FORBID.get(name, ()):
            effect = "GPUs may not copy to each other"
            why = (
                "everything between two GPUs goes over the host's memory, whatever links join them"
            )
        elif value in _FORCE.get(name, ()) and not is_linked:
            effect = "GPUs copy to each other through the CPU"
            why = (
                "CPUs forward such copies slowly where many run at once, as in alltoall; copies "
                "over the host's memory may be faster"
            )
        else:
            continue
        remedy = (f"unset {name}", "# and measure again")
        yield Finding(
            "settings", "warn", name, f"it is {value}, so that {effect}", why, remedy, cells
        )
