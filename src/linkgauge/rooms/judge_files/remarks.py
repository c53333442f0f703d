"""Explains figures of another tool in addition to their verdict. Each explanation is one small
function from a judged run to a sentence, or to nothing."""

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

_RISES = 1.04
"""The ratio by which a curve must gain with its last doubling to count as still rising."""
_SLOWER = 0.9
"""The ratio of copies with peer access to copies without, below which the latter are better."""
_FAR_BELOW = 0.6
"""The share of a link's rate below which a copy may have another link."""
_LOADED = 0.85
"""The least share of its adapters' rate that a collective between hosts usually reaches."""
_CARRIES = {10: 1.2, 25: 3, 50: 6, 100: 12, 200: 24, 400: 48, 800: 96}
"""GB/s that an adapter carries of its Gb/s (nccl-tests issue 119)."""
_PAUSE = 2
"""How many times the time of a larger size counts as a pause."""
_ENOUGH = 64 << 20
"""The size in bytes below which a collective says little about links."""


def remarks(run: Run, tool: ToolRun) -> list[str]:
    """All explanations that apply, in the order in which a person would check them."""
    return [said for each in _ALL for said in each(run, tool)]


def _by_host(run: Run, tool: ToolRun) -> Iterator[str]:
    is_linked = any(one.links for one in run.machine.known.accelerators)
    if "SHM" in tool.ways and not any("P2P" in name for name in tool.settings):
        yield "NCCL says that it goes via SHM, the host's memory" + (
            ", although the GPUs have links of their own: nvidia-smi topo -p2p r shows whether "
            "they reach each other."
            if is_linked
            else ": between these GPUs it has no peer access, or does not use it across sockets."
        )


def _peers_slower(run: Run, tool: ToolRun) -> Iterator[str]:
    """Remarks that copies with peer access are slower than copies over the host's memory (nccl
    issues 814 and 1603)."""
    rates = {
        with_peers: [
            cell.headline
            for result in run.results
            for cell in result.cells
            if "device_to_device_memcpy" in result.benchmark and cell.headline
            and result.benchmark.endswith("_staged") != with_peers
        ]
        for with_peers in (True, False)
    }  # fmt: skip
    if all(rates.values()) and median(rates[True]) < _SLOWER * median(rates[False]):
        yield (
            f"Copies with peer access reach {median(rates[True]) / 1e9:.3g} GB/s, less than the "
            f"{median(rates[False]) / 1e9:.3g} GB/s of copies over the host's memory: the CPU "
            "forwards peer traffic slowly, or ACS or an IOMMU sends it there (lspci -vvv, ACSCtl). "
            "NCCL_P2P_DISABLE=1 avoids such copies."
        )


def _virtual(run: Run, tool: ToolRun) -> Iterator[str]:
    machine = run.machine.inventory
    hypervisor = machine.host.hypervisor if machine is not None and machine.host else None
    pairs = [cell for cell in _cells(run) if len(_places(cell)) > 1]
    if hypervisor and any(cell.verdict != "ok" for cell in pairs):
        yield (
            f"This is a virtual machine ({hypervisor}): its GPUs reach each other and adapters "
            "only if the hypervisor allows it (ACS off or ATS on, or a GPUDirect clique); without "
            "that, copies go over the host's memory."
        )


def _through_cpu(run: Run, tool: ToolRun) -> Iterator[str]:
    """Remarks on what is usual between GPUs that only the CPU joins."""
    for result in run.results:
        for cell in result.cells[-1:]:
            because = cell.expected.because if cell.expected else ""
            if cell.verdict != "ok" and "route crosses the host bridge" in because:
                yield (
                    "These GPUs are joined by PCIe and the CPU alone (PHB, NODE or SYS in "
                    "nvidia-smi topo -m). No text tells what this CPU forwards, so nothing is "
                    "called low. Usual causes of little: ACS at a bridge or an IOMMU that "
                    "translates (lspci -vvv, ACSCtl; iommu=pt), a link with fewer lanes or of an "
                    "older generation (lspci -vv, LnkSta), processes that are bound to few CPUs or "
                    "the wrong node (mpirun --bind-to none), and GPUs at different sockets."
                )
                return


def _narrow(run: Run, tool: ToolRun) -> Iterator[str]:
    """Remarks on the link of PCIe that carries about what the slowest copy reaches."""
    known = run.machine.known
    links = [one.link for one in known.pci if is_accelerator(one) and one.link]
    pcie = [(link.speed, link.width) for link in links if link.speed and link.width]
    sheets = (product_of(one.model) for one in known.accelerators)
    speed, width = max([*pcie, *(one.pcie for one in sheets if one and one.pcie)], default=(0.0, 0))
    has_links = any(one.links for one in known.accelerators)
    rates = [
        cell.headline
        for result in run.results
        for cell in result.cells
        if "memcpy" in result.benchmark and "bidirectional" not in result.benchmark
        and cell.verdict != "ok" and cell.headline and not (has_links and len(_places(cell)) > 1)
    ]  # fmt: skip
    rate = min(rates, default=0.0)
    if not speed or not rate or rate > _FAR_BELOW * link_rate(speed, width):
        return
    carry = {
        (own, lanes): link_rate(own, lanes)
        for own in (2.5, 5.0, 8.0, 16.0, 32.0)
        for lanes in (1, 2, 4, 8, 16)
        if own <= speed and lanes <= width
    }
    fit = [f"{own:g} GT/s x{n}" for (own, n), r in carry.items() if 0.75 <= rate / r <= 0.95]
    if fit:
        yield (
            f"{rate / 1e9:.3g} GB/s is about what PCIe {' or '.join(reversed(fit))} carries, "
            f"and not {speed:g} GT/s x{width}: look at the links under load (nvidia-smi -q, GPU "
            "Link Info; lspci -vv, LnkSta), and at what slot and CPU offer."
        )


def _no_peers(run: Run, tool: ToolRun) -> Iterator[str]:
    """Remarks that GeForce cards of these generations have no peer access over PCIe with NVIDIA's
    driver."""
    models = {one.model for one in run.machine.known.accelerators}
    found = sorted(m for m in models if any(name in m for name in ("RTX 4090", "RTX 5090")))
    between = any(len(_places(cell)) > 1 for cell in _cells(run))
    direct = any(
        "_memcpy_write_" in r.benchmark or "_memcpy_read_" in r.benchmark
        for r in run.results
        if r.benchmark.startswith("device_to")
    )
    if found and between and not direct and "P2P" not in tool.ways:
        yield (
            f"{found[0]} has no peer access with NVIDIA's driver: copies between two go over the "
            "host's memory, and two below one PCIe switch cross its uplink twice."
        )


def _staged(run: Run, tool: ToolRun) -> Iterator[str]:
    """Remarks that all copies between accelerators go over the host (nccl issue 1086)."""
    pairs = [r.benchmark for r in run.results if r.benchmark.startswith("device_to_device")]
    if pairs and all(name.endswith("_staged") for name in pairs):
        yield (
            "No two accelerators have peer access here: copies between them go over the host's "
            "memory. Two below one PCIe switch cross its uplink twice, so they may be slower than "
            "two that are far apart."
        )


def _places(cell: CellResult) -> set[str]:
    return {str(m) for t in cell.transfers for m in t.memories if m.is_device}


def _rising(run: Run, tool: ToolRun) -> Iterator[str]:
    """Remarks that the curve of the largest collective still rises at its end."""
    for result in run.results:
        curve = _curve(result.cells)
        if len(curve) < 2 or not curve[-2][1]:
            continue
        (before, less), (size, most) = curve[-2:]
        doublings = max(size / before, 1.0001)
        if size < _ENOUGH or most / less > _RISES ** min(doublings / 2, 4):
            yield (
                f"{result.benchmark} still rises at {format_size(size)}, its largest size: it "
                "shows its best only at larger sizes (-e 8G)."
            )


def _alone(run: Run, tool: ToolRun) -> Iterator[str]:
    """Collectives over one rank (nccl-tests issues 182 and 249)."""
    works = [cell for cell in _cells(run) if isinstance(cell.operation, Collective)]
    if works and all(len(cell.transfers) == 1 for cell in works):
        yield (
            "One rank has no other to send to, so its bandwidth on the bus is 0. Several processes "
            "that each say Rank 0 do not know each other: nccl-tests and rccl-tests need MPI=1 "
            "when they are built. One process takes several accelerators with -g."
        )


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


def _in_switches(run: Run, tool: ToolRun) -> Iterator[str]:
    """Remarks on reductions in switches (NVLS), which exist since NVLink 4 (nccl-tests issues 212
    and 366)."""
    able = any(
        link.kind == "nvlink" and (link.version or "0") >= "4" and link.remote == "nvswitch"
        for one in run.machine.known.accelerators
        for link in one.links
    )
    for result in run.results if able else ():
        curve = _curve(result.cells) if result.benchmark == "all_reduce" else []
        if curve and len(result.cells[0].transfers) > 2:
            most = max(rate for _, rate in curve) / 1e9
            yield (
                f"all_reduce shows {most:.0f} GB/s on the bus. With NVLS, switches that add up, "
                "that figure may be above what a link carries, because fewer bytes move than it "
                "counts; without NVLS it stays below."
            )


def result_is(run: Run, name: str) -> bool:
    """Whether a benchmark of this name is among the results."""
    return any(result.benchmark == name for result in run.results)


def _counted(run: Run, tool: ToolRun) -> Iterator[str]:
    if result_is(run, "device_local_copy"):
        yield (
            "device_local_copy is counted once: a copy within a GPU reads and writes, so its "
            "memory moves twice as many bytes."
        )


def _slow_copies(run: Run, tool: ToolRun) -> Iterator[str]:
    for model in sorted({one.model for one in run.machine.known.accelerators}):
        product = product_of(model)
        if product is not None and product.copies and result_is(run, "device_local_copy"):
            yield (
                f"Copies within {model} are seen to reach about {product.copies:.0f} GB/s "
                "elsewhere, less than its memory carries: its copies are held against each other."
            )


def _relaxed(run: Run, tool: ToolRun) -> Iterator[str]:
    """Remarks on relaxed ordering as lspci shows it, if both directions at once are slow."""
    slow = any(
        cell.verdict == "low" and "bidirectional" in result.benchmark
        for result in run.results
        for cell in result.cells
    )
    if slow and tool.relaxed is not None:
        state = "on" if tool.relaxed else "off, which slows both directions at once"
        yield f"lspci shows relaxed ordering (RlxdOrd) at the accelerators: it is {state}."


def _network(run: Run, tool: ToolRun) -> Iterator[str]:
    """Remarks on figures across hosts, and on what NCCL says of the network (nccl-tests issues 29,
    112, 119 and 152)."""
    if len(tool.hosts) < 2:
        return
    known = (
        count_of(tool.adapters, "network adapter") + " of a host" if tool.adapters else "no adapter"
    )
    yield (
        f"{len(tool.hosts)} nodes took part. The texts tell of {known}, but not what network joins "
        "the nodes, so nothing is called low across them."
    )
    curves = (_curve(result.cells) for result in run.results)
    most = max((rate for curve in curves for _, rate in curve), default=0.0) / 1e9
    counts = (tool.adapters,) if tool.adapters else (1, 2, 4, 8)
    fit = [
        f"{count} of {speed} Gb/s"
        for speed, carries in _CARRIES.items()
        for count in (counts if speed >= 100 or tool.adapters else (1,))
        if _LOADED <= most / (count * carries) <= 1.05
    ]
    yield (
        "An adapter of 100 Gb/s carries about 12 GB/s, of 200 Gb/s 24, of 400 Gb/s 48. "
        + (f"{most:.3g} GB/s on the bus is what {' or '.join(fit)} carry. " if fit else "")
        + "NCCL's tree may show more between two nodes, because it sends less than it counts."
    )
    if "NET/Socket" in tool.ways:
        yield (
            "NCCL uses NET/Socket, TCP, and not InfiniBand or RoCE: NCCL_DEBUG=INFO says at NET/IB "
            "why no adapter is used; NCCL_IB_HCA and NCCL_SOCKET_IFNAME choose them."
        )
    elif "NET/IB" in tool.ways and "GDRDMA" not in tool.ways:
        yield (
            "NCCL's channels do not say GDRDMA: data crosses the host's memory. GPUDirect RDMA "
            "needs nvidia-peermem (or DMA-BUF), and an adapter near the GPU or NCCL_NET_GDR_LEVEL."
        )
    yield (
        "Usual causes of little: ACS at PCIe switches (ACSCtl in lspci -vvv) or an IOMMU, missing "
        "GPUDirect RDMA, fewer adapters in use than there are, adapters far from the GPUs, a small "
        "MTU, and virtual machines without ATS. ib_write_bw between the hosts tells what the "
        "network carries."
    )


def _far_adapters(run: Run, tool: ToolRun) -> Iterator[str]:
    far = [index for index, how in tool.nearest.items() if how in ("PHB", "NODE", "SYS")]
    is_network = len(tool.hosts) > 1 or any(r.benchmark.startswith("rdma") for r in run.results)
    if far and is_network:
        names = ", ".join(f"{index} ({tool.nearest[index]})" for index in far)
        yield (
            f"No adapter shares a PCIe switch with accelerators {names}: data between them crosses "
            "the CPU, and at SYS another socket, which is slow for GPUDirect RDMA."
        )


def _ib(run: Run, tool: ToolRun) -> Iterator[str]:
    """Remarks on what perftest prints of its settings."""
    if not any(result.benchmark.startswith("rdma") for result in run.results):
        return
    mtu = tool.settings.get("Mtu", "")
    if mtu.isdecimal() and int(mtu) < 4096:
        yield f"The MTU is {mtu} bytes: 4096, the most, leaves more room for data."
    if memory := tool.settings.get("CUDA device"):
        yield (
            f"perftest reads and writes the memory of GPU {memory}: an adapter at another PCIe "
            "switch or socket, ACS, or an IOMMU make that slower than the host's memory."
        )
    yield "No text tells the speed of the adapter: 100 Gb/s carry about 12 GB/s, 200 24, 400 48."


def _tcp(run: Run, tool: ToolRun) -> Iterator[str]:
    if result_is(run, "nic_tcp_iperf3"):
        yield (
            "No text tells the speed of the network. One thread carries about 20 to 40 Gb/s by "
            "TCP, and iperf3 before 3.16 runs all streams (-P) in one: several processes, a larger "
            "MTU (9000), and CPUs at the adapter's node carry more."
        )


def _warned(run: Run, tool: ToolRun) -> Iterator[str]:
    for said in tool.warnings:
        yield f"The library warns: {said}"


def _pause(run: Run, tool: ToolRun) -> Iterator[str]:
    """Remarks that a size takes longer than a larger one."""
    for result in run.results:
        curve = _curve(result.cells)
        times = [(size, size / rate) for size, rate in curve if rate and size >= 1 << 16]
        for at, (size, time) in enumerate(times):
            later = min(times[at + 1 :], key=lambda one: one[1], default=None)
            if later and time > _PAUSE * later[1]:
                yield (
                    f"{result.benchmark} takes longer for {format_size(size)} than for "
                    f"{format_size(later[0])}: something paused there, or NCCL chose another "
                    "algorithm; larger sizes do not show it."
                )
                break


def _assumed(run: Run, tool: ToolRun) -> Iterator[str]:
    """Remarks on low figures over links that no text describes."""
    low = any(cell.verdict == "low" and len(_places(cell)) > 1 for cell in _cells(run))
    if low and any("usual server" in one or "nothing tells" in one for one in tool.assumed):
        yield (
            "Low figures between accelerators are held against links that are only assumed: "
            "nvidia-smi topo -m and nvlink -s (AMD: rocm-smi --showtopo) tell which there are."
        )


def _cells(run: Run) -> Iterator[CellResult]:
    for result in run.results:
        yield from result.cells


Remark = Callable[[Run, ToolRun], Iterator[str]]
_ALL: tuple[Remark, ...] = (
    _by_host, _no_peers, _staged, _peers_slower, _virtual, _through_cpu, _narrow, _assumed,
    _relaxed, _warned, _network, _far_adapters, _ib, _tcp, _alone, _pause, _rising, _in_switches,
    _counted, _slow_copies,
)  # fmt: skip
