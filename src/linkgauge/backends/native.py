"""Allocates, fills and compares host memory by the native core, and translates its errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from linkgauge import _native
from linkgauge._native import Kind, Policy
from linkgauge.machine.tree import NODES, ROOT, Root
from linkgauge.model.documents.result import Placement
from linkgauge.model.errors import AllocationError, BackendError, Unsupported
from linkgauge.model.memory import SPREAD, STAGING, Memory
from linkgauge.model.units import approximate_size

from .protocol import Pattern

POLICIES = {
    "preferred": Policy.PREFERRED,
    "interleave": Policy.INTERLEAVE,
    "weighted": Policy.WEIGHTED,
}
KINDS = {
    "": Kind.PINNED,
    "pageable": Kind.PAGEABLE,
    "huge": Kind.HUGE,
    "base": Kind.BASE,
    "thp": Kind.TRANSPARENT,
    "hugetlb": Kind.POOL,
    STAGING: Kind.PINNED,
    **dict.fromkeys(POLICIES, Kind.PINNED),
}
"""The native core's names for the kinds of host memory."""
_LOCKED = (Kind.PINNED, Kind.HUGE)
_IN_HUGE_PAGES = (Kind.HUGE, Kind.TRANSPARENT, Kind.POOL)
HUGE_PAGE = 2 << 20
_UNEVEN = 0.1
"""The largest accepted difference between the nodes' shares of interleaved memory, apart from one
huge page."""


@contextmanager
def native_errors(call: str) -> Iterator[None]:
    """Turns errors of the native core into BackendError."""
    try:
        yield
    except (OSError, RuntimeError, ValueError, MemoryError) as error:
        raise BackendError(call, str(error)) from error


def allocate(
    memory: Memory,
    size: int,
    kind: Kind,
    node: int | None,
    alone: bool,
    cpus: Sequence[int],
    nodes: Sequence[int] = (),
) -> tuple[_native.Memory, Placement]:
    """Allocates host memory on `node`, or spread over `nodes`. With `node` None it may be anywhere.
    The CPUs `cpus` touch the memory first. Returns the memory and its actual placement.

    Raises AllocationError if memory is short. Raises Unsupported if the memory's placement or its
    pages are not what its kind requires. `alone` says that the machine has no other node, so that
    the placement is not checked."""
    policy = POLICIES.get(memory.kind, Policy.BIND)
    if kind == Kind.POOL:
        _check_pool(size, node)
    try:
        native = _native.Memory(size, kind, node, cpus, policy, nodes)
    except OSError as error:
        what = f"allocate {approximate_size(size)} of {memory}"
        raise AllocationError(what, str(error)) from error
    reason = next(_not_as_asked(native, memory, kind, alone and policy == Policy.BIND), None)
    if reason is not None:
        native.close()
        raise Unsupported(reason)
    pages = _native.nodes_of(native.address, size)
    return native, Placement(
        memory=str(memory),
        bytes=size,
        node=_most(pages),
        locked=native.locked if kind in _LOCKED else None,
        huge_bytes=min(native.huge_bytes(), size),
        nodes=pages if memory.kind in POLICIES and pages else None,
    )


def _not_as_asked(native: _native.Memory, memory: Memory, kind: Kind, alone: bool) -> Iterator[str]:
    """Yields the reasons why the memory is not of its kind."""
    if native.bind_error is not None and not alone:
        if memory.kind in POLICIES:
            since = " (Linux 6.9 has this policy)" if memory.kind == "weighted" else ""
            yield f"cannot place memory by {memory.kind}: {native.bind_error}{since}"
        yield f"cannot bind memory to {memory.place}: {native.bind_error}"
    if kind in _IN_HUGE_PAGES or kind == Kind.BASE:
        huge = min(native.huge_bytes(), native.size)
        yield from not_of_pages(kind, huge, native.size)


def not_of_pages(kind: Kind, huge: int, size: int) -> Iterator[str]:
    """Yields a reason if the memory does not have the pages of its kind. `huge` is the number of
    its bytes that are in huge pages."""
    if kind in _IN_HUGE_PAGES and huge < size:
        how = "allow transparent ones (/sys/kernel/mm/transparent_hugepage/enabled: madvise)"
        if kind != Kind.TRANSPARENT:
            how = f"reserve some (vm.nr_hugepages) or {how}"
        had = f"only {approximate_size(huge)} of {approximate_size(size)}"
        yield f"{had} is in huge pages: {how}"
    if kind == Kind.BASE and huge:
        yield f"{approximate_size(huge)} of {approximate_size(size)} is in huge pages"


def _check_pool(size: int, node: int | None, root: Root = ROOT) -> None:
    """Raises Unsupported if the pool of huge pages is too small for `size` bytes."""
    pool = f"hugepages-{HUGE_PAGE >> 10}kB/nr_hugepages"
    places = [f"{NODES}/node{node}/hugepages/{pool}", f"sys/kernel/mm/hugepages/{pool}"]
    counts = (root.number(place) for place in places)
    count = next((count for count in counts if count is not None), 0)
    needed = -(-size // HUGE_PAGE)
    if not count:
        problem = f"the pool has no huge pages of {HUGE_PAGE >> 20} MiB"
        raise Unsupported(f"{problem}: reserve some (sysctl vm.nr_hugepages)")
    if count < needed:
        problem = f"the pool has {count} huge pages of {HUGE_PAGE >> 20} MiB, {needed} are needed"
        raise Unsupported(f"{problem}: reserve more (sysctl vm.nr_hugepages)")


def node_of(address: int, size: int) -> int | None:
    """Returns the NUMA node that has most of the pages, or None if the kernel does not show
    this."""
    return _most(_native.nodes_of(address, size))


def _most(pages: Mapping[int, int]) -> int | None:
    return max(pages, key=lambda index: pages[index], default=None)


def unevenly(placement: Placement, nodes: Sequence[int]) -> Iterator[str]:
    """Yields a warning if interleaved memory is not spread evenly over `nodes`."""
    pages = placement.nodes
    if not pages:
        return
    all_pages = sum(pages.values())
    shares = {node: pages.get(node, 0) / all_pages for node in {*nodes, *pages}}
    granules = max(1, placement.bytes // HUGE_PAGE)
    if max(shares.values()) - min(shares.values()) > _UNEVEN + len(nodes) / granules:
        found = ", ".join(f"{share:.0%} on node {node}" for node, share in sorted(shares.items()))
        yield f"{placement.memory} is {found}"


def misplaced(memory: Memory, placement: Placement) -> Iterator[str]:
    """Yields a warning if host memory is on the wrong node."""
    if memory.kind in SPREAD:
        return
    if memory.is_host and placement.node not in (None, memory.index):
        yield f"{memory} is on node {placement.node}"


def fill(
    address: int, size: int, pattern: Pattern, seed: int, inverted: bool, cpus: Sequence[int]
) -> None:
    """Writes a pattern into memory, with one thread on each of `cpus`. `inverted` inverts all
    bits."""
    with native_errors("fill"):
        _native.fill(address, size, seed, _native.Pattern(pattern), inverted, cpus)


def pattern_bytes(size: int, pattern: Pattern, seed: int) -> bytes:
    """Returns what `fill` would write. This thread makes it, so `size` should be a few pages."""
    return _native.pattern_bytes(size, seed, _native.Pattern(pattern))


def first_mismatch(
    address: int, size: int, pattern: Pattern, seed: int, cpus: Sequence[int]
) -> int | None:
    """Returns the offset of the first byte that differs from a pattern, or None if all are
    right."""
    with native_errors("compare"):
        return _native.first_mismatch(address, size, seed, _native.Pattern(pattern), cpus)


def checksum(address: int, size: int, cpus: Sequence[int]) -> int:
    """Returns the xor of all 64-bit words. An incomplete last word is filled up with zeros."""
    with native_errors("checksum"):
        return _native.checksum(address, size, cpus)
