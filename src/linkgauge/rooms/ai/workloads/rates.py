"""What a device reaches in each part of a workload by itself: products of matrices, reads of its
memory, copies from and to pinned host memory. The same process measures it beforehand, by torch, so
that a workload is held against the same clock, library and placement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linkgauge.model.ai_models import NumberKind
from linkgauge.model.workload import Rates

from .site import Site

_TRIES = 4
_ORDER, _CPU_ORDER = 8192, 768
_READ, _CPU_READ = 4 << 30, 64 << 20
_COPIED, _CPU_COPIED = 1 << 30, 32 << 20
_MOST_OF_MEMORY = 8
"""Buffers take at most one part in so many of what is free."""


def measure_rates(site: Site, numbers: NumberKind) -> Rates:
    """The best of a few tries of each."""
    small = site.is_cpu
    free = site.free_bytes() or _READ * _MOST_OF_MEMORY
    read = min(_CPU_READ if small else _READ, free // _MOST_OF_MEMORY)
    copied = min(_CPU_COPIED if small else _COPIED, free // _MOST_OF_MEMORY)
    order = _CPU_ORDER if small else _ORDER
    rates = Rates(
        _product_rate(site, numbers, order),
        _read_rate(site, read),
        *_copy_rates(site, copied),
    )
    site.release()
    return rates


def _best(site: Site, work: Callable[[], object], times: int = 1) -> float:
    """Seconds of one, by the best of a few tries of so many; the first, which also loads the
    kernels, does not count."""

    def several() -> None:
        for _ in range(times):
            work()

    several()
    return min(site.seconds(several) for _ in range(_TRIES)) / times


def _product_rate(site: Site, numbers: NumberKind, order: int) -> float:
    """Operations/s of a product of two square matrices of N(0, 1) numbers."""
    torch, kind = site.torch, site.number_type(numbers)
    a, b = (torch.randn(order, order, device=site.device, dtype=kind) for _ in range(2))
    product = torch.empty_like(a)
    times = 1 if site.is_cpu else 10
    return 2 * order**3 / _best(site, lambda: torch.matmul(a, b, out=product), times)


def _read_rate(site: Site, size: int) -> float:
    """Bytes/s of a sum, which reads each number once, or of a copy, which reads and writes: the
    faster."""
    torch = site.torch
    numbers = torch.zeros(size // 4, device=site.device, dtype=torch.float32)
    summed = size / _best(site, lambda: torch.sum(numbers))
    half = numbers.numel() // 2
    source, destination = numbers[:half], numbers[half : 2 * half]
    copied: float = 2 * half * 4 / _best(site, lambda: destination.copy_(source))
    return max(summed, copied)


def _copy_rates(site: Site, size: int) -> tuple[float, float]:
    """Bytes/s from pinned host memory to the device, and back."""
    there: Any = site.torch.empty(size, dtype=site.torch.uint8, device=site.device)
    here: Any = site.host_tensor(size, site.torch.uint8).zero_()
    to_device = _best(site, lambda: there.copy_(here, non_blocking=True))
    to_host = _best(site, lambda: here.copy_(there, non_blocking=True))
    return size / to_device, size / to_host
