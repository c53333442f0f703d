"""The native core as backends use it: host memory, its contents, and translated errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from linkgauge import _native
from linkgauge._native import Kind
from linkgauge.model.errors import AllocationError, BackendError, Unsupported
from linkgauge.model.result import Placement
from linkgauge.model.transfer import STAGING, Memory
from linkgauge.model.units import approximate_size

from .protocol import Pattern

KINDS = {
    "": Kind.PINNED,
    "pageable": Kind.PAGEABLE,
    "base": Kind.BASE,
    "huge": Kind.HUGE,
    STAGING: Kind.PINNED,
}
"""What the native core allocates, by the notation's kinds of host memory."""


@contextmanager
def native_errors(call: str) -> Iterator[None]:
    """Raises BackendError for threads that cannot start, missing CPUs and calls out of order."""
    try:
        yield
    except (OSError, RuntimeError, ValueError, MemoryError) as error:
        raise BackendError(call, str(error)) from error


def allocate(
    memory: Memory, size: int, kind: Kind, node: int | None, alone: bool, cpus: Sequence[int]
) -> tuple[_native.Memory, Placement]:
    """Host memory on `node` (None: anywhere), touched by `cpus`, and its actual placement.

    Raises AllocationError if it cannot be allocated, and Unsupported if it cannot be bound to its
    node and that is not `alone`, if huge memory is not entirely in huge pages, or base memory is
    partly in such.
    """
    try:
        native = _native.Memory(size, kind, node, cpus)
    except OSError as error:
        what = f"allocate {approximate_size(size)} of {memory}"
        raise AllocationError(what, str(error)) from error
    if node is not None and not native.bound and not alone:
        reason = native.bind_error
        native.close()
        raise Unsupported(f"memory cannot be bound to {memory.place}: {reason}")
    huge = min(native.huge_bytes(), size)
    if kind == Kind.HUGE and huge < size:
        native.close()
        raise Unsupported(
            f"only {approximate_size(huge)} of {approximate_size(size)} could be had in huge "
            "pages: reserve some (vm.nr_hugepages) or allow transparent ones (madvise)"
        )
    if kind == Kind.BASE and huge:
        native.close()
        raise Unsupported(f"{approximate_size(huge)} of {memory} lie in huge pages")
    return native, Placement(
        memory=str(memory),
        bytes=size,
        node=node_of(native.address, size),
        locked=None if kind == Kind.PAGEABLE else native.locked,
        huge_bytes=huge,
    )


def node_of(address: int, size: int) -> int | None:
    """The node that most of the pages lie on; None if the kernel does not report it."""
    pages = _native.nodes_of(address, size)
    return max(pages, key=lambda index: pages[index], default=None)


def misplaced(memory: Memory, placement: Placement) -> Iterator[str]:
    """A warning if host memory lies on the wrong node."""
    if memory.is_host and placement.node not in (None, memory.index):
        yield f"{memory} lies on node {placement.node}"


def fill(
    address: int, size: int, pattern: Pattern, seed: int, inverted: bool, cpus: Sequence[int]
) -> None:
    """Writes a pattern, or its complement, with one thread on each of `cpus`."""
    with native_errors("fill"):
        _native.fill(address, size, seed, _native.Pattern(pattern), inverted, cpus)


def first_mismatch(
    address: int, size: int, pattern: Pattern, seed: int, cpus: Sequence[int]
) -> int | None:
    """Offset of the first byte that differs from a pattern, None if all agree."""
    with native_errors("compare"):
        return _native.first_mismatch(address, size, seed, _native.Pattern(pattern), cpus)


def checksum(address: int, size: int, cpus: Sequence[int]) -> int:
    """Xor of all 64-bit words, the tail zero-extended."""
    with native_errors("checksum"):
        return _native.checksum(address, size, cpus)
