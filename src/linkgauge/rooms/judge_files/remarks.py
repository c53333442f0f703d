"""Explains figures of another tool in addition to their verdict: says when the texts of remarks.yml
apply."""

from __future__ import annotations

import re
from collections.abc import Sequence

from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.documents.tool_run import ToolRun
from linkgauge.model.hardware.pcie import is_accelerator, link_rate
from linkgauge.model.operations.collective import Collective
from linkgauge.model.units import count_of, format_size

from .checks import is_across, is_net
from .products import product_of, shipped

_RISES = 1.04
"""The ratio by which a curve must gain with its last doubling to count as still rising."""
_FAR_BELOW = 0.6
"""The share of a link's rate below which a copy may have another link."""
_FITS = (0.75, 0.95)
"""The shares of a link's rate that copies over it usually reach."""
_LOADED = (0.85, 1.05)
"""The shares of its adapters' rate that a collective between hosts usually reaches."""
_CARRIES = {10: 1.2, 25: 3, 50: 6, 100: 12, 200: 24, 400: 48, 800: 96}
"""GB/s that an adapter carries of its Gb/s (nccl-tests issue 119)."""
_PAUSE = 2
_FAIR = 0.85
"""The share of the best size's rate below which the average of all sizes says little."""
_LATE = 100e-6
"""The seconds for each host that a small collective takes where something holds up its start."""
_SMALL, _ENOUGH = 64 << 10, 64 << 20
"""The sizes in bytes below which a collective shows only latency, and says little about links."""
_FAR = ("PHB", "NODE", "SYS")


def remarks(run: Run, tool: ToolRun) -> list[str]:
    """Returns all explanations that apply, in the order in which a person would check them."""
    seen = _Seen(run, tool)
    for group in (_between, _of_links, _of_hosts, _of_tools, _of_curves, _of_copies):
        group(seen)
    return seen.said


class _Seen:
    """A judged run of another tool, with values that several explanations need."""

    def __init__(self, run: Run, tool: ToolRun) -> None:
        known = run.machine.known
        self.tool, self.known, self.said = tool, known, list[str]()
        self.cells = [(result.benchmark, cell) for result in run.results for cell in result.cells]
        self.models = sorted({one.model for one in known.accelerators})
        self.is_linked = any(one.links for one in known.accelerators)
        self.pairs = [cell for _, cell in self.cells if len(_places(cell)) > 1]
        self.low = [(name, cell) for name, cell in self.cells if cell.verdict == "low"]
        self.ranks = max((len(cell.transfers) for _, cell in self.cells), default=0)
        self.is_across = is_across(tool)
        self.curves = [(result, _curve(result.cells)) for result in run.results]

    def say(self, text: str, applies: object = True, /, **fields: object) -> None:
        """Adds a text of remarks.yml with these fields, if it applies."""
        if applies:
            texts: dict[str, str] = shipped("remarks.yml", dict[str, str])
            self.said.append(" ".join(texts[text].format(**fields).split()))

    def has(self, *names: str) -> bool:
        """Whether any benchmark's name begins with one of these names."""
        return any(name.startswith(names) for name, _ in self.cells)


def _places(cell: CellResult) -> set[str]:
    return {str(m) for t in cell.transfers for m in t.memories if m.is_device}


def _between(seen: _Seen) -> None:
    """Explains how accelerators of one host reach each other."""
    ways, settings = seen.tool.ways, seen.tool.settings
    pairs = {name for name, _ in seen.cells if name.startswith("device_to_device")}
    is_peer = any(not name.endswith("_staged") for name in pairs) or "P2P" in ways
    is_shared = "SHM" in ways and not any("P2P" in name for name in settings)
    seen.say("on_host_though_linked" if seen.is_linked else "on_host", is_shared)
    without = [m for m in seen.models if re.search("GeForce RTX [345]0", m)]
    is_without = seen.pairs and not is_peer and not seen.is_linked
    for model in without[:1]:
        seen.say("no_peers", is_without, model=model)
    by_pcie = "peer access" in ways and not seen.is_linked
    seen.say("peers_by_pcie", by_pcie)
    seen.say("staged", pairs and not is_peer and not by_pcie)
    hypervisor = seen.known.host.hypervisor
    is_unsure = any(not cell.is_as_expected for cell in seen.pairs) or seen.ranks > 1
    is_virtual = is_unsure and (hypervisor or "virtual machine" in ways)
    seen.say("virtual", is_virtual, which=hypervisor or "which kind is not told")
    reasons = (c.expected.because for _, c in seen.cells if c.expected and not c.is_as_expected)
    seen.say("through_cpu", any("route crosses the host bridge" in because for because in reasons))
    seen.say("P2P_disabled", "P2P disabled" in ways)
    seen.say("no_NVLS", "no NVLS" in ways)


def _of_links(seen: _Seen) -> None:
    """Explains links that carry less than they should."""
    _narrow(seen)
    low, pairs = tuple(name for name, _ in seen.low), [c for c in seen.pairs if c.verdict == "low"]
    seen.say("host_copies", any(n.startswith(("host_to_device", "device_to_host")) for n in low))
    is_several = any(len(cell.transfers) > 1 for _, cell in seen.low)
    seen.say("below_links", is_several and seen.is_linked and not seen.is_across)
    is_assumed = any("usual server" in s or "nothing tells" in s for s in seen.tool.assumed)
    seen.say("assumed", is_assumed and pairs)
    is_told = seen.tool.relaxed is not None and any("bidirectional" in name for name in low)
    state = "on" if seen.tool.relaxed else "off, which slows both ways at once"
    seen.say("relaxed", is_told, state=state)


def _narrow(seen: _Seen) -> None:
    """Names the PCIe links that usually carry as much as the slowest copy reached."""
    links = [one.link for one in seen.known.pci if is_accelerator(one)]
    pcie = [(link.speed, link.width) for link in links if link.speed and link.width]
    sheets = [one.pcie for one in map(product_of, seen.models) if one and one.pcie]
    speed, width = max([*pcie, *sheets], default=(0.0, 0))
    rates = (
        cell.headline
        for name, cell in seen.cells
        if "memcpy" in name and "bidirectional" not in name and not cell.is_as_expected
        and cell.headline and not (seen.is_linked and len(_places(cell)) > 1)
    )  # fmt: skip
    rate = min(rates, default=0.0)
    fit = [
        f"{own:g} GT/s x{lanes}"
        for own in (32.0, 16.0, 8.0, 5.0, 2.5)
        for lanes in (16, 8, 4, 2, 1)
        if own <= speed and lanes <= width and _FITS[0] <= rate / link_rate(own, lanes) <= _FITS[1]
    ]
    link, is_far = f"{speed:g} GT/s x{width}", rate < _FAR_BELOW * link_rate(speed, width)
    seen.say("narrow", fit and is_far, rate=rate / 1e9, fit=" or ".join(fit), link=link)


def _of_hosts(seen: _Seen) -> None:
    """Explains figures across several hosts."""
    tool = seen.tool
    for said in tool.warnings:
        seen.say("warned", said=said)
    if seen.is_across and not is_net(tool) and {"P2P", "SHM"} & {*tool.ways}:
        seen.say("containers", nodes=len(tool.hosts))
    elif seen.is_across:
        count = tool.adapters
        known = f"{count_of(count, 'adapter')} a host, but" if count else "no adapter and"
        nodes = len(tool.hosts) if len(tool.hosts) > 1 else "Several"
        seen.say("nodes", nodes=nodes, known=known)
        _of_network(seen, tool)
        seen.say("one_gpu", seen.ranks == len(tool.hosts))
        seen.say("all_to_all", seen.has("alltoall", "sendrecv", "gather", "scatter"))
        ways, is_tcp = tool.ways, "NET/Socket" in tool.ways
        seen.say("tcp_socket", is_tcp)
        seen.say("no_gdr", not is_tcp and "NET/IB" in ways and "GDRDMA" not in ways)
        seen.say("little_network")
    far = [f"{index} ({how})" for index, how in tool.nearest.items() if how in _FAR]
    is_used = seen.is_across or seen.has("rdma")
    seen.say("far_adapters", far and is_used, names=", ".join(far))


def _of_network(seen: _Seen, tool: ToolRun) -> None:
    """Says which adapters carry as much as was measured. Of what two nodes reduce by the tree, only
    the algorithm bandwidth crosses the network."""
    most = max((rate for _, curve in seen.curves for _, rate in curve), default=0.0) / 1e9
    algorithm = tool.settings.get("NCCL_ALGO", "tree").lower()
    if len(tool.hosts) == 2 < seen.ranks and seen.has("all_reduce") and "tree" in algorithm:
        rate = most * seen.ranks / (2 * (seen.ranks - 1))
        seen.say("tree", most=most, rate=rate, fit=_fitting(rate, tool.adapters))
        most = rate
    elif "NET/Socket" not in tool.ways:
        seen.say("adapters", fit=_fitting(most, tool.adapters))
    _told_speed(seen, most)


def _told_speed(seen: _Seen, most: float) -> float:
    """Says what adapters carry of whose speed texts tell. Returns GB/s, or 0 if none tells."""
    speed, number = seen.tool.settings.get("adapter Gb/s", ""), seen.tool.adapters or 1
    carries = _CARRIES.get(int(speed or 0), 0) * number
    count, share = count_of(number, "adapter"), f"{most / (carries or 1):.0%}"
    seen.say("adapters_told", carries, count=count, speed=speed, carries=carries, share=share)
    return carries


def _fitting(most: float, adapters: int | None = None) -> str:
    """Returns a sentence on the sets of adapters that usually carry this rate in GB/s, or an empty
    text if no set fits."""
    fit = [
        f"{count_of(count, 'adapter')} of {speed} Gb/s"
        for speed, carries in _CARRIES.items()
        for count in ((adapters,) if adapters else (1, 2, 4, 8)[: 4 if speed > 50 else 1])
        if _LOADED[0] <= most / (count * carries) <= _LOADED[1]
    ]
    return f"{most:.3g} GB/s ({8 * most:.4g} Gb/s) fits {' or '.join(fit)}." if fit else ""


def _of_tools(seen: _Seen) -> None:
    """Explains settings that network tools print."""
    mtu, gpu = (seen.tool.settings.get(name, "") for name in ("Mtu", "CUDA device"))
    if seen.has("rdma"):
        seen.say("mtu", mtu.isdecimal() and int(mtu) < 4096, mtu=mtu)
        seen.say("gpu_memory", gpu, gpu=gpu)
        most = max((c.headline or 0.0 for n, c in seen.cells if n.endswith("_bw")), default=0.0)
        largest = max(result.size for result, _ in seen.curves)
        is_little = most < _LOADED[0] * _CARRIES[200] * 1e9 and largest <= _SMALL
        seen.say("one_pair", seen.tool.settings.get("qps") == "1" and is_little)
        is_told = _told_speed(seen, most / 1e9)
        seen.say("adapter_speed", not is_told, fit=_fitting(most / 1e9, 1))
    buffers = seen.tool.settings.get("buffers", "")
    seen.say("buffers", "D" in buffers, buffers=buffers, links=_links(seen))
    seen.say("tcp", seen.has("nic_tcp_iperf3"))


def _links(seen: _Seen) -> str:
    """Returns the links between the first two accelerators, in words."""
    cards = seen.known.accelerators
    links = [link for one in cards[:1] for link in one.links]
    ends = ("nvswitch", *(one.memory for one in cards[1:2]))
    between = [link for link in links if link.remote in ends]
    rates = [link.rate for link in between if link.rate]
    if rates:
        each = f"{len(rates)} links of {rates[0] / 1e9:g} GB/s each way"
        return f"{each} carry messages between two GPUs"
    found = [seen.known.assumed_of("link", one.memory) for one in cards[:1] if between]
    if found and found[0]:
        each = found[0].replace(" × ", " links of ")
        return f"{each} each way, as is assumed, carry messages between two GPUs"
    return "the links between the GPUs, or the GPU's PCIe link, carry the messages"


def _of_copies(seen: _Seen) -> None:
    """Explains copies within accelerators, and slices of accelerators."""
    for model in seen.models:
        seen.say("slice", " MIG " in f"{model} ", model=model)
    is_local = seen.has("device_local_copy")
    seen.say("counted", is_local)
    for model in seen.models:
        if (product := product_of(model)) and product.copies:
            seen.say("slow_copies", is_local, model=model, rate=product.copies)


# Curves of collectives.


def _curve(cells: Sequence[CellResult]) -> list[tuple[int, float]]:
    """Returns the sizes and the bytes/s on the bus of collectives out of place, over the most
    ranks."""
    most = max((len(cell.transfers) for cell in cells), default=0)
    return sorted(
        (size, cell.operation.bytes_on_bus(size, most) / cell.headline)
        for cell in cells
        if isinstance(cell.operation, Collective) and len(cell.transfers) == most
        and not cell.operation.in_place and cell.headline
        and (size := cell.transfers[0].bytes_moved(1))
    )  # fmt: skip


def _of_curves(seen: _Seen) -> None:
    """Explains collectives by their sizes."""
    is_any = any(isinstance(cell.operation, Collective) for _, cell in seen.cells)
    seen.say("alone", is_any and seen.ranks == 1)
    for result, curve in seen.curves:
        size = curve[0][0] if curve else _SMALL
        starts = min((cell.headline or 1.0 for cell in result.cells), default=0.0) if curve else 0
        is_late = size < _SMALL and starts > _LATE * max(len(seen.tool.hosts), 1)
        about = {"name": result.benchmark, "time": starts * 1e6, "size": format_size(size)}
        seen.say("slow_start", is_late, **about)
        if len(curve) > 1 and curve[-2][1]:
            _of_curve(seen, result, curve)
    nvls = any(
        link.kind == "nvlink" and (link.version or "0") >= "4" and link.remote == "nvswitch"
        for one in seen.known.accelerators
        for link in one.links
    )
    for result, curve in seen.curves if nvls else ():
        is_reduced = result.benchmark == "all_reduce" and len(result.cells[0].transfers) > 2
        most = max((rate for _, rate in curve), default=0.0) / 1e9
        seen.say("in_switches", is_reduced and curve, most=most)


def _of_curve(seen: _Seen, result: Result, curve: Sequence[tuple[int, float]]) -> None:
    """Explains averages over all sizes, unaligned sizes, sizes that take `_PAUSE` times as long as
    a larger size, and curves that still rise at the end."""
    name, ((before, less), (largest, most)) = result.benchmark, curve[-2:]
    best = max(rate for _, rate in curve)
    average = result.average or best
    seen.say("average", average < _FAIR * best, average=average / 1e9, most=best / 1e9)
    parts = 1 if name in ("all_reduce", "reduce", "broadcast") else seen.ranks
    seen.say(
        "unaligned", any(size % (16 * parts) for size, _ in curve if size > 1 << 20), name=name
    )
    times = [(size, size / rate) for size, rate in curve if rate and size >= _SMALL]
    for at, (size, time) in enumerate(times[:-1]):
        later = min(times[at + 1 :], key=lambda one: one[1])
        if time > _PAUSE * later[1]:
            seen.say("pause", name=name, size=format_size(size), later=format_size(later[0]))
            break
    doublings = max(largest / before, 1.0001)
    is_rising = largest < _ENOUGH or most / less > _RISES ** min(doublings / 2, 4)
    seen.say("rising", is_rising, name=name, size=format_size(largest))
