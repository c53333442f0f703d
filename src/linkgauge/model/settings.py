"""How a run measures: what is asked of it, and what it lives in."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from .soak import Soaking
from .transfer import Cell

Profiler = Literal["nsys", "ncu"]


class Pieces(msgspec.Struct, frozen=True):
    """Copies by accelerators are cut into pieces of `size` bytes, which `streams` streams (a
    kernel's blocks, a copy engine's queues) carry out concurrently, each stream one after another;
    `payload` is the bytes of one access of a kernel, if selectable."""

    size: int = 4096
    streams: int = 32
    payload: int = 256

    def describe(self, engine: str) -> str:
        """The part that concerns an engine (`ce` or `sm`), for people."""
        accesses = f", in accesses of {self.payload} bytes" if engine == "sm" else ""
        clock = "" if engine == "sm" else ", timed by the host's clock"
        return f"pieces of {self.size} bytes over {self.streams} streams{accesses}{clock}"


MOST_STREAMS = 32
"""Limit for copy engines: the number of a device's hardware queues."""

Blocks = Annotated[int, Meta(ge=1, lt=1 << 31, description="1 to 2147483647")]
Threads = Annotated[
    int, Meta(ge=64, le=1024, multiple_of=64, description="a multiple of 64, at most 1024")
]
Streams = Annotated[int, Meta(ge=1, le=MOST_STREAMS, description=f"1 to {MOST_STREAMS}")]


class EngineSettings(msgspec.Struct, frozen=True):
    """How engines work; null leaves it to the backend.

    `kernel`, `blocks` and `threads` shape copies by sm, `streams` splits copies by ce. `tuned` uses
    the settings remembered as best for the device's model. `affinity` keeps the controlling thread
    on the node of the host memory, which is near the device or, if given, `numa_node`. With
    `pieces`, copies are cut up, and the shape of the others does not count. Without `peer_access`,
    devices do not reach each other's memory: copies between two are left to the driver. Host
    threads use `host_kernel` for what it can do, else, if `host_tuned`, the fastest kernel found.
    Without `searches`, nothing is searched: only what is remembered is used. With `calls_wait`, any
    call may wait for the device, as under a profiler that replays kernels: no gate waits for the
    host.
    """

    kernel: Literal["plain", "bulk"] | None = None
    blocks: Blocks | None = None
    threads: Threads | None = None
    streams: Streams | None = None
    tuned: bool = True
    affinity: bool = True
    numa_node: int | None = None
    pieces: Pieces | None = None
    peer_access: bool = True
    host_kernel: str | None = None
    host_tuned: bool = True
    searches: bool = True
    calls_wait: bool = False


class Simulation(msgspec.Struct, frozen=True):
    """What is measured instead of this machine: a description (its YAML text) with its name, and
    the faults that strike it, each in the grammar of `--fault`. Runs of another `draw` have other
    noise. Faults count cells from the `passed` ones of earlier runs on, and so does noise."""

    machine: str
    description: str
    faults: tuple[str, ...] = ()
    draw: int = 0
    passed: int = 0


Seed = Annotated[int, Meta(ge=0, lt=1 << 32, description="0 to 4294967295")]


class PairSample(msgspec.Struct, frozen=True):
    """Of all pairs of devices, a random sample of `count` (all if there are no more), which the
    `seed` determines."""

    count: int
    seed: Seed = 1


class Surroundings(msgspec.Struct, frozen=True):
    """What worker processes live in: they use these CPUs only (none: all that this process may
    use; of a simulated machine, its own), and find these environment variables beside those of this
    process (null: unset)."""

    cpus: tuple[int, ...] = ()
    environment: dict[str, str | None] = {}


class Settings(msgspec.Struct, frozen=True):
    """How a run measures. `samples` and `loops` are fixed counts (null: adaptive); `precision` is
    relative (0: sample for all of `max_time`); `max_time` is seconds per cell; `sizes` are bytes.
    With `parallel_pairs`, disjoint pairs of devices are measured at the same time; with
    `sample_pairs`, only a sample of them is. A cell that takes longer than `timeout` seconds is
    abandoned (null: one that makes no progress). `pattern` is the 64-bit word that one-way copies
    move (null: words that all differ). Cells that search primes take `rate_time` seconds each,
    however precise they are by then. Cells are measured under the `profiler`, if any. With `soak`,
    everything is repeated for a time, whatever the precision."""

    sizes: tuple[int, ...]
    profile: str = "standard"
    precision: float = 0.01
    max_time: float = 2.0
    samples: int | None = None
    loops: int | None = None
    verify: bool = True
    parallel_pairs: bool = False
    engines: EngineSettings = EngineSettings()
    timeout: float | None = None
    pattern: int | None = None
    simulation: Simulation | None = None
    rate_time: float = 2.0
    surroundings: Surroundings = Surroundings()
    profiler: Profiler | None = None
    sample_pairs: PairSample | None = None
    soak: Soaking | None = None

    def of(self, cell: Cell) -> Settings:
        """Those of this cell."""
        if cell.operation == "primes":
            return replace(self, max_time=self.rate_time, precision=0.0)
        if cell.runs is not None and self.samples is None:
            return replace(self, samples=cell.runs)
        return self
