"""Profile `vm`: what configurations of a virtual machine, and its host, are compared by.

The set and the order are those of the vCPU benchmark suite: topology (kept as files of the run),
what CPUs compute, memory, the accelerator's own work, which warms it up, and only then the links to
it. docs/vm.md says of each what it tells.
"""

from __future__ import annotations

VM: tuple[str, ...] = (
    "cpu_primes_single",
    "cpu_primes_all",
    "memory_stream_copy",
    "memory_stream_scale",
    "memory_stream_add",
    "memory_stream_triad",
    "memory_stream_nodes",
    "memory_latency",
    "host_to_device_memcpy_ce",
    "device_to_host_memcpy_ce",
    "device_local_copy",
    "all_reduce",
)
"""Names of the catalog."""
