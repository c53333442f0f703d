"""Explains figures of another tool in addition to their verdict. Each explanation is one small
function from a judged run to texts of remarks.yml, or to nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from linkgauge.model.documents.result import CellResult, Run
from linkgauge.model.documents.tool_run import ToolRun
from linkgauge.model.hardware.inventory import is_accelerator
from linkgauge.model.hardware.pcie import link_rate
from linkgauge.model.operations.collective import Collective
from linkgauge.model.units import count_of, format_size

from .products import product_of
from .shipped import shipped

_RISES = 1.04
"""The ratio by which a curve must gain with its last doubling to count as still rising."""
_SLOWER = 0.9
"""The ratio of copies with peer access to copies without, below which the latter are better."""
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
_SMALL, _ENOUGH = 64 << 10, 64 << 20
"""The sizes in bytes below which a collective shows only latency, and says little about links."""
_FAR = ("PHB", "NODE", "SYS")


def remarks(run: Run, tool: ToolRun) -> list[str]:
    """All explanations that apply, in the order in which a person would check them."""
    return [said for each in _ALL for said in each(run, tool)]


def _say(text: str, /, **fields: object) -> str:
    texts: dict[str, str] = shipped("remarks.yml", dict[str, str])
    return texts[text].format(**fields)


def _cells(run: Run) -> Iterator[CellResult]:
    for result in run.results:
        yield from result.cells


def _places(cell: CellResult) -> set[str]:
    return {str(m) for t in cell.transfers for m in t.memories if m.is_device}


def _rates(run: Run, *, staged: bool) -> list[float]:
    """The rates of copies between two accelerators, one way, over the host or by peer access."""
    return [
        cell.headline
        for result in run.results
        for cell in result.cells
        if "device_to_device_memcpy" in result.benchmark and cell.headline
        and result.benchmark.endswith("_staged") == staged
    ]  # fmt: skip


def _is_linked(run: Run) -> bool:
    return any(one.links for one in run.machine.known.accelerators)


def _models(run: Run) -> list[str]:
    return sorted({one.model for one in run.machine.known.accelerators})


def result_is(run: Run, *names: str) -> bool:
    """Whether a benchmark whose name begins so is among the results."""
    return any(result.benchmark.startswith(names) for result in run.results)


# Between accelerators of one host.


def _by_host(run: Run, tool: ToolRun) -> Iterator[str]:
    if "SHM" in tool.ways and not any("P2P" in name for name in tool.settings):
        yield _say("on_host_though_linked" if _is_linked(run) else "on_host")


def _no_peers(run: Run, tool: ToolRun) -> Iterator[str]:
    """Remarks that GeForce cards of these generations have no peer access over PCIe with NVIDIA's
    driver."""
    found = [m for m in _models(run) if any(name in m for name in ("RTX 4090", "RTX 5090"))]
    between = any(len(_places(cell)) > 1 for cell in _cells(run))
    if found and between and not _rates(run, staged=False) and "P2P" not in tool.ways:
        yield _say("no_peers", model=found[0])


def _staged(run: Run, tool: ToolRun) -> Iterator[str]:
    pairs = [r.benchmark for r in run.results if r.benchmark.startswith("device_to_device")]
    if "peer access" in tool.ways and not _is_linked(run):
        yield _say("peers_by_pcie")
    elif (
        pairs and all(name.endswith("_staged") for name in pairs) and "peer access" not in tool.ways
    ):
        yield _say("staged")


def _peers_slower(run: Run, tool: ToolRun) -> Iterator[str]:
    peers, host = _rates(run, staged=False), _rates(run, staged=True)
    if peers and host and median(peers) < _SLOWER * median(host):
        yield _say("peers_slower", peers=median(peers) / 1e9, host=median(host) / 1e9)


def _virtual(run: Run, tool: ToolRun) -> Iterator[str]:
    machine = run.machine.inventory
    hypervisor = machine.host.hypervisor if machine is not None and machine.host else None
    pairs = [cell for cell in _cells(run) if len(cell.transfers) > 1 or len(_places(cell)) > 1]
    is_virtual = hypervisor or "virtual machine" in tool.ways
    if is_virtual and any(cell.verdict != "ok" for cell in pairs):
        yield _say("virtual", which=hypervisor or "which kind is not told")


def _through_cpu(run: Run, tool: ToolRun) -> Iterator[str]:
    reasons = (c.expected.because for c in _cells(run) if c.expected and c.verdict != "ok")
    if any("route crosses the host bridge" in because for because in reasons):
        yield _say("through_cpu")


def _narrow(run: Run, tool: ToolRun) -> Iterator[str]:
    """Remarks on the link of PCIe that carries about what the slowest copy reaches."""
    known = run.machine.known
    links = [one.link for one in known.pci if is_accelerator(one)]
    pcie = [(link.speed, link.width) for link in links if link.speed and link.width]
    sheets = (product_of(model) for model in _models(run))
    speed, width = max([*pcie, *(one.pcie for one in sheets if one and one.pcie)], default=(0.0, 0))
    rates = [
        cell.headline
        for result in run.results
        for cell in result.cells
        if "memcpy" in result.benchmark and "bidirectional" not in result.benchmark
        and cell.verdict != "ok" and cell.headline
        and not (_is_linked(run) and len(_places(cell)) > 1)
    ]  # fmt: skip
    rate = min(rates, default=0.0)
    if not speed or not rate or rate > _FAR_BELOW * link_rate(speed, width):
        return
    fit = [
        f"{own:g} GT/s x{lanes}"
        for own in (32.0, 16.0, 8.0, 5.0, 2.5)
        for lanes in (16, 8, 4, 2, 1)
        if own <= speed and lanes <= width
        and _FITS[0] <= rate / link_rate(own, lanes) <= _FITS[1]
    ]  # fmt: skip
    if fit:
        link = f"{speed:g} GT/s x{width}"
        yield _say("narrow", rate=rate / 1e9, fit=" or ".join(fit), link=link)


def _host_copies(run: Run, tool: ToolRun) -> Iterator[str]:
    own = (r for r in run.results if r.benchmark.startswith(("host_to_device", "device_to_host")))
    if any(cell.verdict == "low" for result in own for cell in result.cells):
        yield _say("host_copies")


def _assumed(run: Run, tool: ToolRun) -> Iterator[str]:
    """Remarks on low figures over links that no text describes."""
    low = any(cell.verdict == "low" and len(_places(cell)) > 1 for cell in _cells(run))
    if low and any("usual server" in one or "nothing tells" in one for one in tool.assumed):
        yield _say("assumed")


def _below_links(run: Run, tool: ToolRun) -> Iterator[str]:
    low = any(cell.verdict == "low" for cell in _cells(run) if len(cell.transfers) > 1)
    if low and _is_linked(run) and len(tool.hosts) < 2:
        yield _say("below_links")


def _relaxed(run: Run, tool: ToolRun) -> Iterator[str]:
    """Remarks on relaxed ordering as lspci shows it, if both directions at once are slow."""
    slow = any(
        cell.verdict == "low" and "bidirectional" in result.benchmark
        for result in run.results
        for cell in result.cells
    )
    if slow and tool.relaxed is not None:
        yield _say("relaxed", state="on" if tool.relaxed else "off, which slows both ways at once")


def _warned(run: Run, tool: ToolRun) -> Iterator[str]:
    yield from (_say("warned", said=said) for said in tool.warnings)


def _counted(run: Run, tool: ToolRun) -> Iterator[str]:
    if not result_is(run, "device_local_copy"):
        return
    yield _say("counted")
    for model in _models(run):
        product = product_of(model)
        if product is not None and product.copies:
            yield _say("slow_copies", model=model, rate=product.copies)


# Between hosts.


def _network(run: Run, tool: ToolRun) -> Iterator[str]:
    if len(tool.hosts) < 2:
        return
    known = f"{count_of(tool.adapters, 'adapter')} a host" if tool.adapters else "no adapter"
    yield _say("nodes", nodes=len(tool.hosts), known=known)
    curves = (_curve(result.cells) for result in run.results)
    most = max((rate for curve in curves for _, rate in curve), default=0.0) / 1e9
    fit = [
        f"{count} of {speed} Gb/s"
        for speed, carries in _CARRIES.items()
        for count in ((tool.adapters,) if tool.adapters else (1, 2, 4, 8)[: 4 if speed > 50 else 1])
        if _LOADED[0] <= most / (count * carries) <= _LOADED[1]
    ]
    said = f"{most:.3g} GB/s on the bus is what {' or '.join(fit)} carry. " if fit else ""
    yield _say("adapters", fit=said)
    if max(len(cell.transfers) for cell in _cells(run)) == len(tool.hosts):
        yield _say("one_gpu")
    if result_is(run, "alltoall", "sendrecv", "gather", "scatter"):
        yield _say("all_to_all")
    if "NET/Socket" in tool.ways:
        yield _say("tcp_socket")
    elif "NET/IB" in tool.ways and "GDRDMA" not in tool.ways:
        yield _say("no_gdr")
    yield _say("little_network")


def _far_adapters(run: Run, tool: ToolRun) -> Iterator[str]:
    far = [f"{index} ({how})" for index, how in tool.nearest.items() if how in _FAR]
    if far and (len(tool.hosts) > 1 or result_is(run, "rdma")):
        yield _say("far_adapters", names=", ".join(far))


def _by_network_tool(run: Run, tool: ToolRun) -> Iterator[str]:
    if result_is(run, "rdma"):
        mtu = tool.settings.get("Mtu", "")
        if mtu.isdecimal() and int(mtu) < 4096:
            yield _say("mtu", mtu=mtu)
        if gpu := tool.settings.get("CUDA device"):
            yield _say("gpu_memory", gpu=gpu)
        yield _say("adapter_speed")
    if result_is(run, "nic_tcp_iperf3"):
        yield _say("tcp")


# Curves of collectives.


def _curve(cells: Sequence[CellResult]) -> list[tuple[int, float]]:
    """The sizes and the bytes/s on the bus of collectives out of place, over the most ranks."""
    found = []
    most = max((len(cell.transfers) for cell in cells), default=0)
    for cell in cells:
        work = cell.operation
        if not isinstance(work, Collective) or len(cell.transfers) < most:
            continue
        if not work.in_place and cell.headline:
            size = cell.transfers[0].bytes_moved(1)
            moved = work.bytes_on_bus(size, len(cell.transfers))
            found.append((size, moved / cell.headline))
    return sorted(found)


def _alone(run: Run, tool: ToolRun) -> Iterator[str]:
    works = [cell for cell in _cells(run) if isinstance(cell.operation, Collective)]
    if works and all(len(cell.transfers) == 1 for cell in works):
        yield _say("alone")


def _of_curves(run: Run, tool: ToolRun) -> Iterator[str]:
    """Remarks on averages over all sizes, sizes that take longer than larger ones, and curves that
    still rise at their end."""
    for result in run.results:
        name, curve = result.benchmark, _curve(result.cells)
        if len(curve) < 2 or not curve[-2][1]:
            continue
        if result.average and curve[0][0] < _SMALL and curve[-1][0] > 256 * _SMALL:
            yield _say("average", most=max(rate for _, rate in curve) / 1e9)
        count = max(len(cell.transfers) for cell in result.cells)
        if any(size % (16 * count) for size, _ in curve if size > 1 << 20):
            yield _say("unaligned", name=name)
        times = [(size, size / rate) for size, rate in curve if rate and size >= _SMALL]
        for at, (size, time) in enumerate(times[:-1]):
            later = min(times[at + 1 :], key=lambda one: one[1])
            if time > _PAUSE * later[1]:
                yield _say("pause", name=name, size=format_size(size), later=format_size(later[0]))
                break
        (before, less), (size, most) = curve[-2:]
        doublings = max(size / before, 1.0001)
        if size < _ENOUGH or most / less > _RISES ** min(doublings / 2, 4):
            yield _say("rising", name=name, size=format_size(size))


def _in_switches(run: Run, tool: ToolRun) -> Iterator[str]:
    """Remarks on reductions in switches (NVLS), which exist since NVLink 4."""
    able = any(
        link.kind == "nvlink" and (link.version or "0") >= "4" and link.remote == "nvswitch"
        for one in run.machine.known.accelerators
        for link in one.links
    )
    for result in run.results if able else ():
        curve = _curve(result.cells) if result.benchmark == "all_reduce" else []
        if curve and len(result.cells[0].transfers) > 2:
            yield _say("in_switches", most=max(rate for _, rate in curve) / 1e9)


Remark = Callable[[Run, ToolRun], Iterator[str]]
_ALL: tuple[Remark, ...] = (
    _by_host, _no_peers, _staged, _peers_slower, _virtual, _through_cpu, _narrow, _host_copies,
    _below_links, _assumed, _relaxed, _warned, _network, _far_adapters, _by_network_tool, _alone,
    _of_curves, _in_switches, _counted,
)  # fmt: skip
