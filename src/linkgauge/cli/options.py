"""The options that several commands share, each declared once: one by one, or in groups.

A parameter of a group's type (`sampling: Sampling`, `form: RunFormat`) stands for the options of
the group, at its place; `expanded` makes the command that typer sees.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_origin, get_type_hints

import typer

from linkgauge.model.errors import InputError
from linkgauge.report.formats import TERMINAL, Format, Kind, formats


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
Label = Annotated[
    str, typer.Option("--label", metavar="TEXT", help="What this run is of; names its folder.")
]
Out = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Where runs are kept.", file_okay=True)
]
RunFormat = Annotated[Format, "run"]
MachineFormat = Annotated[Format, "machine"]
FindingsFormat = Annotated[Format, "findings"]
BenchmarksFormat = Annotated[Format, "benchmarks"]
Keep = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Keep the run below this folder.")
]
Prefix = Annotated[
    list[str] | None,
    typer.Option("--prefix", metavar="TEXT", help="Benchmarks that begin so. Repeatable."),
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
NumaNode = Annotated[
    int | None,
    typer.Option(
        "--numa-node", metavar="N", help="Host memory on this node, not on the device's own."
    ),
]


class Sampling(NamedTuple):
    """How much is measured of each cell."""

    samples: Annotated[
        int | None,
        typer.Option("--samples", metavar="N", help="Exactly N samples, whatever the precision."),
    ] = None
    loops: Annotated[
        int | None,
        typer.Option(
            "--loops", metavar="N", help="Exactly N copies a sample (else ≥ 20 ms of them)."
        ),
    ] = None
    precision: Annotated[
        str | None,
        typer.Option(
            "--precision",
            metavar="P",
            help="Sample until the median's 95% interval is within this: 0.01 or 1%.",
        ),
    ] = None
    max_time: Annotated[
        float | None,
        typer.Option("--max-time", metavar="SECONDS", help="At most this long sampling a cell."),
    ] = None
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            help="Give a cell up that takes longer than this in all.",
        ),
    ] = None
    no_verify: Annotated[
        bool, typer.Option("--no-verify", help="Do not compare the bytes copied.")
    ] = False


class Shape(NamedTuple):
    """How devices copy."""

    kernel: Annotated[
        str | None,
        typer.Option("--kernel", metavar="plain|bulk", help="Copies by sm (cuda): which kernel."),
    ] = None
    blocks: Annotated[
        int | None, typer.Option("--blocks", metavar="N", help="Blocks of a kernel's grid (cuda).")
    ] = None
    threads: Annotated[
        int | None,
        typer.Option("--threads", metavar="N", help="Threads of a kernel's block (cuda)."),
    ] = None
    streams: Annotated[
        int | None,
        typer.Option("--streams", metavar="N", help="Split each copy by ce over N streams (cuda)."),
    ] = None
    untuned: Untuned = False
    no_affinity: Annotated[
        bool, typer.Option("--no-affinity", help="Leave the controlling thread on any CPU.")
    ] = False


class Simulated(NamedTuple):
    """What is measured instead of this machine."""

    machine: Machine = None
    fault: Faults = None


class Group(NamedTuple):
    """Options that stand for one value, which `make` forms of theirs by their names."""

    options: tuple[inspect.Parameter, ...]
    make: Callable[..., Any]


def _group_of(annotation: Any) -> Group | None:
    """Of a parameter that stands for several options; None of any other."""
    if isinstance(annotation, type) and issubclass(annotation, tuple):
        return _fields_of(annotation)
    if get_origin(annotation) is Annotated and annotation.__origin__ is Format:
        return _flags_of(*annotation.__metadata__)
    return None


def _fields_of(kind: Any) -> Group:
    hints = get_type_hints(kind, include_extras=True)
    fields = kind._field_defaults.items()
    return Group(tuple(_option(name, hints[name], value) for name, value in fields), kind)


def _flags_of(kind: Kind) -> Group:
    """A flag for each format that renders this, what renders most first; the value is the format
    asked for, else the terminal's."""
    able = [form for form in formats().values() if kind in form.renderers]
    flags = {form.name: form for form in able if form.is_document}

    def choose(**given: bool) -> Format:
        asked = [flags[name] for name, is_given in given.items() if is_given]
        if len(asked) > 1:
            names = " and ".join(form.flag for form in asked)
            raise InputError(f"{names} both want stdout: choose one")
        return asked[0] if asked else formats()[TERMINAL]

    options = (
        _option(form.name, Annotated[bool, typer.Option(form.flag, help=form.help)], False)
        for form in sorted(flags.values(), key=lambda form: -len(form.renderers))
    )
    return Group(tuple(options), choose)


def _option(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def expanded(command: Callable[..., int]) -> Callable[..., int]:
    """The command with the options of its groups in the groups' places."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Group] = {}
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        if (group := _group_of(parameter.annotation)) is None:
            parameters.append(parameter)
        else:
            groups[name] = group
            parameters += group.options

    @wraps(command)
    def run(**given: Any) -> int:
        for name, group in groups.items():
            own = {option.name: given.pop(option.name) for option in group.options}
            given[name] = group.make(**own)
        return command(**given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


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
