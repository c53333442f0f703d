"""The profile `vm`, which compares configurations of a virtual machine with each other and with the
host, by the vCPU benchmark suite (docs/vm-profile.md)."""

from __future__ import annotations

from typing import Literal

import msgspec

VM: tuple[str, ...] = (
    "cpu_primes_single",
    "cpu_primes_all",
    "memory_stream_copy",
    "memory_stream_scale",
    "memory_stream_add",
    "memory_stream_triad",
    "memory_stream_nodes",
    "memory_latency",
    "gpu_matmul",
    "gpu_bandwidth_best_of",
    "host_to_device_memcpy_ce",
    "device_to_host_memcpy_ce",
    "device_local_copy",
    "all_reduce",
)
"""The names of the profile's benchmarks, in the order of the profile."""

Choice = Literal["last", "worst"]


class Aspect(msgspec.Struct, frozen=True):
    """A figure to compare configurations by. `sources` are pairs of a benchmark and a pattern for
    its cells (`row, column`); the first one in the run gives the figure. `choice` selects the cell.
    If `for_each_cpu` is true, the figure is divided by the number of CPUs."""

    name: str
    of: Literal["host", "accelerator"]
    sources: tuple[tuple[str, str], ...]
    choice: Choice = "worst"
    for_each_cpu: bool = False


_ANY = ".*"
ASPECTS: tuple[Aspect, ...] = (
    Aspect("primes 1 CPU", "host", (("cpu_primes_single", _ANY),), "last"),
    Aspect("primes all/n", "host", (("cpu_primes_all", _ANY),), "last", for_each_cpu=True),
    Aspect("STREAM triad", "host", (("memory_stream_triad", r"\w+ stream, \d+"),), "last"),
    Aspect("remote triad", "host", (("memory_stream_nodes", r"\d+ stream, .*"),)),
    Aspect("latency base", "host", (("memory_latency", r"\d+ base, .*"),), "last"),
    Aspect("latency huge", "host", (("memory_latency", r"\d+ huge, .*"),), "last"),
    Aspect("matmul FP32", "accelerator", (("gpu_matmul", "FP32, .*"),)),
    Aspect(
        "H2D pinned",
        "accelerator",
        (("host_to_device_memcpy_ce", _ANY), ("gpu_bandwidth_best_of", "H2D pinned, .*")),
    ),
    Aspect(
        "D2H pinned",
        "accelerator",
        (("device_to_host_memcpy_ce", _ANY), ("gpu_bandwidth_best_of", "D2H pinned, .*")),
    ),
    Aspect(
        "within",
        "accelerator",
        (("device_local_copy", _ANY), ("gpu_bandwidth_best_of", "within, .*")),
    ),
)
