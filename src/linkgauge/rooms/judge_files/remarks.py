"""Explains figures of another tool in addition to their verdict: says when the texts of remarks.yml
apply."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.documents.tool_run import ToolRun
from linkgauge.model.hardware.inventory import is_accelerator
from linkgauge.model.hardware.pcie import link_rate
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
"""How many times the time of a larger size counts as a pause."""
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
    groups = (_between, _of_links, _of_hosts, _of_tools, _of_curves, _of_copies)
    return [said for group in groups for said in group(seen)]


def _say(text: str, /, **fields: object) -> str:
    texts: dict[str, str] = shipped("remarks.yml", dict[str, str])
    return " ".join(texts[text].format(**fields).split())


class _Seen:
    """A judged run of another tool, with values that several explanations need."""

    def __init__(self, run: Run, tool: ToolRun) -> None:
        known = run.machine.known
        self.run, self.tool, self.known = run, tool, known
        self.cells = [(result.benchmark, cell) for result in run.results for cell in result.cells]
        self.models = sorted({one.model for one in known.accelerators})
        self.is_linked = any(one.links for one in known.accelerators)
        self.pairs = [cell for _, cell in self.cells if len(_places(cell)) > 1]
        self.low = [(name, cell) for name, cell in self.cells if cell.verdict == "low"]
        self.ranks = max((len(cell.transfers) for _, cell in self.cells), default=0)
        self.is_across = is_across(tool)
        self.curves = [(result, _curve(result.cells)) for result in run.results]

    def has(self, *names: str) -> bool:
        """Whether any benchmark's name begins with one of these names."""
        return any(name.startswith(names) for name, _ in self.cells)


def _places(cell: CellResult) -> set[str]:
    return {str(m) for t in cell.transfers for m in t.memories if m.is_device}


def _between(seen: _Seen) -> Iterator[str]:
    """Explains how accelerators of one host reach each other."""
    ways, settings = seen.tool.ways, seen.tool.settings
    pairs = {name for name, _ in seen.cells if name.startswith("device_to_device")}
    is_peer = any(not name.endswith("_staged") for name in pairs) or "P2P" in ways
    if "SHM" in ways and not any("P2P" in name for name in settings):
        yield _say("on_host_though_linked" if seen.is_linked else "on_host")
    without = [m for m in seen.models if re.search("GeForce RTX [345]0", m)]
    if without and seen.pairs and not is_peer and not seen.is_linked:
        yield _say("no_peers", model=without[0])
    if "peer access" in ways and not seen.is_linked:
        yield _say("peers_by_pcie")
    elif pairs and not is_peer:
        yield _say("staged")
    machine = seen.run.machine.inventory
    hypervisor = machine.host.hypervisor if machine is not None and machine.host else None
    is_unsure = any(cell.verdict != "ok" for cell in seen.pairs) or seen.ranks > 1
    if is_unsure and (hypervisor or "virtual machine" in ways):
        yield _say("virtual", which=hypervisor or "which kind is not told")
    reasons = (c.expected.because for _, c in seen.cells if c.expected and c.verdict != "ok")
    if any("route crosses the host bridge" in because for because in reasons):
        yield _say("through_cpu")
    for way in ("P2P disabled", "no NVLS"):
        if way in ways:
            yield _say(way.replace(" ", "_"))


def _of_links(seen: _Seen) -> Iterator[str]:
    """Explains links that carry less than they should."""
    yield from _narrow(seen)
    if any(name.startswith(("host_to_device", "device_to_host")) for name, _ in seen.low):
        yield _say("host_copies")
    is_several = any(len(cell.transfers) > 1 for _, cell in seen.low)
    if is_several and seen.is_linked and not seen.is_across:
        yield _say("below_links")
    is_assumed = any("usual server" in s or "nothing tells" in s for s in seen.tool.assumed)
    if is_assumed and any(len(_places(cell)) > 1 for _, cell in seen.low):
        yield _say("assumed")
    if seen.tool.relaxed is not None and any("bidirectional" in name for name, _ in seen.low):
        state = "on" if seen.tool.relaxed else "off, which slows both ways at once"
        yield _say("relaxed", state=state)


def _narrow(seen: _Seen) -> Iterator[str]:
    """Names the PCIe links that usually carry as much as the slowest copy reached."""
    links = [one.link for one in seen.known.pci if is_accelerator(one)]
    pcie = [(link.speed, link.width) for link in links if link.speed and link.width]
    sheets = [one.pcie for one in map(product_of, seen.models) if one and one.pcie]
    speed, width = max([*pcie, *sheets], default=(0.0, 0))
    rates = (
        cell.headline
        for name, cell in seen.cells
        if "memcpy" in name and "bidirectional" not in name and cell.verdict != "ok"
        and cell.headline and not (seen.is_linked and len(_places(cell)) > 1)
    )  # fmt: skip
    rate = min(rates, default=0.0)
    fit = [
        f"{own:g} GT/s x{lanes}"
        for own in (32.0, 16.0, 8.0, 5.0, 2.5)
        for lanes in (16, 8, 4, 2, 1)
        if own <= speed and lanes <= width and _FITS[0] <= rate / link_rate(own, lanes) <= _FITS[1]
    ]
    if fit and rate < _FAR_BELOW * link_rate(speed, width):
        link = f"{speed:g} GT/s x{width}"
        yield _say("narrow", rate=rate / 1e9, fit=" or ".join(fit), link=link)


def _of_hosts(seen: _Seen) -> Iterator[str]:
    """Explains figures across several hosts."""
    tool = seen.tool
    yield from (_say("warned", said=said) for said in tool.warnings)
    if seen.is_across and not is_net(tool) and {"P2P", "SHM"} & {*tool.ways}:
        yield _say("containers", nodes=len(tool.hosts))
    elif seen.is_across:
        count = tool.adapters
        known = f"{count_of(count, 'adapter')} a host, but" if count else "no adapter and"
        nodes = len(tool.hosts) if len(tool.hosts) > 1 else "Several"
        yield _say("nodes", nodes=nodes, known=known)
        yield from _of_network(seen, tool)
        if seen.ranks == len(tool.hosts):
            yield _say("one_gpu")
        if seen.has("alltoall", "sendrecv", "gather", "scatter"):
            yield _say("all_to_all")
        if "NET/Socket" in tool.ways:
            yield _say("tcp_socket")
        elif "NET/IB" in tool.ways and "GDRDMA" not in tool.ways:
            yield _say("no_gdr")
        yield _say("little_network")
    far = [f"{index} ({how})" for index, how in tool.nearest.items() if how in _FAR]
    if far and (seen.is_across or seen.has("rdma")):
        yield _say("far_adapters", names=", ".join(far))


def _of_network(seen: _Seen, tool: ToolRun) -> Iterator[str]:
    """Says which adapters carry as much as was measured. Of what two nodes reduce by the tree, only
    the algorithm bandwidth crosses the network."""
    most = max((rate for _, curve in seen.curves for _, rate in curve), default=0.0) / 1e9
    algorithm = tool.settings.get("NCCL_ALGO", "tree").lower()
    if len(tool.hosts) == 2 < seen.ranks and seen.has("all_reduce") and "tree" in algorithm:
        rate = most * seen.ranks / (2 * (seen.ranks - 1))
        yield _say("tree", most=most, rate=rate, fit=_fitting(rate, tool.adapters))
        most = rate
    elif "NET/Socket" not in tool.ways:
        yield _say("adapters", fit=_fitting(most, tool.adapters))
    yield from _told_speed(tool, most)


def _told_speed(tool: ToolRun, most: float) -> Iterator[str]:
    """Says what adapters carry of whose speed texts tell."""
    speed, count = tool.settings.get("adapter Gb/s", ""), tool.adapters or 1
    carries = _CARRIES.get(int(speed or 0), 0) * count
    if carries:
        yield _say(
            "adapters_told", count=count_of(count, "adapter"), speed=speed, carries=carries,
            share=f"{most / carries:.0%}",
        )  # fmt: skip


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


def _of_tools(seen: _Seen) -> Iterator[str]:
    """Explains settings that network tools print."""
    mtu, gpu = (seen.tool.settings.get(name, "") for name in ("Mtu", "CUDA device"))
    if seen.has("rdma"):
        if mtu.isdecimal() and int(mtu) < 4096:
            yield _say("mtu", mtu=mtu)
        if gpu:
            yield _say("gpu_memory", gpu=gpu)
        most = max((c.headline or 0.0 for n, c in seen.cells if n.endswith("_bw")), default=0.0)
        largest = max(result.size for result, _ in seen.curves)
        is_little = most < _LOADED[0] * _CARRIES[200] * 1e9 and largest <= _SMALL
        if seen.tool.settings.get("qps") == "1" and is_little:
            yield _say("one_pair")
        told = list(_told_speed(seen.tool, most / 1e9))
        yield from told or [_say("adapter_speed", fit=_fitting(most / 1e9, 1))]
    if (buffers := seen.tool.settings.get("buffers", "")) and "D" in buffers:
        yield _say("buffers", buffers=buffers, links=_links(seen))
    if seen.has("nic_tcp_iperf3"):
        yield _say("tcp")


def _links(seen: _Seen) -> str:
    """Returns the links between the first two accelerators, in words."""
    first, *others = seen.known.accelerators or (None,)
    ends = ("nvswitch", *(one.memory for one in others[:1] if one is not None))
    rates = (
        [link.rate for link in first.links if link.remote in ends and link.rate] if first else []
    )
    if not rates:
        return "the links between the GPUs, or the GPU's PCIe link, carry the messages"
    return f"{len(rates)} links of {rates[0] / 1e9:g} GB/s each way carry messages between two GPUs"


def _of_copies(seen: _Seen) -> Iterator[str]:
    """Explains copies within accelerators, and slices of accelerators."""
    yield from (_say("slice", model=model) for model in seen.models if " MIG " in f"{model} ")
    if seen.has("device_local_copy"):
        yield _say("counted")
        for model in seen.models:
            product = product_of(model)
            if product is not None and product.copies:
                yield _say("slow_copies", model=model, rate=product.copies)


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


def _of_curves(seen: _Seen) -> Iterator[str]:
    """Explains collectives by their sizes."""
    if seen.ranks == 1 and any(isinstance(cell.operation, Collective) for _, cell in seen.cells):
        yield _say("alone")
    for result, curve in seen.curves:
        size = curve[0][0] if curve else _SMALL
        starts = min((cell.headline or 1.0 for cell in result.cells), default=0.0) if curve else 0
        if size < _SMALL and starts > _LATE * max(len(seen.tool.hosts), 1):
            yield _say(
                "slow_start", name=result.benchmark, time=starts * 1e6, size=format_size(size)
            )
        if len(curve) > 1 and curve[-2][1]:
            yield from _of_curve(result, curve, seen.ranks)
    nvls = any(
        link.kind == "nvlink" and (link.version or "0") >= "4" and link.remote == "nvswitch"
        for one in seen.known.accelerators
        for link in one.links
    )
    for result, curve in seen.curves if nvls else ():
        if curve and result.benchmark == "all_reduce" and len(result.cells[0].transfers) > 2:
            yield _say("in_switches", most=max(rate for _, rate in curve) / 1e9)


def _of_curve(result: Result, curve: Sequence[tuple[int, float]], ranks: int) -> Iterator[str]:
    """Explains averages over all sizes, unaligned sizes, sizes that take longer than larger ones,
    and curves that still rise at the end."""
    name, ((before, less), (largest, most)) = result.benchmark, curve[-2:]
    best = max(rate for _, rate in curve)
    if result.average and result.average < _FAIR * best:
        yield _say("average", average=result.average / 1e9, most=best / 1e9)
    parts = 1 if name in ("all_reduce", "reduce", "broadcast") else ranks
    if any(size % (16 * parts) for size, _ in curve if size > 1 << 20):
        yield _say("unaligned", name=name)
    times = [(size, size / rate) for size, rate in curve if rate and size >= _SMALL]
    for at, (size, time) in enumerate(times[:-1]):
        later = min(times[at + 1 :], key=lambda one: one[1])
        if time > _PAUSE * later[1]:
            yield _say("pause", name=name, size=format_size(size), later=format_size(later[0]))
            break
    doublings = max(largest / before, 1.0001)
    if largest < _ENOUGH or most / less > _RISES ** min(doublings / 2, 4):
        yield _say("rising", name=name, size=format_size(largest))
