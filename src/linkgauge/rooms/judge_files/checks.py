"""The doctor's checks of another tool's output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from linkgauge.judge.findings import Evidence, Finding, Severity
from linkgauge.model.cell_id import spoken

from .shipped import shipped


class CostlySetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A setting of NCCL in settings.yml: the values that cost bandwidth, and where they matter."""

    name: str
    values: tuple[str, ...]
    effect: str
    why: str
    where: Literal["", "network", "pcie"] = ""


def check_settings(evidence: Evidence) -> Iterator[Finding]:
    """Finds settings of NCCL that cost bandwidth, unless all figures are known to be good."""
    tool = evidence.tool
    cells = tuple(
        spoken(result, cell)
        for result in evidence.results
        for cell in result.cells
        if cell.verdict != "ok" and len(cell.transfers) > 1
    )
    if tool is None or not cells or not tool.settings:
        return
    applies = {
        "": True,
        "network": len(tool.hosts) > 1,
        "pcie": not any(one.links for one in evidence.machine.known.accelerators),
    }
    for one in shipped("settings.yml", tuple[CostlySetting, ...]):
        value = tool.settings.get(one.name)
        if value in one.values and applies[one.where]:
            remedy = (f"unset {one.name}", "# and measure again")
            found = f"it is {value}, so that {one.effect}"
            yield Finding("settings", "warn", one.name, found, one.why, remedy, cells)


def check_hosts(evidence: Evidence) -> Iterator[Finding]:
    """Finds hosts with worse figures than the other hosts, if all ran the same tests."""
    peers = evidence.tool.peers if evidence.tool is not None else ()
    severity: Severity = "fail" if len(peers) > 2 else "warn"
    others, why = "the other host", "nothing tells which of two hosts is as usual"
    if len(peers) > 2:
        others = f"the other {len(peers) - 1} hosts"
        why = "hosts that ran the same should agree, and the others do: the cause is at this one"
    for one in peers:
        if one.share is not None:
            found = (
                f"{one.low} of {one.cells} figures are below those of {others}, at worst "
                f"{one.worst}: {one.share:.0%} of theirs"
            )
            yield Finding("host", severity, one.host, found, why, cells=(one.worst,))
