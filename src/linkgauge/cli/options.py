"""The options that several commands share, and what they mean for a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from linkgauge.model.errors import InputError


def complete_machine(incomplete: str) -> list[str]:
    from linkgauge.backends.sim.description import shipped

    return [name for name in shipped() if name.startswith(incomplete)]


def list_faults(asked: bool) -> None:
    """Shows the grammar of faults, and ends."""
    if asked:
        from linkgauge.report.faults import print_faults

        print_faults()
        raise typer.Exit


Backends = Annotated[
    list[str] | None,
    typer.Option(
        "--backend", metavar="NAME", help="Only this backend: host, cuda, opencl. Repeatable."
    ),
]
Devices = Annotated[
    list[str] | None,
    typer.Option(
        "--device",
        metavar="DEVICE",
        help="Only this device: cuda:1, its index, UUID or PCI address. Repeatable.",
    ),
]
Profile = Annotated[
    str,
    typer.Option(
        "--profile",
        metavar="quick|standard|full",
        help="quick: 64 MiB, ±5%; standard: 512 MiB, ±1%; full: four sizes, ±0.5%.",
    ),
]
Size = Annotated[
    str | None,
    typer.Option("--size", metavar="SIZE[,SIZE…]", help="Bytes to move: 4K, 512M, 1G, 0x100000."),
]
Samples = Annotated[
    int | None,
    typer.Option("--samples", metavar="N", help="Exactly N samples, whatever the precision."),
]
Loops = Annotated[
    int | None,
    typer.Option("--loops", metavar="N", help="Exactly N copies a sample (else ≥ 20 ms of them)."),
]
Precision = Annotated[
    str | None,
    typer.Option(
        "--precision",
        metavar="P",
        help="Sample until the median's 95% interval is within this: 0.01 or 1%.",
    ),
]
MaxTime = Annotated[
    float | None,
    typer.Option("--max-time", metavar="SECONDS", help="At most this long sampling a cell."),
]
NoVerify = Annotated[bool, typer.Option("--no-verify", help="Do not compare the bytes copied.")]
Label = Annotated[
    str, typer.Option("--label", metavar="TEXT", help="What this run is of; names its folder.")
]
Json = Annotated[bool, typer.Option("--json", help="The document on stdout, all else on stderr.")]
Csv = Annotated[bool, typer.Option("--csv", help="Raw samples on stdout, all else on stderr.")]
Out = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Where runs are kept.", file_okay=True)
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout", metavar="SECONDS", help="Give a cell up that takes longer than this in all."
    ),
]
Machine = Annotated[
    str | None,
    typer.Option(
        "--machine",
        metavar="NAME|FILE.yml",
        help="SIMULATED: measure a described machine, such as ppu-8, instead of this one.",
        autocompletion=complete_machine,
    ),
]
Faults = Annotated[
    list[str] | None,
    typer.Option(
        "--fault",
        metavar="FAULT",
        help="What is to go wrong with it: see linkgauge run --list-faults. Repeatable.",
    ),
]
ListFaults = Annotated[
    bool,
    typer.Option(
        "--list-faults", is_eager=True, callback=list_faults, help="Show what --fault takes."
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option("--resume", metavar="FOLDER", help="Go on with the run in this folder."),
]
Hardware = Annotated[
    Path | None,
    typer.Option(
        "--hardware", metavar="FILE", help="hardware.yml: what the machine cannot know of itself."
    ),
]
Limits = Annotated[
    Path | None,
    typer.Option(
        "--limits",
        metavar="FILE",
        help="Fail cells below these limits (limits.yml: docs/expect.md).",
    ),
]
Utilization = Annotated[
    bool,
    typer.Option("--utilization", help="Also show figures in percent of the theoretical ones."),
]
Wait = Annotated[
    bool, typer.Option("--wait", help="Wait where another run measures one of the devices.")
]


Kernel = Annotated[
    str | None,
    typer.Option("--kernel", metavar="plain|bulk", help="Copies by sm (cuda): which kernel."),
]
Blocks = Annotated[
    int | None, typer.Option("--blocks", metavar="N", help="Blocks of a kernel's grid (cuda).")
]
Threads = Annotated[
    int | None, typer.Option("--threads", metavar="N", help="Threads of a kernel's block (cuda).")
]
Streams = Annotated[
    int | None,
    typer.Option("--streams", metavar="N", help="Split each copy by ce over N streams (cuda)."),
]
Untuned = Annotated[
    bool,
    typer.Option("--untuned", help="Use nothing that was remembered as fastest: GPUs' and host's."),
]
HostKernel = Annotated[
    str | None,
    typer.Option(
        "--host-kernel", metavar="NAME", help="Host threads: this kernel, wherever it can be used."
    ),
]
NoAffinity = Annotated[
    bool,
    typer.Option("--no-affinity", help="Leave the controlling thread on any CPU."),
]
NumaNode = Annotated[
    int | None,
    typer.Option(
        "--numa-node", metavar="N", help="Host memory on this node, not on the device's own."
    ),
]


MOST = 10**9


def at_least_one(name: str, value: int | None) -> int | None:
    """Raises InputError for a count that is not from 1 to a thousand million."""
    if value is not None and value < 1:
        raise InputError(f"{name} {value} is too few: give 1 or more")
    if value is not None and value > MOST:
        raise InputError(f"{name} {value} is too many: give at most {MOST}")
    return value


def within(name: str, value: int | None, kind: Any) -> int | None:
    """Raises InputError for a number that its type (Threads, say) does not take."""
    import msgspec

    try:
        return msgspec.convert(value, kind | None)  # type: ignore[no-any-return]
    except msgspec.ValidationError:
        raise InputError(f"{name} {value}: give {kind.__metadata__[0].description}") from None
