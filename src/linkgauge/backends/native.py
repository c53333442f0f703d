"""How the native core allocates, fills and compares host memory, and how its errors are raised."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache

from linkgauge import _native
from linkgauge._native import Kind, Policy
from linkgauge.machine.tree import NODES, ROOT, Root
from linkgauge.model.counters import Counters
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
    """Allocates memory on `node` or spread over `nodes`. Threads on `cpus` touch its pages first.
    `alone` means that the machine has only one node. Raises AllocationError if memory is short,
    Unsupported for a wrong node or kind of page."""
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
    if native.bind_error is not None and not alone:
        if memory.kind in POLICIES:
            since = " (Linux 6.9 has this policy)" if memory.kind == "weighted" else ""
            yield f"cannot place memory by {memory.kind}: {native.bind_error}{since}"
        yield f"cannot bind memory to {memory.place}: {native.bind_error}"
    if kind in _IN_HUGE_PAGES or kind == Kind.BASE:
        huge = min(native.huge_bytes(), native.size)
        yield from not_of_pages(kind, huge, native.size)


def not_of_pages(kind: Kind, huge: int, size: int) -> Iterator[str]:
    if kind in _IN_HUGE_PAGES and huge < size:
        how = "allow transparent ones (/sys/kernel/mm/transparent_hugepage/enabled: madvise)"
        if kind != Kind.TRANSPARENT:
            how = f"reserve some (vm.nr_hugepages) or {how}"
        had = f"only {approximate_size(huge)} of {approximate_size(size)}"
        yield f"{had} is in huge pages: {how}"
    if kind == Kind.BASE and huge:
        yield f"{approximate_size(huge)} of {approximate_size(size)} is in huge pages"


def _check_pool(size: int, node: int | None, root: Root = ROOT) -> None:
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
    """Returns the NUMA node of most pages, or None if Linux does not report it."""
    return _most(_native.nodes_of(address, size))


def _most(pages: Mapping[int, int]) -> int | None:
    return max(pages, key=lambda index: pages[index], default=None)


def unevenly(placement: Placement, nodes: Sequence[int]) -> Iterator[str]:
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
    if memory.kind in SPREAD:
        return
    if memory.is_host and placement.node not in (None, memory.index):
        yield f"{memory} is on node {placement.node}"


def fill(
    address: int, size: int, pattern: Pattern, seed: int, inverted: bool, cpus: Sequence[int]
) -> None:
    """Writes a pattern with a thread on each of `cpus`. `inverted` inverts all bits."""
    with native_errors("fill"):
        _native.fill(address, size, seed, _native.Pattern(pattern), inverted, cpus)


def pattern_bytes(size: int, pattern: Pattern, seed: int) -> bytes:
    """Returns the bytes that `fill` would write, computed by one thread: for a few pages only."""
    return _native.pattern_bytes(size, seed, _native.Pattern(pattern))


def first_mismatch(
    address: int, size: int, pattern: Pattern, seed: int, cpus: Sequence[int]
) -> int | None:
    with native_errors("compare"):
        return _native.first_mismatch(address, size, seed, _native.Pattern(pattern), cpus)


def checksum(address: int, size: int, cpus: Sequence[int]) -> int:
    """Returns the xor of all 64-bit words. An incomplete last word is filled up with zeros."""
    with native_errors("checksum"):
        return _native.checksum(address, size, cpus)


_PARANOID = "proc/sys/kernel/perf_event_paranoid"
_USER_MODE = 2
"""The highest value of perf_event_paranoid that lets users count events of their own threads."""


def counters_of(counts: _native.Counts) -> Counters:
    known = (name for name in Counters.__struct_fields__ if hasattr(counts, name))
    refused = _refused_here(counts.refused) if counts.refused else None
    return Counters(**{name: getattr(counts, name) for name in known} | {"refused": refused})


@cache
def _refused_here(code: int) -> str:
    return refused(code, ROOT)


def refused(code: int, root: Root) -> str:
    """Returns why Linux does not count CPU cycles. `code` is the errno of perf_event_open."""
    level = root.text(_PARANOID)
    if code in (errno.EACCES, errno.EPERM):
        if level is not None and level.removeprefix("-").isdecimal() and int(level) > _USER_MODE:
            return f"kernel.perf_event_paranoid is {level}: set it to {_USER_MODE} (sysctl)"
        return "perf_event_open is not allowed: a container needs CAP_PERFMON or a seccomp profile"
    if code == errno.ENOSYS or level is None:
        return "the kernel or a seccomp profile has no perf_event_open"
    if code == errno.EMFILE:
        return "too few open files for every thread: raise the limit (ulimit -n)"
    if code in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
        from linkgauge.machine.environment import hypervisor  # most runs need no reason

        beneath = hypervisor(root)[0]
        guest = f"{beneath} gives this guest no performance counters (PMU)"
        return guest if beneath else "the kernel supports no performance counters (PMU) of this CPU"
    return f"perf_event_open: {errno.errorcode.get(code, code)}"
