"""A host's details in a few lines."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from linkgauge.machine.tree import ranges
from linkgauge.model.host_details import HostDetails
from linkgauge.model.inventory import gaps_of
from linkgauge.model.units import approximate_size

_KINDS = {"data": "d", "instruction": "i"}
_NONE = "unlimited"


def host_lines(host: HostDetails) -> Iterator[Text]:
    """What is known; what is not is left out here and listed with its reason elsewhere."""
    for heading, parts in (
        ("CPUs", _processors(host)),
        ("memory", _memory(host)),
        ("CPU steal", _steal(host)),
        ("may use", _allowances(host)),
        ("command line", iter([host.command_line] if host.command_line else [])),
    ):
        if shown := "; ".join(parts):
            yield Text.assemble((f"{heading}: ", "cyan"), shown)


def counts(host: HostDetails) -> Iterator[str]:
    """Sockets and cores, as far as they are known."""
    yield from filter(None, (_count(host.sockets, "socket"), _count(host.cores, "core")))


def surroundings(host: HostDetails) -> Iterator[str]:
    """What the kernel runs under and in, and whether an IOMMU translates."""
    found = {"under": host.hypervisor, "in": host.container, "IOMMU": host.iommu}
    yield from (f"{how} {what}" for how, what in found.items() if what)


def _processors(host: HostDetails) -> Iterator[str]:
    if host.threads_per_core is not None:
        yield f"{_count(host.threads_per_core, 'thread')} a core"
    if host.isa:
        yield host.isa
    if host.governor:
        by = f" by {host.frequency_driver}" if host.frequency_driver else ""
        yield f"governor {host.governor}{by}"
    for cache in host.caches:
        shared = f" shared by {cache.shared_by}" if cache.shared_by > 1 else ""
        yield f"L{cache.level}{_KINDS.get(cache.kind, '')} {approximate_size(cache.size)}{shared}"


def _memory(host: HostDetails) -> Iterator[str]:
    if host.memory_rate is not None:
        yield f"DIMMs {host.memory_rate / 1e9:.1f} GB/s"
    if len(host.distances) > 1:
        rows = (f"{node}: {' '.join(map(str, row))}" for node, row in host.distances.items())
        yield f"NUMA distances to {' '.join(map(str, host.distances))} from {' / '.join(rows)}"
    for size, (total, free) in host.huge_pages.items():
        yield f"{total} huge pages of {approximate_size(size)}, {free} free"
    if host.transparent_huge_pages:
        yield f"transparent huge pages {host.transparent_huge_pages}"


def _steal(host: HostDetails) -> Iterator[str]:
    if host.steal is not None:
        yield f"{host.steal:.2%} since boot"


def _allowances(host: HostDetails) -> Iterator[str]:
    if host.allowed_cpus is not None:
        yield f"CPUs {ranges(host.allowed_cpus)}"
    if host.allowed_nodes is not None:
        yield f"nodes {ranges(host.allowed_nodes)}"
    unread = {field for gap in gaps_of(host.unknown) for field in gap.fields}
    for what, limit in (
        ("memory limit", host.memory_limit),
        ("locked memory limit", host.memlock_limit),
    ):
        if limit is not None or what not in unread:
            yield f"{what} {_NONE if limit is None else approximate_size(limit)}"


def _count(count: int | None, what: str) -> str:
    return "" if count is None else f"{count} {what}{'' if count == 1 else 's'}"
