"""Checks of `linkgauge doctor` on a run that was read from another tool's output."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Literal, NamedTuple

import msgspec

from linkgauge.judge.expected.across import carried_by
from linkgauge.judge.findings import Evidence, Finding, Severity
from linkgauge.judge.vendor import tool_of
from linkgauge.model.cell_id import spoken
from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.documents.tool_run import ToolRun
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.inventory import PciLink
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.hardware.pcie import is_accelerator, link_rate
from linkgauge.model.names import and_all
from linkgauge.model.units import count_of

from .pair_groups import fallen_out, levels_of
from .products import product_of, shipped

_FAR_BELOW = 0.6
"""The share of a link's rate below which a copy may have another link."""
_FITS = (0.75, 0.95)
"""The shares of a link's rate that copies over it usually reach."""
FAR = ("PHB", "NODE", "SYS")
"""How far adapters are whose data crosses the CPU (nvidia-smi topo -m)."""
_TRY = (
    "# NCCL_DEBUG=INFO names the adapters in use and says GDRDMA, or not",
    "ib_write_bw  # between the hosts: what the network carries",
)
_SLOWER = 0.9
_NARROW = "the slot is narrower, a board shares its lanes with another slot, or lanes are lost"
_NARROW_TRY = (
    "sudo lspci -vv | grep -E '^([0-9a-f])|LnkCap:|LnkSta:'  # the adapter, and the port above it",
    "# The board's manual says which slots have all lanes",
)
_OF_NODES = "host_to_host_memcpy"
_LOPSIDED = 1.5
_LOPSIDED_WHY = (
    "a link between sockets carries as much either way: usual causes are DIMMs that are missing or "
    "unlike at one node, a faulty module, and a setting of the BIOS that counts for one node"
)
_ONE_WAY_WHY = (
    "the accelerator's own link carries more both ways: usual causes are the way between the "
    "sockets (a setting of the BIOS, an IOMMU that translates), and what else ran"
)
_LOPSIDED_TRY = (
    "sudo dmidecode -t memory | grep -E 'Locator|Size|Speed'  # the same at both nodes?",
    "numactl -H",
)
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
    name: str
    values: tuple[str, ...]
    effect: str
    why: str
    where: Literal["", "host", "network", "pcie"] = ""


class Shown(NamedTuple):
    benchmark: str
    name: str
    cell: CellResult

    @property
    def places(self) -> set[str]:
        return {str(m) for t in self.cell.transfers for m in t.memories if m.is_device}


class Seen:
    def __init__(self, results: Sequence[Result], machine: Machine, tool: ToolRun) -> None:
        self.results, self.machine, self.known, self.tool = results, machine, machine.known, tool
        self.cells = [
            Shown(o.benchmark, spoken(o, cell), cell) for o in results for cell in o.cells
        ]
        self.low = [one for one in self.cells if one.cell.verdict == "low"]
        self.is_linked = any(one.links for one in self.known.accelerators)
        self.is_net = any(way.startswith("NET") for way in tool.ways)
        self.is_across = len(tool.hosts) > 1 or (not tool.hosts and self.is_net)
        vendor = next((one.vendor for one in self.known.pci if is_accelerator(one)), None)
        matters: tuple[Literal["links", "peers", "topology", "slots"], ...]
        matters = "links", "peers", "topology", "slots"
        self.tools = {f"see_{matter}": tool_of(vendor, matter) for matter in matters}
        self.redirecting = [o.address for o in self.known.pci if "redirect" in f"{o.acs}"]
        self.carried = carried_by(machine)

    def narrowed(self, cells: Iterable[Shown]) -> tuple[float, str, str] | None:
        """Returns the rate of the slowest copy that is too slow, in bytes/s, the slower PCIe links
        that fit it (`16 GT/s x8`), and the card's own link. None if no slower link fits it."""
        links = [one.link for one in self.known.pci if is_accelerator(one)]
        pcie = [(link.speed, link.width) for link in links if link.speed and link.width]
        tables = [product_of(one.model).pcie for one in self.known.accelerators]
        speed, width = max([*pcie, *filter(None, tables)], default=(0.0, 0))
        rates = (
            one.cell.headline
            for one in cells
            if "memcpy" in one.benchmark and "bidirectional" not in one.benchmark
            and not one.cell.is_as_expected
            and one.cell.headline and not (self.is_linked and len(one.places) > 1)
        )  # fmt: skip
        rate = min(rates, default=0.0)
        fit = pcie_of(rate, speed, width)
        if not fit or rate >= _FAR_BELOW * link_rate(speed, width):
            return None
        return rate, " or ".join(fit), f"{speed:g} GT/s x{width}"


def _check_reported(seen: Seen) -> Iterator[Finding]:
    cells = (one for one in seen.cells if one.cell.kind == "reported")
    for reason, names in grouped((one.cell.reason, one.name) for one in cells).items():
        found = f"{count_of(len(names))} failed: {reason}"
        why = "the tool tells no reason, so nothing shows that its data are right"
        remedy = ("# Measure again with the tool's own check of data.",)
        yield Finding("reported", "fail", names[0], found, why, remedy, tuple(names))


def _check_texts(seen: Seen) -> Iterator[Finding]:
    for said in seen.tool.warnings if not seen.results else ():
        yield Finding("reported", "warn", "the texts", said)


def _check_settings(seen: Seen) -> Iterator[Finding]:
    odd = (o for o in seen.cells if not o.cell.is_as_expected)
    cells = tuple(one.name for one in odd if len(one.cell.transfers) > 1)
    applies = {
        "": True,
        "host": not seen.is_across,
        "network": seen.is_across,
        "pcie": not seen.is_linked,
    }
    for one in shipped("settings.yml", tuple[CostlySetting, ...]) if cells else ():
        value = seen.tool.settings.get(one.name, "")
        if re.fullmatch("|".join(one.values), value) and applies[one.where]:
            remedy = (f"unset {one.name}", "# and measure again")
            found = f"it is {value}, so {one.effect}"
            yield Finding("settings", "warn", one.name, found, one.why, remedy, cells)


def _check_peers(seen: Seen) -> Iterator[Finding]:
    measured = [one for one in seen.cells if one.cell.headline]
    for ways in ("memcpy", "bidirectional_memcpy"):
        copies = (o for o in measured if o.benchmark.startswith(f"device_to_device_{ways}"))
        by = grouped((one.benchmark.endswith("_staged"), one) for one in copies)
        rates = {way: median(o.cell.headline or 0.0 for o in some) for way, some in by.items()}
        direct, over = rates.get(False, 0.0), rates.get(True, 0.0)
        if 0 < direct < _SLOWER * over:
            found = (
                f"copies with peer access reach {direct / 1e9:.3g} GB/s, less than "
                f"the {over / 1e9:.3g} GB/s of copies over the host's memory"
            )
            ports = seen.redirecting
            why = f"ACS redirects at {and_all(ports)}: {_FORWARDED}" if ports else _FORWARDED
            names = tuple(one.name for one in by[False])
            yield Finding("peers", "warn", "peer access", found, why, _LOOK, names)
            return


def pcie_of(rate: float, speed: float = 32.0, width: int = 16) -> list[str]:
    """Returns the PCIe links up to a speed in GT/s and a width that carry a rate in bytes/s."""
    return [
        f"{own:g} GT/s x{lanes}"
        for own in (32.0, 16.0, 8.0, 5.0, 2.5)
        for lanes in (16, 8, 4, 2, 1)
        if own <= speed and lanes <= width and _FITS[0] <= rate / link_rate(own, lanes) <= _FITS[1]
    ]


def _check_links(seen: Seen) -> Iterator[Finding]:
    direct = [o for o in seen.cells if not o.benchmark.endswith("_staged")]
    by_card = grouped(((*o.places,), o) for o in direct if len(o.places) == 1)
    found = dict[tuple[str, str], float]()
    for some in (direct, *by_card.values()):
        if one := seen.narrowed(some):
            found.setdefault(one[1:], one[0])
    for (fit, link), rate in found.items():
        said = f"{rate / 1e9:.3g} GB/s is about what PCIe {fit} carries, and not {link}"
        remedy = (f"# Look at the links under load: {seen.tools['see_slots']}; lspci -vv, LnkSta",)
        why = "a slot, a riser or a CPU offers less than the card takes"
        slow = tuple(one.name for one in seen.cells if one.cell.headline == rate)
        yield Finding("links", "warn", "PCIe links", said, why, remedy, slow)


def _check_pairs(seen: Seen) -> Iterator[Finding]:
    for one in seen.results:
        is_of_pairs = one.benchmark.startswith("device_to_device")
        cells = [o for o in one.cells if is_of_pairs and not o.transfers[0].memories and o.headline]
        figures = {(int(o.row), int(o.column)): o.headline or 0.0 for o in cells}
        if figures and (ends := fallen_out(levels_of(figures))):
            own = {
                spoken(one, o): o.headline or 0.0
                for o in cells
                if ends <= {int(o.row), int(o.column)}
            }
            rate = min(own.values())
            what = f"accelerator{'s' * (len(ends) > 1)} {and_all(map(str, sorted(ends)))}"
            said = f"{rate / 1e9:.3g} GB/s in {one.benchmark}, like no group of several pairs"
            why = "other figures fall into groups, as of a topology: what falls out may be slow"
            remedy = (seen.tools["see_links"], seen.tools["see_topology"])
            yield Finding("links", "warn", what, said, why, remedy, tuple(own))
            return


def _check_nodes(seen: Seen) -> Iterator[Finding]:
    cells = [one for one in seen.cells if one.benchmark.startswith(_OF_NODES)]
    own = {(one.cell.row, one.cell.column): one for one in cells if one.cell.headline}
    for (cpus, memory), slow in own.items():
        other = own.get((memory, cpus), slow)
        less, more = (one.cell.headline or 0.0 for one in (slow, other))
        if more > _LOPSIDED * less:
            is_read = cpus.isdecimal()
            found = (
                (f"CPUs of node {cpus} read node {memory}" if is_read else f"{cpus} -> {memory}")
                + f" at {less / 1e9:.3g} GB/s, "
                f"{less / more:.0%} of the {more / 1e9:.3g} GB/s in the other direction"
            )
            what = f"nodes {memory} and {cpus}" if is_read else f"{cpus} and {memory}"
            why, remedy = (_LOPSIDED_WHY, _LOPSIDED_TRY) if is_read else (_ONE_WAY_WHY, _LOOK[:2])
            names = slow.name, other.name
            yield Finding("links", "warn", what, found, why, remedy, names)


def _check_slot(seen: Seen) -> Iterator[Finding]:
    ports = seen.known.adapters
    function = seen.machine.functions.get(ports[0].pci or "") if len(ports) == 1 else None
    link = function.link if function else PciLink()
    if not (link.speed and link.width):
        return
    carried = link_rate(link.speed, link.width)
    speed, width = link.max_speed or link.speed, link.max_width or link.width
    each = {
        o.name: (o.cell.headline or 0.0) / (1 + o.benchmark.endswith("bibw"))
        for o in seen.cells if re.fullmatch(r"rdma_\w+bw", o.benchmark)
    }  # fmt: skip
    best = max(each, key=each.__getitem__, default="")
    rate = each.get(best, 0.0)
    is_narrow = carried < min(link_rate(speed, width), ports[0].rate or math.inf)
    if is_narrow and _FITS[0] * carried <= rate <= carried:
        way = " each way" if "bibw" in best else ""
        found = (
            f"{rate / 1e9:.3g} GB/s ({8e-9 * rate:.3g} Gb/s){way} is {rate / carried:.0%} of "
            f"what PCIe {link.speed:g} GT/s x{link.width} carries ({carried / 1e9:.3g} GB/s, "
            f"{8e-9 * carried:.3g} Gb/s)"
        )
        more = " and its port carries more" if ports[0].rate else ""
        why = f"the adapter takes {speed:g} GT/s x{width}{more}: {_NARROW}"
        yield Finding("links", "warn", "the adapter's slot", found, why, _NARROW_TRY, (best,))


def _check_network(seen: Seen) -> Iterator[Finding]:
    low = {
        one.name: one.cell.share(one.cell.expected.achievable) or 0.0
        for one in seen.cells
        if one.cell.verdict in ("low", "perhaps low") and one.cell.expected
    }
    if not seen.is_across or not low:
        return
    causes = grouped(_causes(seen))
    why = f"the texts show {and_all(causes[True])}; other" if True in causes else "the"
    found = f"{max(low.values()):.0%} of what is expected"
    found += f": {seen.carried.because}" if seen.carried is not None else ""
    why += f" usual causes are {and_all(causes.get(False, ()), 'or')}"
    yield Finding("network", "warn", "network between hosts", found, why, _TRY, tuple(low))


def _causes(seen: Seen) -> Iterator[tuple[bool, str]]:
    tool, ways, known, ports = seen.tool, seen.tool.ways, seen.known, seen.redirecting
    is_far = any(how in FAR for how in tool.nearest.values())
    redirects = f" at {and_all(ports)}" if ports else ""
    is_virtual = seen.machine.is_virtual or "virtual machine" in ways
    mtu, split = (tool.settings.get(name, "") for name in ("Mtu", "NCCL_IB_SPLIT_DATA_ON_QPS"))
    if down := tool.settings.get("ports down"):
        yield True, f"a port that is down ({down})"
    yield "NET/Socket" in ways, "TCP instead of RDMA"
    yield seen.is_net and "GDRDMA" not in ways, "no GPUDirect RDMA"
    yield bool(ports), f"ACS{redirects}, which sends what adapters and GPUs exchange to the CPU"
    yield known.host.iommu == "translating", "an IOMMU that translates"
    yield is_far, "adapters far from their GPUs"
    yield is_virtual, "a guest without the topology or ATS"
    yield len(known.adapters) > (tool.adapters or 99), "fewer adapters in use than there are"
    yield mtu.isdecimal() and int(mtu) < 4096, "a small MTU"
    yield split == "1", "messages split over queue pairs (NCCL_IB_SPLIT_DATA_ON_QPS=1)"


def _check_hosts(seen: Seen) -> Iterator[Finding]:
    compared = sum(1 for one in seen.tool.peers if one.cells)
    severity: Severity = "fail" if compared > 2 else "warn"
    others, why = "the other host", "nothing tells which of two hosts is as usual"
    if compared > 2:
        others = f"the other {compared - 1} hosts"
        why = "hosts that ran the same should agree, and the others do: the cause is at this one"
    for one in seen.tool.peers:
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


def check(evidence: Evidence, tool: ToolRun) -> Iterator[Finding]:
    seen = Seen(evidence.results, evidence.machine, tool)
    for one in (
        _check_hosts, _check_reported, _check_texts, _check_settings, _check_peers, _check_links,
        _check_pairs, _check_nodes, _check_slot, _check_network,
    ):  # fmt: skip
        yield from one(seen)
