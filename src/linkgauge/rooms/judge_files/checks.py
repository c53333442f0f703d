"""The doctor's checks of another tool's output."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median
from typing import Literal

import msgspec

from linkgauge.judge.findings import Evidence, Finding, Severity
from linkgauge.model.cell_id import spoken
from linkgauge.model.documents.tool_run import ToolRun
from linkgauge.model.grouped import grouped
from linkgauge.model.units import count_of

from .products import shipped

_SLOWER = 0.9
_FORWARDED = (
    "the CPU forwards peer traffic slowly, or ACS or an IOMMU sends it there; the driver also "
    "needs Resizable BAR for peers over PCIe"
)
_LOOK = (
    "sudo lspci -vvv | grep ACSCtl  # SrcValid+ ReqRedir+: turn ACS off",
    "cat /proc/cmdline  # iommu=pt, or no IOMMU",
    "export NCCL_P2P_DISABLE=1  # until then",
)


class CostlySetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A setting of NCCL in settings.yml: the values (regular expressions) that cost bandwidth, and
    where they matter."""

    name: str
    values: tuple[str, ...]
    effect: str
    why: str
    where: Literal["", "host", "network", "pcie"] = ""


def is_net(tool: ToolRun) -> bool:
    """Whether the tool says that ranks exchange over a network."""
    return any(way.startswith("NET") for way in tool.ways)


def is_across(tool: ToolRun) -> bool:
    """Whether several hosts took part."""
    return len(tool.hosts) > 1 or (not tool.hosts and is_net(tool))


def check_reported(evidence: Evidence) -> Iterator[Finding]:
    """Finds figures of which the tool reports a failure without a reason."""
    said = grouped(
        (cell.reason, spoken(result, cell))
        for result in evidence.results
        for cell in result.cells
        if cell.kind == "reported"
    )
    for reason, cells in said.items():
        found = f"{count_of(len(cells))} failed: {reason}"
        why = "the tool tells no reason, so nothing shows that its data are right"
        remedy = ("# Measure again with the tool's own check of data.",)
        yield Finding("reported", "fail", cells[0], found, why, remedy, tuple(cells))


def check_settings(evidence: Evidence) -> Iterator[Finding]:
    """Finds settings of NCCL that cost bandwidth, unless all figures are known to be good."""
    tool = evidence.tool
    cells = tuple(
        spoken(result, cell)
        for result in evidence.results
        for cell in result.cells
        if not cell.is_as_expected and len(cell.transfers) > 1
    )
    if tool is None or not cells or not tool.settings:
        return
    applies = {
        "": True,
        "host": not is_across(tool),
        "network": is_across(tool),
        "pcie": not any(one.links for one in evidence.machine.known.accelerators),
    }
    for one in shipped("settings.yml", tuple[CostlySetting, ...]):
        value = tool.settings.get(one.name, "")
        if re.fullmatch("|".join(one.values), value) and applies[one.where]:
            remedy = (f"unset {one.name}", "# and measure again")
            found = f"it is {value}, so that {one.effect}"
            yield Finding("settings", "warn", one.name, found, one.why, remedy, cells)


def check_peers(evidence: Evidence) -> Iterator[Finding]:
    """Finds copies with peer access that reach less than the share `_SLOWER` of copies over the
    host's memory."""
    if evidence.tool is None:
        return
    for ways in ("memcpy", "bidirectional_memcpy"):
        cells = [
            (result.benchmark.endswith("_staged"), spoken(result, cell), cell.headline)
            for result in evidence.results
            if result.benchmark.startswith(f"device_to_device_{ways}")
            for cell in result.cells
            if cell.headline
        ]
        staged = [figure for is_staged, _, figure in cells if is_staged]
        peers = {name: figure for is_staged, name, figure in cells if not is_staged}
        if peers and staged and median(peers.values()) < _SLOWER * median(staged):
            found = (
                f"copies with peer access reach {median(peers.values()) / 1e9:.3g} GB/s, less than "
                f"the {median(staged) / 1e9:.3g} GB/s of copies over the host's memory"
            )
            yield Finding("peers", "warn", "peer access", found, _FORWARDED, _LOOK, tuple(peers))
            return


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
        elif one.has_failed:
            found = "figures of it failed, whatever the others reach"
            why = "its tool reports wrong data or another failure"
            yield Finding("host", "fail", one.host, found, why)
