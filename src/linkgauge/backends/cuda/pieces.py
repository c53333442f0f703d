"""Copies that are cut into small parts. Several streams copy the parts one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkgauge.model.settings import MOST_STREAMS, Pieces

from .device import CudaDevice, KernelLaunch
from .launches import LOOPS
from .work import StreamWork, cut

_MOST_THREADS = 1024
_LANES = 32


def pieces_launch(
    device: CudaDevice, destination: int, source: int, size: int, pieces: Pieces
) -> KernelLaunch:
    """Returns a kernel that copies `size` bytes in small parts, with one block for each stream.
    Addresses must be multiples of 16. `pieces` gives the bytes of an access by a whole warp: 128,
    256 or 512."""
    kernel = device.kernel("pieces", "copy", (f"PIECE={pieces.size}", f"PAYLOAD={pieces.payload}"))
    threads = min(pieces.size // (pieces.payload // _LANES), _MOST_THREADS)
    arguments = (destination, source, size, LOOPS)
    return KernelLaunch(device, kernel, (pieces.streams, threads), arguments)


class PieceCopies(StreamWork):
    """Copies small parts by copy engines. A loop is one CUDA graph with a chain of copies for each
    stream. Separate calls for each copy would be too slow."""

    def __init__(
        self, device: CudaDevice, destination: int, source: int, size: int, pieces: Pieces
    ) -> None:
        super().__init__(device)
        ends = cut(destination, source, size, pieces.size)
        self._count = len(ends)
        streams = min(pieces.streams, MOST_STREAMS, len(ends))
        self._graph = device.call("cuGraphCreate", 0)
        try:
            self._add([ends[first::streams] for first in range(streams)])
            self._ready: Any = device.driver.call("cuGraphInstantiate", self._graph, 0)
        except BaseException:
            device.driver.call("cuGraphDestroy", self._graph)
            raise

    def _add(self, chains: Sequence[Sequence[tuple[int, int, int]]]) -> None:
        """Adds parallel chains of copies to the graph."""
        call, enums = self.device.driver.call, self.device.driver.enums
        context = self.device.context
        for chain in chains:
            before: list[Any] = []
            for destination, source, size in chain:
                node = _copy_node(enums, destination, source, size)
                added = call(
                    "cuGraphAddMemcpyNode", self._graph, before or None, len(before), node, context
                )
                before = [added]

    def operations(self, loops: int) -> int:
        return loops * self._count

    def enqueue(self, streams: Sequence[Any], loops: int) -> None:
        for _ in range(loops):
            self.device.driver.call("cuGraphLaunch", self._ready, streams[0])

    def close(self) -> None:
        self.device.call("cuGraphExecDestroy", self._ready)
        self.device.driver.call("cuGraphDestroy", self._graph)


def _copy_node(enums: Any, destination: int, source: int, size: int) -> Any:
    node = enums.CUDA_MEMCPY3D()
    node.srcMemoryType = node.dstMemoryType = enums.CUmemorytype.CU_MEMORYTYPE_UNIFIED
    node.srcDevice, node.dstDevice = source, destination
    node.WidthInBytes, node.Height, node.Depth = size, 1, 1
    return node
