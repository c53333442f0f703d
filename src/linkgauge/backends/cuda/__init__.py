"""Backend `cuda` for NVIDIA GPUs, by CUDA's driver alone. Kernels are compiled when first used.

The memories are `cuda:N` and, on the host, `host:N` (pinned). Other kinds of host memory are
`/pageable`, `/huge`, `/mapped` (zero copy), `/wc` (write-combined) and `/managed`. The engine `ce`
copies by cuMemcpyAsync. The engine `sm` is a kernel: it copies one way or both ways, only reads,
only writes, or chases pointers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .driver import find_driver, open_driver

if TYPE_CHECKING:
    from linkgauge.backends.protocol import Backend, Glance
    from linkgauge.model.hardware.machine import Host
    from linkgauge.model.settings import EngineSettings


def create(engines: EngineSettings, host: Host) -> Backend:
    """Opens the backend. Raises Unsupported if there is no driver or no device."""
    driver = open_driver()
    from .backend import CudaBackend  # takes 50 ms, which a machine without a GPU need not

    return CudaBackend(driver, host.nodes, engines)


def glance(engines: EngineSettings, _host: Host) -> Glance | None:
    """Returns what NVML reports about the devices, or None if CUDA must be asked. Raises
    Unsupported if CUDA's library or its Python bindings are missing."""
    find_driver()
    from .nvml.cards import glance as of_cards

    return of_cards(tuned=engines.tuned)
