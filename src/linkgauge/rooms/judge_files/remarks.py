"""Explains figures of another tool in addition to their verdict. Each explanation is one small
function from a judged run to a sentence, or to nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from linkgauge.model.documents.result import CellResult, Run
from linkgauge.model.documents.tool_run import ToolRun
from linkgauge.model.operations.collective import Collective
from linkgauge.model.units import format_size

from .products import product_of

_RISES = 1.04
"""The ratio by which a curve must gain with its last doubling to count as still rising."""
_ENOUGH = 64 << 20
"""The size in bytes below which a collective says little about links."""


def remarks(run: Run, tool: ToolRun) -> list[str]:
    """All explanations that apply, in the order in which a person would check them."""
    return [said for each in _ALL for said in each(run, tool)]


def _by_host(run: Run, tool: ToolRun) -> Iterator[str]:
    is_linked = any(one.links for one in run.machine.known.accelerators)
    if "SHM" in tool.ways and is_linked and not any("P2P" in name for name in tool.settings):
        yield (
            "NCCL says that it goes via SHM, the host's memory, although the GPUs have links of "
            "their own: nvidia-smi topo -p2p r shows whether they reach each other."
        )


def _no_peers(run: Run, tool: ToolRun) -> Iterator[str]:
    """Remarks that GeForce cards of these generations have no peer access over PCIe with NVIDIA's
    driver."""
    models = {one.model for one in run.machine.known.accelerators}
    found = sorted(m for m in models if any(name in m for name in ("RTX 4090", "RTX 5090")))
    between = any(len(_places(cell)) > 1 for cell in _cells(run))
    if found and between and "P2P" not in tool.ways:
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
    if len(tool.hosts) > 1:
        yield (
            f"{len(tool.hosts)} nodes took part: no text tells what network joins them, so nothing "
            "is said about figures across them. A 200 Gb/s adapter carries about 24 GB/s, one of "
            "400 Gb/s about 48 GB/s; where less arrives, ACS at PCIe switches (ACSCtl in lspci "
            "-vvv) and missing GPUDirect RDMA are usual causes."
        )


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
    _by_host, _no_peers, _staged, _assumed, _relaxed, _network, _alone, _rising, _in_switches,
    _counted, _slow_copies,
)  # fmt: skip
