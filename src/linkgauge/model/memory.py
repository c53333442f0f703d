"""Memories, which are the places that bytes move between."""

from __future__ import annotations

from functools import lru_cache
from sys import intern

import msgspec

STAGING = "staging"
"""Pinned host memory, in one buffer for all transfers of a cell that name it."""
PAGE_KINDS = ("base", "thp", "hugetlb")
"""The kinds of memory by their pages: pages of the base size, transparent huge pages, or huge pages
of the pool."""
SPREAD = ("interleave", "weighted")
"""The kinds of memory that are spread over all nodes in turn: one page per node, or as many pages
as the kernel's weights say."""
POLICY_KINDS = ("preferred", *SPREAD)
"""The kinds of pinned memory that are placed by another policy than binding to the node."""
HOST_KINDS = ("pageable", "huge", *PAGE_KINDS, *POLICY_KINDS, "mapped", "wc", "managed", STAGING)

NIC = "nic"
"""The owner of an engine that is a network interface: `nic:N`, by its number in the machine's
record."""
NETWORK = "net"
"""The backend of network interfaces."""


class Memory(msgspec.Struct, frozen=True, gc=False, order=True):
    """A place that holds bytes. `kind` is how host memory is allocated ("" is pinned). `rank` is
    the process that holds the memory (None: this process)."""

    space: str
    index: int | None = None
    kind: str = ""
    rank: int | None = None

    @property
    def is_host(self) -> bool:
        return self.space == "host"

    @property
    def is_null(self) -> bool:
        return self.space == "null"

    @property
    def is_cpu(self) -> bool:
        """Whether this memory stands for one CPU's caches, which cannot be allocated."""
        return self.space == "cpu"

    @property
    def is_device(self) -> bool:
        return self.space not in ("host", "cpu", NIC, "null")

    @property
    def is_nic(self) -> bool:
        """Whether this is a network interface, which moves bytes and holds none."""
        return self.space == NIC

    @property
    def is_staging(self) -> bool:
        return self.kind == STAGING

    @property
    def backend(self) -> str:
        """The backend that serves the memory: `torch` for `torch:xpu:0`."""
        if self.is_nic:
            return NETWORK
        return "host" if self.is_cpu else self.space.partition(":")[0]

    @property
    def place(self) -> Memory:
        return Memory(self.space, self.index, rank=self.rank) if self.kind else self

    @property
    def unranked(self) -> Memory:
        return Memory(self.space, self.index, self.kind)

    @property
    def label(self) -> str:
        """The label in tables: `1` for `cuda:1`, `xpu:0` for `torch:xpu:0`; the rank, if any."""
        return intern(str(self.place).partition(":")[2] if self.rank is None else str(self.rank))

    def __str__(self) -> str:
        return _text(self.space, self.index, self.kind, self.rank)


@lru_cache(maxsize=1 << 14)
def _text(space: str, index: int | None, kind: str, rank: int | None) -> str:
    if space == "null":
        return "null"
    by_kind = f"/{kind}" if kind else ""
    by_rank = "" if rank is None else f"@{rank}"
    return intern(f"{space}:{index}{by_kind}{by_rank}")


NULL = Memory("null")


def host(node: int, kind: str = "") -> Memory:
    return Memory("host", node, kind)
