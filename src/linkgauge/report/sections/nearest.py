"""Shows the two facts that people look for first about each accelerator: whether its PCIe link is
as it should be, and the command that runs a program on the NUMA node nearest to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkgauge.judge.doctor.adapters import nearest
from linkgauge.judge.findings import Evidence
from linkgauge.judge.pcie_chains import PcieChain, hops
from linkgauge.model.grouped import grouped
from linkgauge.model.names import spans
from linkgauge.report.blocks import Entry, Span, Table, Tone, line
from linkgauge.report.results import table
from linkgauge.report.words.subjects import Subject, subjects

from .pci import shown_link

_IDLE = " now, can be "
_LOAD = "A link that is slower than it can be may only be idle. Under load, it is seen with: "
_ALL = "NCCL chooses the nearest itself; a process of one accelerator may be told."
_RUN = "linkgauge run --prefix host_to_device_memcpy_ce"


def nearest_blocks(evidence: Evidence) -> Iterator[Table]:
    """Yields a table with the link and the node of each accelerator. Accelerators with the same
    facts share a row. Yields nothing for a machine without accelerators, or with several hosts."""
    machine = evidence.machine
    cpus = {one.memory for one in machine.all_devices if one.is_cpu or one.node}
    found = [one for one in subjects(machine) if one.label not in cpus]
    if not found or machine.ranks:
        return
    alike = grouped(((*_link(evidence, one), _node(evidence, one)), one.label) for one in found)
    rows = [
        (spans(names), Entry(words, tone=tone), Entry(command, tone="strong" if node else "dim"))
        for (words, tone, (node, command)), names in alike.items()
    ]
    idle = any(_IDLE in words for words, *_ in alike)
    lines = [line(Span(_LOAD, "dim"), Span(_RUN, "strong"))] if idle else []
    heads = ("", "PCIe link", "to run beside it")
    yield table("Accelerators", heads, rows)._replace(lines=lines)
    yield from _beside(evidence, found)


def _beside(evidence: Evidence, found: Sequence[Subject]) -> Iterator[Table]:
    """Yields a table with the adapters nearest to each accelerator, and the settings that choose
    these. Accelerators with the same adapters share a row."""
    near = grouped((nearest(evidence.machine, one.pci or ""), one.label) for one in found)
    rows = []
    for (how, adapters), names in near.items():
        if how is not None:
            listed = ",".join(adapters)
            chosen = f"UCX_NET_DEVICES={','.join(f'{one}:1' for one in adapters)}"
            setting = f"{chosen} NCCL_IB_HCA=={listed}"
            rows.append((spans(names), f"{spans(adapters)} ({how})", Entry(setting, tone="strong")))
    if rows:
        lines = [line(Span(_ALL, "dim"))]
        yield table("Adapters", ("", "nearest", "to use them"), rows)._replace(lines=lines)


def _link(evidence: Evidence, one: Subject) -> tuple[str, Tone]:
    """Returns the state of the link in words. A slower link above it counts, because the device
    cannot be faster than that."""
    machine, address = evidence.machine, one.pci or ""
    path = [machine.pci_tree.slot(address), *(f.address for f in machine.pci_line(address)[1:])]
    known = {hop.function.address: hop for hop in hops(evidence)}
    chains = [known[at] for at in dict.fromkeys(path) if at in known]
    if not chains or shown_link(chains[0].link.speed, chains[0].link.width) == "":
        assumed = machine.known.assumed_of("PCIe link", one.label)
        return (f"PCIe {assumed}, assumed" if assumed else "unknown"), "dim"
    own, *above = chains
    slow = next((hop for hop in above if hop.is_slow), None)
    if own.is_slow is False and slow is not None:
        words, _ = _state(slow)
        return f"{_now(own)}, but the switch above it: {words}", "warn"
    return _state(own)


def _state(hop: PcieChain) -> tuple[str, Tone]:
    now, best = _now(hop), f"Gen {shown_link(hop.speed, hop.width).partition('Gen ')[2]}"
    if hop.is_slow:
        return f"{now}, should be {best} (linkgauge doctor)", "warn"
    if hop.is_slow is None:
        return f"{now}{_IDLE}{best}", ""
    if not (hop.link.speed and hop.link.width):
        return f"{now}, as far as it can be read", "dim"
    if hop.both_speeds and hop.both_widths:
        return f"{now}, as it should be", "good"
    return f"{now}, the card's best; its slot cannot be read", ""


def _now(hop: PcieChain) -> str:
    speed, width = hop.loaded_speed or hop.link.speed, hop.loaded_width or hop.link.width
    return f"PCIe {shown_link(speed, width)}"


def _node(evidence: Evidence, one: Subject) -> tuple[int | None, str]:
    """Returns the nearest NUMA node, and the command that runs a program there. The node is None if
    it is unknown."""
    machine = evidence.machine
    function = machine.functions.get(one.pci or "")
    node = None if function is None else function.numa_node
    nodes = {node.index: node for node in machine.host.nodes}
    if node is None and len(nodes) == 1:
        node = next(iter(nodes))
    if node is None:
        return None, "NUMA node unknown"
    cpus = f"--cpunodebind={node} " if node not in nodes or nodes[node].cpus else ""
    return node, f"numactl {cpus}--membind={node}"
