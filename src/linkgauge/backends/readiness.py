"""What a backend may do before the memory of a cell is allocated."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from linkgauge.model.operations.operation import Operation


@runtime_checkable
class Readies(Protocol):
    """A backend that does slow work for some operations, such as a search for fast kernels."""

    def ready(self, does: Operation, transfers: int) -> None:
        """Prepares for an operation with this many transfers. A second call is quick."""
        ...
