"""Shows the host's processors, memory and limits, and the environment of its kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from linkgauge.machine.tree import ranges
from linkgauge.model.hardware.gaps import NEEDS_ROOT, Gap
from linkgauge.model.hardware.host_details import CpuCache, HostDetails
from linkgauge.model.hardware.inventory import Inventory
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.names import spans
from linkgauge.model.units import approximate_size, count_of
from linkgauge.report.blocks import Table
from linkgauge.report.results import table

_KINDS = {"data": "d", "instruction": "i"}


def host_facts(machine: Machine) -> Table:
    """Returns a table of the known facts of the host. Unknown facts are listed elsewhere with the
    reason."""
    host, size = machine.known.host, machine.host.memory_total
    driver = f" by {host.frequency_driver}" if host.frequency_driver else ""
    facts: dict[str, Iterable[object]] = {
        "CPUs": (
            host.threads_per_core and f"{count_of(host.threads_per_core, 'thread')} a core",
            host.isa,
            host.governor and f"governor {host.governor}{driver}",
            *map(_cache, host.caches),
        ),
        "memory": (
            size and approximate_size(size),
            host.memory_rate and f"DIMMs {host.memory_rate / 1e9:.1f} GB/s",
            _distances(host),
            *(
                f"{total} huge pages of {approximate_size(size)}, {free} free"
                for size, (total, free) in host.huge_pages.items()
            ),
            host.transparent_huge_pages and f"transparent huge pages {host.transparent_huge_pages}",
        ),
        "CPU steal": (None if host.steal is None else f"{host.steal:.2%} since boot",),
        "may use": _allowances(host),
        "command line": (host.command_line,),
    }
    rows = ((name, "; ".join(str(text) for text in texts if text)) for name, texts in facts.items())
    return table("Host", ("", ""), [row for row in rows if row[1]])


def counts(host: HostDetails) -> Iterator[str]:
    """Yields the numbers of sockets and cores, as far as they are known."""
    for count, what in ((host.sockets, "socket"), (host.cores, "core")):
        if count is not None:
            yield count_of(count, what)


def surroundings(host: HostDetails) -> Iterator[str]:
    """Yields the environment of the kernel: the hypervisor, the container, and the IOMMU."""
    found = {"under": host.hypervisor, "in": host.container, "IOMMU": host.iommu}
    yield from (f"{how} {what}" for how, what in found.items() if what)


def _cache(cache: CpuCache) -> str:
    shared = f" shared by {cache.shared_by}" if cache.shared_by > 1 else ""
    return f"L{cache.level}{_KINDS.get(cache.kind, '')} {approximate_size(cache.size)}{shared}"


def _distances(host: HostDetails) -> str:
    rows = [f"{node}: {' '.join(map(str, row))}" for node, row in host.distances.items()]
    to = " ".join(map(str, host.distances))
    return f"NUMA distances to {to} from {' / '.join(rows)}" if len(rows) > 1 else ""


def _allowances(host: HostDetails) -> Iterator[str]:
    for what, listed in (("CPUs", host.allowed_cpus), ("nodes", host.allowed_nodes)):
        if listed is not None:
            yield f"{what} {ranges(listed)}"
    unread = {field for gap in host.unknown for field in gap.fields}
    limits = {"memory limit": host.memory_limit, "locked memory limit": host.memlock_limit}
    for what, limit in limits.items():
        if limit is not None or what not in unread:
            yield f"{what} {'unlimited' if limit is None else approximate_size(limit)}"


# What could not be read on a machine, each reason once, with what would make it readable.

_NAMED = 4


def gaps(inventory: Inventory) -> dict[str, str]:
    """Returns the missing facts by reason. Each fact is listed with its owners: `link.speed of
    sim:0-3`."""
    found: dict[str, dict[str, list[str]]] = {}
    for owner, unknown in _unknown(inventory):
        for gap in unknown:
            fields = found.setdefault(gap.why, {}).setdefault(owner, [])
            fields += [field for field in gap.fields if field not in fields]
    return {why: "; ".join(_listed(by_owner)) for why, by_owner in found.items()}


def for_root(inventory: Inventory | None) -> list[str]:
    """Returns the facts that only root can read: a line for each reason."""
    found = gaps(inventory) if inventory else {}
    return [
        ": ".join(filter(None, (text, why)))
        for why, text in found.items()
        if why.endswith(NEEDS_ROOT)
    ]


def _unknown(inventory: Inventory) -> Sequence[tuple[str, tuple[Gap, ...]]]:
    """Returns the facts that were not read, by owner. Facts of the machine and the host have an
    empty owner."""
    return [
        ("", (*inventory.unknown, *inventory.host.unknown)),
        *((one.memory, one.unknown) for one in inventory.accelerators),
        *((one.name, one.unknown) for one in inventory.adapters),
        *((one.address, one.unknown) for one in inventory.pci),
    ]


def _listed(by_owner: dict[str, list[str]]) -> Iterator[str]:
    """Yields missing facts with their owners: `link.speed of 0000:01:00.0, 0000:02:00.0 and 3
    more`. Owners that lack the same facts share a line."""
    alike: dict[str, list[str]] = {}
    for owner, fields in by_owner.items():
        alike.setdefault(", ".join(fields), []).append(owner)
    for what, owners in alike.items():
        shown = spans(filter(None, owners)).split(", ")
        more = f" and {len(shown) - _NAMED} more" if len(shown) > _NAMED + 1 else ""
        of = ", ".join(shown[:_NAMED] if more else shown) + more
        yield " of ".join(filter(None, (what, of)))
