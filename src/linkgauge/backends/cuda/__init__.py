"""The backend `cuda` for NVIDIA GPUs. Its engine `ce` copies by cuMemcpyAsync, `sm` by a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .driver import find_driver, open_driver

if TYPE_CHECKING:
    from linkgauge.backends.protocol import Backend, Glance
    from linkgauge.model.hardware.machine import Host
    from linkgauge.model.settings import EngineSettings


def create(engines: EngineSettings, host: Host) -> Backend:
    """Opens the backend. Raises Unsupported if there is no usable driver or device."""
    driver = open_driver()
    from .backend import CudaBackend  # takes 50 ms, which a machine without a GPU need not

    return CudaBackend(driver, host.nodes, engines)


def glance(engines: EngineSettings, _host: Host) -> Glance | None:
    """Lists GPUs by NVML, or returns None. Raises Unsupported without driver or bindings."""
    find_driver()
    from .nvml.cards import glance as of_cards

    return of_cards(tuned=engines.tuned)
