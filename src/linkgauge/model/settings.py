"""The settings of a run, and the environment of its processes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from linkgauge.model.documents.soak import Soaking
from linkgauge.model.shareable import Argument, FreeText, MachineName, OwnName, Variable, Word

from .transfer import Cell, PairSample

Profiler = Literal["nsys", "ncu"]


class Pieces(msgspec.Struct, frozen=True):
    """How accelerators' copies are cut. Streams run at once, and each copies its pieces in turn.

    size: Bytes of a piece.
    streams: The number of streams.
    payload: Bytes of one access of a kernel, if the kernel lets this be chosen."""

    size: int = 4096
    streams: int = 32
    payload: int = 256

    def describe(self, engine: str) -> str:
        accesses = f", in accesses of {self.payload} bytes" if engine == "sm" else ""
        clock = "" if engine == "sm" else ", timed by the host's clock"
        return f"pieces of {self.size} bytes over {self.streams} streams{accesses}{clock}"


REPETITION_SECONDS = 0.03
"""The seconds in which a repetition of a cell takes its samples. A repetition takes longer if its
share of the cell's time is longer."""
MOST_STREAMS = 32
"""Limit for copy engines: the number of a device's hardware queues."""

Blocks = Annotated[int, Meta(ge=1, lt=1 << 31, description="1 to 2147483647")]
Threads = Annotated[
    int, Meta(ge=64, le=1024, multiple_of=64, description="a multiple of 64, at most 1024")
]
Streams = Annotated[int, Meta(ge=1, le=MOST_STREAMS, description=f"1 to {MOST_STREAMS}")]


class EngineSettings(msgspec.Struct, frozen=True):
    """The settings of engines. Null leaves the choice to the backend.

    kernel: The kernel with which the engine `sm` copies.
    blocks: The number of the kernel's blocks, 1 to 2147483647.
    threads: Threads of a block: a multiple of 64, at most 1024.
    streams: The number of streams that a copy by `ce` (copy engine) is split over, 1 to 32.
    tuned: Whether to use the settings remembered as best for the device's model.
    affinity: Whether the controlling thread stays on the node of the host memory.
    numa_node: The node of the host memory; null: the one near the device.
    pieces: How copies are cut (then the kernel settings above do nothing); null if they are not.
    peer_access: Whether devices access each other's memory directly; else the driver copies.
    host_kernel: The kernel that host threads use, in operations that have this kernel.
    host_tuned: Whether host threads use the fastest kernel found, if `host_kernel` is null.
    tunes: Whether to search for the best settings. If not, only remembered settings are used.
    calls_wait: Whether calls of the driver may wait for the device, as under a profiler."""

    kernel: Literal["plain", "bulk"] | None = None
    blocks: Blocks | None = None
    threads: Threads | None = None
    streams: Streams | None = None
    tuned: bool = True
    affinity: bool = True
    numa_node: int | None = None
    pieces: Pieces | None = None
    peer_access: bool = True
    host_kernel: Word | None = None
    host_tuned: bool = True
    tunes: bool = True
    calls_wait: bool = False


class Tried(msgspec.Struct, frozen=True):
    """Settings that were tried on a path. `rate` is in bytes/s; `problem` tells why they failed."""

    path: str
    settings: str
    rate: float
    problem: str | None = None


class Simulation(msgspec.Struct, frozen=True):
    """The simulated machine that is measured instead of the real machine.

    machine: The name of the simulated machine's description.
    description: The description, as YAML.
    faults: The faults to simulate, each in the grammar of `--fault`.
    draw: A number that selects the simulated noise. Another number gives other noise.
    passed: How many cells earlier runs measured: to faults and noise, the first cell's number."""

    machine: MachineName
    description: FreeText
    faults: tuple[Argument, ...] = ()
    draw: int = 0
    passed: int = 0


class Surroundings(msgspec.Struct, frozen=True):
    """The environment of worker processes.

    cpus: The CPUs that the processes (or the simulated machine) use; empty for all allowed CPUs.
    environment: Environment variables that differ from this process's; null for one to unset."""

    cpus: tuple[int, ...] = ()
    environment: dict[Variable, FreeText | None] = {}


class Budget(msgspec.Struct, frozen=True, omit_defaults=True):
    """The time that a run may take, in seconds.

    aim: The time for the whole run on a quiet machine, from opening the machine to the report.
    most: The limit for the whole run, even on a busy machine.
    passes: The time of measuring after which no cell is repeated for precision alone.
    measuring: The time of measuring after which no repetition of a cell begins at all.
    order: The order in which benchmarks get time, if the user gave a budget; else left out."""

    aim: float
    most: float
    passes: float
    measuring: float
    order: tuple[OwnName, ...] = ()


class Settings(msgspec.Struct, frozen=True):
    """The settings of a run.

    sizes: The sizes in bytes.
    profile: The name of the profile.
    precision: The relative precision at which a cell ends; 0 to sample for all of `max_time`.
    max_time: The longest time of sampling of a cell, in seconds.
    samples: The number of samples; null for an adaptive number.
    loops: The number of loops of a sample; null for an adaptive number.
    verify: Whether the bytes that arrive are compared.
    parallel_pairs: Whether disjoint pairs of devices are measured at the same time.
    engines: The settings of engines.
    timeout: Seconds after which a cell is abandoned; null to abandon a cell that makes no progress.
    pattern: The 64-bit word that one-way copies move; null for words that all differ.
    simulation: The simulated machine to measure instead; null to measure this machine.
    rate_time: Seconds that each cell of the search for primes takes, whatever the precision.
    surroundings: The environment of worker processes.
    profiler: The profiler that cells are measured under; null without a profiler.
    sample_pairs: The sample of pairs to measure; null for all pairs.
    soak: How long to repeat all cells, whatever the precision; null to measure them once."""

    sizes: tuple[int, ...]
    profile: OwnName = "standard"
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
        if cell.does.fills_time:
            return replace(self, max_time=self.rate_time, precision=0.0)
        if cell.runs is not None and self.samples is None:
            return replace(self, samples=cell.runs)
        return self

    def simulating(self, **changes: Any) -> Settings:
        """Returns the settings with changes in `simulation`, or unchanged if that is None."""
        return replace(self, simulation=self.simulation and replace(self.simulation, **changes))
