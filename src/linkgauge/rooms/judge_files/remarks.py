"""Explains figures of another tool: decides which texts of remarks.yml apply."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from linkgauge.judge.expected.across import REACHED
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.documents.tool_run import ToolRun
from linkgauge.model.grouped import grouped
from linkgauge.model.names import and_all
from linkgauge.model.operations.collective import Collective
from linkgauge.model.units import count_of, format_size

from .checks import FAR, Seen, pcie_of
from .products import product_of, shipped
from .scan import DIFFER, RUN

_RISES = 1.04
"""The ratio by which a curve must gain with its last doubling to count as still rising."""
_FAR_BELOW_OTHERS = 0.8
"""The share of other copies' rate below which kernels read the host's memory notably slower."""
_LOADED = (0.85, 1.05)
"""The shares of its adapters' rate that a collective between hosts usually reaches."""
_PAUSE = 2
_TO_SOME = "sendrecv", "alltoall", "gather", "scatter"
_BOTH_WAYS = re.compile("bibw|exchange|sendrecv")
_OVER_LINKS, _MOST_OF_LINK = 1.05, 77e9
"""The share of links' rate, and the bytes/s each way of a link of any product, that no message
exceeds."""
_FALLS = 0.7
"""The share of the best size's rate below which no larger size may stay, or the curve falls."""
_FAIR = 0.85
"""The share of the best size's rate below which the average of all sizes says little."""
_ALLOCATES = 1.2
"""The ratio of STREAM's Copy to Triad from which Copy alone overwrites memory unread."""
_AS_NEAR = 0.95
"""The share of a node's own reads that reads from another socket's memory do not reach."""
_LATE = 100e-6
"""The seconds for each host that a small collective takes where something holds up its start."""
_SMALL, _ENOUGH = 64 << 10, 64 << 20
"""The sizes in bytes below which a collective shows only latency, and says little about links."""
_SLOW = 0.1e9
_PACKET = 4096
"""The bytes of a packet: smaller messages show how many of them there are in a second."""
_RACK = 72
"""The GPUs that one rack's NVLink joins (NVL72)."""


def remarks(run: Run, tool: ToolRun) -> list[str]:
    seen = _Seen(run, tool)
    for group in (_between, _of_links, _of_hosts, _of_tools, _of_curves, _of_runs, _of_copies):
        group(seen)
    return [*dict.fromkeys(seen.said)]


class _Seen(Seen):
    def __init__(self, run: Run, tool: ToolRun) -> None:
        super().__init__(run.results, run.machine, tool)
        self.said = list[str]()
        self.models = sorted({one.model for one in run.machine.all_devices if not one.is_cpu})
        self.pairs = [one for one in self.cells if len(one.places) > 1]
        self.ranks = max((len(one.cell.transfers) for one in self.cells), default=0)
        expected = (one.cell.expected for one in self.cells)
        self.is_expected = any(one is not None and one.achievable for one in expected)
        own = ((o, grouped((c.column.partition(RUN)[2], c) for c in o.cells)) for o in run.results)
        curves = ((one, _curve(cells)) for one, runs in own for cells in runs.values())
        self.curves = [(one, curve) for one, curve in curves if curve]

    def say(self, text: str, applies: object = True, /, **fields: object) -> None:
        if applies:
            texts: dict[str, str] = shipped("remarks.yml", dict[str, str])
            self.said.append(" ".join(texts[text].format(**fields, **self.tools).split()))

    def best(self, name: str) -> float:
        return max((o.cell.headline or 0.0 for o in self.cells if o.benchmark == name), default=0.0)

    def has(self, *names: str) -> bool:
        return any(one.benchmark.startswith(names) for one in self.cells)


def _between(seen: _Seen) -> None:
    ways, settings = seen.tool.ways, seen.tool.settings
    pairs = {o.benchmark for o in seen.cells if o.benchmark.startswith("device_to_device")}
    is_peer = any(not name.endswith("_staged") for name in pairs) or "P2P" in ways
    is_shared = "SHM" in ways and not any("P2P" in name for name in settings)
    seen.say("on_host_though_linked" if seen.is_linked else "on_host", is_shared)
    without = [m for m in seen.models if re.search("GeForce RTX [345]0", m)]
    for model in without[:1] if seen.pairs and not is_peer and not seen.is_linked else ():
        seen.say("no_peers", model=model)
    by_pcie = "peer access" in ways and not seen.is_linked
    seen.say("peers_by_pcie", by_pcie)
    seen.say("staged", pairs and not is_peer and not by_pcie)
    hypervisor = seen.known.host.hypervisor
    is_unsure = any(not one.cell.is_as_expected for one in seen.pairs) or seen.ranks > 1
    is_virtual = is_unsure and (hypervisor or "virtual machine" in ways)
    seen.say("virtual", is_virtual, which=hypervisor or "which kind is not known")
    odd = (one.cell.expected for one in seen.cells if not one.cell.is_as_expected)
    seen.say("through_cpu", any(o and "route crosses the host bridge" in o.because for o in odd))
    seen.say("P2P_disabled", "P2P disabled" in ways)
    named = {"peer_latency": "between peers", "staged_latency": "over the host's memory"}
    times = [f"{settings[name]} {how}" for name, how in named.items() if name in settings]
    seen.say("peer_times", times, times=" and ".join(times))
    seen.say("no_NVLS", "no NVLS" in ways)
    cards = seen.known.accelerators
    ends = {(one.memory, link.remote) for one in cards for link in one.links if "nvl" in link.kind}
    apart = [f"{a.memory}-{b.memory}" for a, b in combinations(cards, 2)
             if ends.isdisjoint({(a.memory, b.memory), (b.memory, a.memory)})]  # fmt: skip
    is_meshed = ends and not any(remote == "nvswitch" for _, remote in ends)
    seen.say("no_link", is_meshed and pairs and apart[:16], names=", ".join(apart[:16]))


def _of_links(seen: _Seen) -> None:
    if found := seen.narrowed(o for o in seen.cells if o.benchmark.endswith("_staged")):
        seen.say("narrow", rate=found[0] / 1e9, fit=found[1], link=found[2])
    with_host = ("host_to_device", "device_to_host")
    seen.say("host_copies", any(one.benchmark.startswith(with_host) for one in seen.low))
    one_way = re.compile("(?:host_to_device|device_to_host)_memcpy|clpeak_")
    copies = [one.cell for one in seen.cells if one_way.match(one.benchmark)]
    is_known = any(one.expected and one.expected.achievable for one in copies)
    is_known = is_known or "confidential computing" in seen.tool.ways
    cards = grouped((one.column, one.headline or 0.0) for one in copies if not is_known)
    by_fit = grouped((" or ".join(pcie_of(max(own))), max(own)) for own in cards.values())
    for fit, most in by_fit.items():
        seen.say("fits_slot", fit, rate=max(most) / 1e9, fit=fit)
    at_once = seen.is_linked and any(len(one.cell.transfers) > 1 for one in seen.low)
    seen.say("below_links", at_once and not seen.is_across)
    is_assumed = any("usual server" in s or "nothing tells" in s for s in seen.tool.assumed)
    is_between = not seen.is_across and any(one in seen.pairs for one in seen.low)
    seen.say("assumed", is_assumed and is_between)
    both, alone = (seen.best(f"host_to_device_{name}memcpy_ce") for name in ("bidirectional_", ""))
    relaxed = {None: "no text tells", True: "it is on", False: "it is off"}[seen.tool.relaxed]
    rates = {"rate": both / 1e9, "alone": alone / 1e9}
    seen.say("both_ways", 0 < both < _FAR_BELOW_OTHERS * alone, **rates, relaxed=relaxed)


def _of_hosts(seen: _Seen) -> None:
    tool = seen.tool
    for said in tool.warnings[:3] if seen.cells else ():  # else they are findings
        seen.say("warned", said=said)
    if seen.is_across and not seen.is_net and {"P2P", "SHM"} & {*tool.ways}:
        seen.say("containers", nodes=len(tool.hosts))
    elif seen.is_across:
        count = tool.adapters or len(seen.known.adapters)
        known = f"{count_of(count, 'adapter')} a host, but" if count else "no adapter and"
        nodes = len(tool.hosts) if len(tool.hosts) > 1 else "Several"
        racks = [m for m in seen.models if re.search(r"\bG[BR][23]00\b", m)]
        if racks and seen.ranks <= _RACK and not seen.is_net:
            seen.say("rack", nodes=nodes, model=racks[0])
            return
        seen.say("nodes", not seen.is_expected and seen.carried is None, nodes=nodes, known=known)
        _of_network(seen, tool)
        seen.say("one_gpu", seen.ranks == len(tool.hosts))
        seen.say("all_to_all", seen.has(*_TO_SOME[1:]))
        ways, is_tcp = tool.ways, "NET/Socket" in tool.ways
        seen.say("tcp_socket", is_tcp)
        seen.say("no_gdr", not is_tcp and "NET/IB" in ways and "GDRDMA" not in ways)
        seen.say("little_network", any(not one.cell.is_as_expected for one in seen.cells))
    seen.say("arc_end", "slot of Arc" in tool.settings and not seen.cells)
    far = [f"{index} ({how})" for index, how in tool.nearest.items() if how in FAR]
    seen.say("far_adapters", far and (seen.is_across or seen.has("rdma")), names=", ".join(far))


def _of_network(seen: _Seen, tool: ToolRun) -> None:
    """Says which adapters fit the rate that crosses the network: the bus bandwidth, or the
    algorithm bandwidth if two nodes reduce by the tree algorithm."""
    most = max((rate for _, curve in seen.curves for _, rate in curve), default=0.0) / 1e9
    algorithm = tool.settings.get("NCCL_ALGO", "tree").lower()
    if len(tool.hosts) == 2 < seen.ranks and seen.has("all_reduce") and "tree" in algorithm:
        rate = most * seen.ranks / (2 * (seen.ranks - 1))
        seen.say("tree", most=most, rate=rate, fit=_fitting(seen, rate, tool.adapters))
        most = rate
    elif "NET/Socket" not in tool.ways:
        seen.say("adapters", fit=_fitting(seen, most, tool.adapters))
    _reported_speed(seen, most)


def _reported_speed(seen: _Seen, most: float) -> None:
    # Where ranks send to some others alone, only an expectation tells what crosses the network.
    is_shared = seen.is_expected and seen.has(*_TO_SOME)
    if seen.carried is not None and not is_shared:
        share = f"{most * 1e9 / seen.carried.rate / REACHED:.0%}"
        seen.say("adapters_reported", because=seen.carried.because, share=share)


def _fitting(seen: _Seen, most: float, adapters: int | None = None) -> str:
    """Returns a sentence on which usual numbers and speeds of adapters carry this rate in GB/s.
    Empty if none do, or if the adapters' speed is known."""
    fit = [
        f"{count_of(count, 'adapter')} of {speed} Gb/s"
        for speed in ((1, 10, 25, 50, 100, 200, 400, 800) if seen.carried is None else ())
        for count in ((adapters,) if adapters else (1, 2, 4, 8)[: 4 if speed > 50 else 1])
        if _LOADED[0] <= most / (count * speed / 8 * REACHED) <= _LOADED[1]
    ]
    return f"{most:.3g} GB/s ({8 * most:.4g} Gb/s) fits {' or '.join(fit)}." if fit else ""


def _of_tools(seen: _Seen) -> None:
    settings, is_tcp = seen.tool.settings, seen.has("nic_tcp_iperf3")
    mtu, gpu, buffers = (settings.get(name, "") for name in ("Mtu", "CUDA device", "buffers"))
    tests = ("rdma", "nic_tcp_iperf3", "osu_", "imb_", "ucx_")
    own = [o for o in seen.cells if o.benchmark.startswith(tests) and "lat" not in o.benchmark]
    large = [o for o in own if (o.cell.bytes or 0) > _PACKET]
    rates = (seen.best(o.benchmark) / (1 + bool(_BOTH_WAYS.search(o.benchmark))) for o in large)
    most = max(rates, default=0.0)
    for one in () if large else own[-1:]:
        size, rate = one.cell.bytes or 1, one.cell.headline or 0.0
        shown = {"size": format_size(size), "count": rate / size / 1e6}
        seen.say("messages", rate, name=one.benchmark, **shown)
    points = (((o.benchmark, *o.cell.place), (o.cell.bytes or 1, o.cell.headline or 0.0))
              for o in own)  # fmt: skip
    for (name, *_), curve in grouped(points).items():
        _fall(seen, "messages_fall", name, sorted(curve))
    is_reported = seen.carried is not None
    each = ", ".join(_in_bits(seen))
    seen.say("in_bits", each, each=each)
    if most:
        _reported_speed(seen, most / 1e9)
        is_unsaid = not (is_reported or is_tcp or "software" in settings)
        seen.say("adapter_speed", is_unsaid, fit=_fitting(seen, most / 1e9, 1))
    if seen.has("rdma"):
        seen.say("mtu", mtu.isdecimal() and int(mtu) < 4096, mtu=mtu)
        seen.say("gpu_memory", gpu, gpu=gpu)
        seen.say("software", "software" in settings, device=settings.get("software"))
        is_below = seen.carried is not None and most < _LOADED[0] * REACHED * seen.carried.rate
        fit = [one for one in pcie_of(most) if not one.endswith(("x1", "x2"))]
        seen.say("adapter_slot", is_below and fit, rate=most / 1e9, fit=" or ".join(fit))
        largest = max((one.cell.bytes or 0 for one in own), default=0)
        is_little = most < _LOADED[0] * REACHED * 25e9 and largest <= _SMALL
        seen.say("one_pair", settings.get("qps", "1") == "1" and is_little)
    times = [o.cell.headline or 0.0 for o in seen.cells if o.benchmark == "osu_latency"]
    times += [(o.cell.bytes or 0) / (o.cell.headline or 1.0)
              for o in own if o.benchmark == "imb_pingpong"]  # fmt: skip
    seen.say("messages_time", times and "D" not in buffers, least=min(times, default=0.0) * 1e6)
    seen.say("buffers", "D" in buffers, buffers=buffers, links=_links(seen)[0])
    carried = _links(seen)[1] if seen.has("osu_bw", "ucx_") else 0.0
    seen.say("above_links", 0 < carried < most, rate=most / 1e9, most=carried / 1e9)
    seen.say("tcp_speed", is_tcp and not is_reported)
    seen.say("tcp", is_tcp)
    seen.say("retransmits", is_tcp and "retransmits" in settings, count=settings.get("retransmits"))


def _in_bits(seen: _Seen) -> Iterator[str]:
    best = grouped(
        ((o.benchmark, o.cell.place), o.cell.headline)
        for o in seen.cells
        if o.benchmark.startswith(("rdma", "nic")) and o.cell.headline
        if not o.cell.report.is_latency
    )
    for name, own in grouped((name, 8 * max(some)) for (name, _), some in best.items()).items():
        shown = (f"{r / 1e9:.4g} Gb/s" if r > _SLOW else f"{r / 1e6:.3g} Mb/s" for r in own)
        yield f"{name} {and_all([*shown])}"


def _links(seen: _Seen) -> tuple[str, float]:
    cards = seen.known.accelerators
    ends = ("nvswitch", *(one.memory for one in cards[1:2]))
    between = [link for one in cards[:1] for link in one.links if link.remote in ends]
    if not between:
        return "the links between the GPUs, or the GPU's PCIe link, carry the messages", 0.0
    rates, kind = [link.rate for link in between if link.rate], between[0].kind
    each, most = f"{len(between)} links ({kind})", len(between) * _MOST_OF_LINK
    if rates:
        each = f"{len(rates)} links of {rates[0] / 1e9:g} GB/s each way ({kind})"
        most = _OVER_LINKS * sum(rates)
    elif found := seen.known.assumed_of("link", cards[0].memory):
        each = f"{found.replace(' × ', ' links of ')} each way ({kind}), as is assumed,"
    return f"{each} carry messages between two GPUs", most


def _of_copies(seen: _Seen) -> None:
    seen.say("confidential", "confidential computing" in seen.tool.ways)
    reads = seen.best("host_to_device_memcpy_sm")
    others = max(seen.best("host_to_device_memcpy_ce"), seen.best("device_to_host_memcpy_sm"))
    known = ", ".join(m for m in seen.models if product_of(m).reads)
    is_slower = known and 0 < reads < _FAR_BELOW_OTHERS * others
    seen.say("kernels_read", is_slower, rate=reads / 1e9, beside=others / 1e9, model=known)
    nodes = "host_to_host_memcpy_read_cpu"
    own = [one.cell for one in seen.cells if one.benchmark == nodes]
    reading = {cell.row for cell in own}
    between = [one for one in own if one.row != one.column and one.column in reading]
    far = min((cell.headline or 0.0 for cell in between), default=0.0)
    near = far / (seen.best(nodes) or 1)
    kind = "as_near" if near > _AS_NEAR else "between_nodes"
    seen.say(kind, far, rate=far / 1e9, share=f"{near:.0%}")
    with_cpus = {str(node) for node in seen.known.host.node_cpus}
    bare = {o.column: o.headline or 0.0 for o in own if o.column not in reading}
    for node, rate in bare.items():
        seen.say("no_cpus", node not in with_cpus, node=node, rate=rate / 1e9)
    writes, reads = (seen.best(f"gdrcopy_{way}") for way in ("write", "read"))
    seen.say("window" if reads < writes / 2 else "cached_window", seen.has("gdrcopy"))
    copy, triad = (seen.best(f"memory_stream_{kind}") / 1e9 for kind in ("copy", "triad"))
    carried = (seen.known.host.memory_rate or 0.0) / 1e9
    share = f"{max(copy, triad) / (carried or 1):.0%}"
    seen.say("of_dimms", carried and triad, rate=carried, share=share)
    seen.say("allocates", copy > _ALLOCATES * triad > 0, copy=copy, triad=triad)
    is_host = seen.has("memory_stream", "memory_reads", "host_to_host")
    transfers = seen.tool.settings.get("DIMM MT/s", "")
    is_unsaid = not (carried or seen.is_expected)
    each = 8e-3 * int(transfers) if transfers.isdecimal() else 0.0
    seen.say("dimms", is_host and is_unsaid and not each)
    seen.say("channels", is_host and is_unsaid and each, transfers=transfers, each=each)
    is_local = seen.has("device_local_copy")
    seen.say("counted", is_local)
    local = (o.cell.transfers[0] for o in seen.cells if o.benchmark == "device_local_copy")
    seen.say("cached", not all(one.memories for one in local))
    seen.say("ucx_tcp", any(re.match("ucx_.*_tcp$", o.benchmark) for o in seen.cells))
    for model in seen.models:
        seen.say("slice", " MIG " in f"{model} ", model=model)
        copies = product_of(model).copies
        seen.say("slow_copies", is_local and copies, model=model, rate=copies)


def _of_runs(seen: _Seen) -> None:
    """Says how runs of one test differ: at the largest size, or the smallest for latencies."""
    keyed = (
        ((o.benchmark.partition(RUN)[0], o.cell.row, o.cell.column.partition(RUN)[0],
          o.cell.bytes or 0), o.cell)
        for o in seen.cells if o.cell.headline
    )  # fmt: skip
    several = [(name, (size, own)) for (name, *_, size), own in grouped(keyed).items() if own[1:]]
    for name, some in grouped(several).items():
        is_late = "lat" in name
        own = (min if is_late else max)(some, key=lambda one: one[0])[1]
        figures = sorted(one.headline or 0.0 for one in own)
        is_time = is_late or isinstance(own[0].operation, Collective)
        each = (f"{f * 1e6:.3g} µs" if is_time else f"{f / 1e9:.3g} GB/s" for f in figures)
        seen.say("runs", figures[-1] > DIFFER * figures[0], name=name, each=and_all(each))


# Curves of collectives.

_Point = tuple[int, float]


def _curve(cells: Sequence[CellResult]) -> list[_Point]:
    most = max((len(cell.transfers) for cell in cells), default=0)
    return sorted(
        (size, cell.operation.bytes_on_bus(size, most) / cell.headline)
        for cell in cells
        if isinstance(cell.operation, Collective) and len(cell.transfers) == most
        and not cell.operation.in_place and cell.headline
        and (size := cell.transfers[0].bytes_moved(1))
    )  # fmt: skip


def _of_curves(seen: _Seen) -> None:
    is_any = any(isinstance(one.cell.operation, Collective) for one in seen.cells)
    seen.say("alone", is_any and seen.ranks == 1)
    nvls = any(
        link.kind == "nvlink" and (link.version or "0") >= "4" and link.remote == "nvswitch"
        for one in seen.known.accelerators
        for link in one.links
    )
    for result, curve in seen.curves:
        name, size = result.benchmark, curve[0][0]
        starts = min(cell.headline or 1.0 for cell in result.cells)
        is_late = size < _SMALL and starts > _LATE * max(len(seen.tool.hosts), 1)
        seen.say("slow_start", is_late, name=name, time=starts * 1e6, size=format_size(size))
        seen.say("pairs", name == "sendrecv")
        if len(curve) > 1 and curve[-2][1]:
            _of_curve(seen, result, curve)
        is_reduced = nvls and name == "all_reduce" and len(result.cells[0].transfers) > 2
        seen.say("in_switches", is_reduced, most=max(rate for _, rate in curve) / 1e9)


def _fall(seen: _Seen, text: str, name: str, curve: Sequence[_Point]) -> bool:
    """Returns whether all sizes above the best one are far slower. If so, adds a remark."""
    at, best = max(curve, key=lambda one: one[1])
    after = [one for one in curve if one[0] > at]
    less, since = max((rate for _, rate in after), default=best), min(after, default=(at,))[0]
    rates = {"most": best / 1e9, "less": less / 1e9, "last": curve[-1][1] / 1e9}
    sizes = {"at": at, "since": since, "largest": curve[-1][0]}
    shown = {what: format_size(size) for what, size in sizes.items()}
    seen.say(text, less < _FALLS * best, name=name, **rates, **shown)
    return less < _FALLS * best


def _of_curve(seen: _Seen, result: Result, curve: Sequence[_Point]) -> None:
    name, ((before, less), (largest, most)) = result.benchmark, curve[-2:]
    is_falling = _fall(seen, "falls", name, curve)
    best = max(rate for _, rate in curve)
    average = result.average or best
    rates = {"average": average / 1e9, "most": best / 1e9}
    seen.say("average", average < _FAIR * best and not is_falling, **rates)
    parts = 1 if name in ("all_reduce", "reduce", "broadcast") else seen.ranks
    is_odd = any(size % (16 * parts) for size, _ in curve if size > 1 << 20)
    seen.say("unaligned", is_odd, name=name)
    times = [(size, size / rate) for size, rate in curve if rate and size >= _SMALL]
    for at, (size, time) in enumerate(times[:-1]):
        later = min(times[at + 1 :], key=lambda one: one[1])
        if time > _PAUSE * later[1]:
            seen.say("pause", name=name, size=format_size(size), later=format_size(later[0]))
            break
    doublings = max(largest / before, 1.0001)
    is_rising = largest < _ENOUGH or most / less > _RISES ** min(doublings / 2, 4)
    seen.say("rising", is_rising, name=name, size=format_size(largest))
