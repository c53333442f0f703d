"""The doctor's checks of another tool's output."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.judge.findings import Evidence, Finding
from linkgauge.model.cell_id import spoken

_FORBID = {"NCCL_P2P_LEVEL": ("LOC", "0"), "NCCL_P2P_DISABLE": ("1",)}
"""Settings that forbid copies between GPUs (NCCL's user guide, environment variables)."""


def check_settings(evidence: Evidence) -> Iterator[Finding]:
    """Checks for settings of NCCL that forbid copies between GPUs, unless all figures are known to
    be good."""
    if evidence.tool is None:
        return
    cells = tuple(
        spoken(result, cell)
        for result in evidence.results
        for cell in result.cells
        if cell.verdict != "ok" and len(cell.transfers) > 1
    )
    for name, values in _FORBID.items():
        value = evidence.tool.settings.get(name)
        if cells and value in values:
            yield Finding(
                "settings",
                "warn",
                name,
                f"it is {value}, so that GPUs may not copy to each other",
                "everything between two GPUs goes over the host's memory, whatever links join them",
                (f"unset {name}", "# and measure again"),
                cells,
            )
