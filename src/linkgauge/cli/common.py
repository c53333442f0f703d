"""Defines options that several commands share, alone or in groups."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from linkgauge.model.errors import InputError
from linkgauge.registry import deferred, named
from linkgauge.report import formats
from linkgauge.report.formats import Format

from .help_text import COLLECTIVES, ENGINES, MACHINES, OUTPUT, PRECISION, RUNS, WHAT
from .options import Count, Options, Time, instead, option

if TYPE_CHECKING:
    from linkgauge.judge.limits import Limit
    from linkgauge.model.documents.expected import Waiver
    from linkgauge.model.documents.result import Run
    from linkgauge.model.settings import Simulation

RunFormat = Annotated[Format, formats.RUN]
MachineFormat = Annotated[Format, formats.MACHINE]
FindingsFormat = Annotated[Format, formats.FINDINGS]
BenchmarksFormat = Annotated[Format, formats.BENCHMARKS]
ExportFormat = Annotated[Format, formats.SUMMARY]


_BACKENDS = ", ".join(dict.fromkeys(("host", "cuda", "opencl", *named("backends"))))
"""The backends, with those of plug-ins, whose code is not loaded for their names."""
BACKEND = option(WHAT, f"Use only this backend: {_BACKENDS} or torch. Repeatable.", "NAME")
DEVICE = option(
    WHAT,
    "Use only this device: cuda:1, its index, UUID or PCI address. Repeatable.",
    "DEVICE",
    offer=deferred("linkgauge.cli.proposals:devices"),
)
PREFIX = option(WHAT, "Select the benchmarks whose names begin with TEXT. Repeatable.", "TEXT")
SIZE = option(
    WHAT,
    "Move this many bytes: 4K, 512M, 1G, 0x100000. A sweep: 1K:1G:x2, 64K:1M:+64K.",
    "SIZE[,SIZE…]",
)
TIMEOUT = option(PRECISION, "Give up on a cell after this long: 60, 60s, 2m.", "TIME")
NO_VERIFY = option(PRECISION, "Do not compare the copied bytes.")
OUT = option(OUTPUT, "Keep the run below this folder.", "DIR")
RUNS_BELOW = option(OUTPUT, "Keep runs below this folder.", "DIR", default=Path("results"))
LIMITS = option(
    OUTPUT,
    "Fail the cells that miss the limits in this file (docs/limits.md).",
    "FILE",
    is_input=True,
)
WAIVERS_FILE = Path("/etc/linkgauge/waivers.yml")
"""Read beside the file that the user names, if it exists."""
WAIVERS = option(
    OUTPUT,
    "Accept the findings that this file and /etc/linkgauge/waivers.yml name (docs/waivers.md).",
    "FILE",
    is_input=True,
    envvar="LINKGAUGE_WAIVERS",
)
UTILIZATION = option(OUTPUT, "Also show percentages of the theoretical figures, and CPU use.")
MATRIX = option(OUTPUT, "Show each benchmark as a matrix, with percentiles and expected figures.")
WHOLE = option(
    OUTPUT,
    "Show every figure, instead of a line for each benchmark; also measure OpenCL devices "
    "that are the host's processor.",
    flags="--all",
)
VERBOSE = option(
    OUTPUT,
    "Also show notes, what was skipped and why, and what the figures cannot show.",
    flags="-v --verbose",
)
NO_REPORT = option(
    OUTPUT, "Do not write report.html beside the results.", envvar="LINKGAUGE_NO_REPORT"
)
NO_VERDICT = option(OUTPUT, "Show figures only; the exit code ignores low cells and findings.")
UNTUNED = option(ENGINES, "Ignore the settings that earlier runs found fastest, on GPUs and host.")
HOST_KERNEL = option(
    ENGINES, "Use this copy loop for host threads, wherever it can be used.", "NAME"
)
FAULT = option(
    MACHINES,
    "Break the simulated machine in this way: see linkgauge run --list-faults. Repeatable.",
    "FAULT",
    offer=deferred("linkgauge.cli.proposals:faults"),
)
ROOT = option(
    MACHINES,
    "Read a captured machine: its folder, or a file from linkgauge capture.",
    "DIR|FILE.tgz",
    is_input=True,
)
WAIT = option(RUNS, "Wait while another run measures one of the devices.")


def machine_option(**more: Any) -> Any:
    return option(
        MACHINES,
        'Use a simulated machine, such as ppu-8, "8 x H100" or topo.txt, instead of this one.',
        "NAME|FILE.yml",
        offer=deferred("linkgauge.cli.proposals:machine_names"),
        is_input=True,
        **more,
    )


MACHINE = machine_option()


def label(default: str) -> Any:
    return option(
        OUTPUT, "Name the run (1 to 64 characters) and its folder.", "TEXT", default=default
    )


def history(heading: str) -> Any:
    return option(
        heading,
        "Use this history instead of the one of LINKGAUGE_HISTORY or of the data folder.",
        "URL|FILE",
        is_input=True,
    )


def profile(default: str) -> Any:
    return option(
        WHAT,
        "Select what is measured, and how: quick (64 MiB, ±5%), standard (512 MiB, ±1%), "
        "full (four sizes, ±0.5%), or vm, which compares configurations of a virtual machine.",
        "quick|standard|full|vm",
        default=default,
    )


class Sampling(Options):
    samples: Count | None = option(
        PRECISION, "Take exactly N samples, whatever the precision.", "N"
    )
    loops: Count | None = option(
        PRECISION, "Make exactly N copies in each sample (else at least 20 ms of them).", "N"
    )
    precision: str | None = option(
        PRECISION, "Sample until the 95% interval of the median is within this: 0.01 or 1%.", "P"
    )
    max_time: Time | None = option(
        PRECISION, "Sample each cell for at most this long: 5, 5s, 2m.", "TIME"
    )
    timeout: Time | None = TIMEOUT
    no_verify: bool = NO_VERIFY


class Shape(Options):
    kernel: Literal["plain", "bulk"] | None = option(
        ENGINES, "Use this kernel for copies by sm (cuda).", "plain|bulk"
    )
    blocks: int | None = option(ENGINES, "Launch kernels with N blocks (cuda).", "N")
    threads: int | None = option(
        ENGINES, "Launch kernels with N threads in each block (cuda).", "N"
    )
    streams: int | None = option(ENGINES, "Split each copy by ce over N streams (cuda).", "N")
    untuned: bool = UNTUNED
    no_affinity: bool = option(ENGINES, "Let the controlling thread run on any CPU.")


class CollectiveOptions(Options):
    types: str | None = option(
        COLLECTIVES, "Use these types of numbers, such as float,half, or all.", "TYPE[,TYPE…]"
    )
    reductions: str | None = option(
        COLLECTIVES, "Use these reductions, or all: sum, prod, max, min, avg, mulsum.", "OP[,OP…]"
    )
    roots: str | None = option(
        COLLECTIVES, "Use these ranks as the root, where a collective has one.", "RANK[,RANK…]"
    )
    split: str | None = option(
        COLLECTIVES, "Run groups of ranks at the same time: MOD 2, DIV 4.", "HOW"
    )
    aggregate: Count | None = option(COLLECTIVES, "Issue N calls in one group of calls.", "N")
    blocking: bool = option(COLLECTIVES, "Wait for each call to finish.")
    graphed: bool = option(COLLECTIVES, "Launch the calls as a CUDA graph.")
    registered: Literal["local", "symmetric"] | None = option(
        COLLECTIVES, "Register the buffers with NCCL.", "local|symmetric"
    )


class Simulated(Options):
    machine: str | None = MACHINE
    fault: tuple[str, ...] = FAULT
    change: str | None = option(
        MACHINES,
        "Change parts of the simulated machine, such as 'fabric=none gpus=8 pcie=4x16 nodes=1'. "
        "`linkgauge run` also shows what that makes faster or slower (docs/what-if.md).",
        "PART=VALUE…",
        is_input=True,
    )

    def simulation(self) -> Simulation | None:
        return simulation_of(self.machine, self.fault, self.change)


class SimulatedOrListed(Simulated):
    list_faults: bool = instead(
        MACHINES,
        "List what --fault accepts.",
        lambda: formats.formats()[formats.TERMINAL].write(formats.FAULTS, None),
    )


class Profiling(Options):
    nsys: bool = option(RUNS, "Measure under Nsight Systems, and keep its files with the run.")
    ncu: bool = option(RUNS, "Measure under Nsight Compute, and keep its files with the run.")


def limits_in(file: Path | None) -> tuple[Limit, ...]:
    if file is None:
        return ()
    from linkgauge.judge.limits import read_limits

    return read_limits(file)


def waivers_in(file: Path | None) -> tuple[Waiver, ...]:
    """Reads the waivers in WAIVERS_FILE and in `file`. Raises InputError if a file is wrong."""
    files = [WAIVERS_FILE] if WAIVERS_FILE.exists() else []
    files += [] if file is None else [file]
    if not files:
        return ()
    from linkgauge.judge.waivers import read_waivers

    return read_waivers(*files)


def with_waivers(run: Run, waivers: tuple[Waiver, ...]) -> Run:
    """Returns the run with `waivers` instead of those that it recorded; unchanged without any."""
    from msgspec.structs import replace

    return replace(run, waivers=waivers) if waivers else run


def simulation_of(
    machine: str | None, faults: Sequence[str] | None = None, change: str | None = None
) -> Simulation | None:
    """Returns the simulation of a machine, if given. Raises InputError for wrong options."""
    if machine is None:
        if faults or change:
            flag, which = ("--fault", "") if faults else ("--change", " (mine: this one)")
            raise InputError(f"{flag} needs a simulated machine{which}: give --machine, too")
        return None
    from linkgauge.backends.sim.machine import described

    return described(machine, faults or (), change)
