"""A simulated machine whose every figure is exact, and transfers on it without the engine."""

from __future__ import annotations

import yaml

from linkgauge.backends.protocol import Copy
from linkgauge.backends.sim.backend import SimBackend
from linkgauge.backends.sim.description import parse_description
from linkgauge.backends.sim.machine import parts_of
from linkgauge.model.notation import parse_transfers

SMALL = """
source: made up for tests
noise: 0
host:
  cpu_model: Test CPU
  nodes:
    - {count: 2, cpus: 8, memory: 64G, rate: 100 GB/s, latency: 100 ns}
link_kinds:
  mesh: {kind: fabric, rate: 40 GB/s, latency: 400 ns}
  pcie: {kind: pcie, speed: 8, width: 16, latency: 500 ns}
  socket: {kind: socket, rate: 30 GB/s, latency: 50 ns}
switches:
  - {name: root0..1}
devices:
  - {count: 4, model: Test Card, memory: 16G, memory_rate: 1 TB/s, memory_latency: 300 ns,
     ce: {startup: 0 ns}, sm: {startup: 0 ns}}
links:
  - {kind: mesh, mesh: sim:0..3}
  - {kind: pcie, each: sim:0..3, to: root0..1}
  - {kind: socket, each: root0..1, to: host:0..1}
  - {kind: socket, pairs: [[host:0, host:1]]}
"""
"""Four devices in a full mesh, two below each of two nodes; nothing takes time to start."""


def backend(changes: dict[str, object] | None = None) -> SimBackend:
    """The small machine; each change sets a field, named by its path (`devices.0.sm`)."""
    tree = yaml.safe_load(SMALL)
    for path, value in (changes or {}).items():
        *way, last = (int(step) if step.isdecimal() else step for step in path.split("."))
        place = tree
        for step in way:
            place = place[step]
        place[last] = value
    return SimBackend(parts_of(parse_description(yaml.safe_dump(tree))))


def copies(machine: SimBackend, text: str, size: int) -> list[Copy]:
    """The transfers with buffers of `size` bytes times their scale."""
    made = []
    for seed, transfer in enumerate(parse_transfers(text), start=1):
        assert machine.refusal(transfer) is None, machine.refusal(transfer)
        own = size * transfer.scale
        ends = [
            None if memory.is_null else machine.allocate(memory, own, transfer.engine)
            for memory in (transfer.source, transfer.destination)
        ]
        made.append(Copy(transfer, *ends, own, seed))
    return made


def seconds(machine: SimBackend, text: str, size: int = 1 << 30, loops: int = 1):
    """How long each of the concurrent transfers takes."""
    group = machine.prepare(copies(machine, text, size))
    group.arm(loops)
    group.open()
    return group.wait().seconds


def rates(machine: SimBackend, text: str, size: int = 1 << 30) -> list[float]:
    """Each transfer's own bandwidth in GB/s."""
    scales = [transfer.scale for transfer in parse_transfers(text)]
    return [
        size * scale / time / 1e9
        for scale, time in zip(scales, seconds(machine, text, size), strict=True)
    ]
