"""Copies that are cut into small parts. Several streams run at once, and each stream copies its
parts one after another."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Any

from linkgauge.model.settings import MOST_STREAMS, Pieces

from .device import CudaDevice, KernelLaunch
from .launches import LOOPS
from .work import StreamWork, cut, in_pieces

_MOST_THREADS = 1024
_LANES = 32


def pieces_launch(
    device: CudaDevice, destination: int, source: int, size: int, pieces: Pieces
) -> KernelLaunch:
    """Returns a kernel that copies `size` bytes in small parts, with one block for each stream.
    Addresses must be multiples of 16. `pieces` says how many bytes a warp accesses at once: 128,
    256 or 512."""
    threads = min(pieces.size // (pieces.payload // _LANES), _MOST_THREADS)
    arguments = (destination, source, size, LOOPS)
    defines = {"PIECE": pieces.size, "PAYLOAD": pieces.payload}
    return KernelLaunch(device, "pieces.copy", (pieces.streams, threads), arguments, defines)


def piece_copies(
    device: CudaDevice, destination: int, source: int, size: int, pieces: Pieces
) -> StreamWork:
    """Returns copies of small parts by copy engines. A loop is one CUDA graph with a chain of
    copies for each stream. Separate calls for each copy would be too slow."""
    ends, call = cut(destination, source, size, pieces.size), device.driver.call
    streams = min(pieces.streams, MOST_STREAMS, len(ends))
    with ExitStack() as made:
        graph = device.call("cuGraphCreate", 0)
        made.callback(device.call, "cuGraphDestroy", graph)
        for first in range(streams):
            before: list[Any] = []
            for part in ends[first::streams]:
                node = before or None, len(before), _copy_node(device.driver.enums, *part)
                before = [call("cuGraphAddMemcpyNode", graph, *node, device.context)]
        ready = call("cuGraphInstantiate", graph, 0)
        made.callback(device.call, "cuGraphExecDestroy", ready)
        work = in_pieces(device, [partial(call, "cuGraphLaunch", ready)])
        work.kind, work.entries, work.close = "graph", (len(ends), 0), made.pop_all().close
    return work


def _copy_node(enums: Any, destination: int, source: int, size: int) -> Any:
    node = enums.CUDA_MEMCPY3D()
    node.srcMemoryType = node.dstMemoryType = enums.CUmemorytype.CU_MEMORYTYPE_UNIFIED
    node.srcDevice, node.dstDevice = source, destination
    node.WidthInBytes, node.Height, node.Depth = size, 1, 1
    return node
