"""The options of all commands, each declared once, and groups of them.

A command's parameter is an option if its name is in `OPTIONS` or among the command's own (`@own`):
`max_time` is `--max-time`. A parameter of a group's type (`sampling: Sampling`, `form: RunFormat`)
stands for the options of the group. `expanded` turns it into a signature for typer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Annotated, Any, NamedTuple, TypeVar, get_origin, get_type_hints

import typer

from linkgauge.model.errors import InputError
from linkgauge.model.units import parse_duration
from linkgauge.report import formats
from linkgauge.report.formats import FORMATS, TERMINAL, Document, Format

from .help_text import COLLECTIVES, ENGINES, MACHINES, OTHER, OUTPUT, PRECISION, RUNS, WHAT

RunFormat = Annotated[Format, formats.RUN]
MachineFormat = Annotated[Format, formats.MACHINE]
FindingsFormat = Annotated[Format, formats.FINDINGS]
BenchmarksFormat = Annotated[Format, formats.BENCHMARKS]
ExportFormat = Annotated[Format, formats.SUMMARY]
ConditionFormat = Annotated[Format, formats.CONDITION]


def complete_machine(incomplete: str) -> list[str]:
    from linkgauge.backends.sim.description import shipped

    return [name for name in shipped() if name.startswith(incomplete)]


def complete_benchmark(incomplete: str) -> list[str]:
    from linkgauge.benchmarks.catalog import CATALOG

    return [name for name in CATALOG if name.startswith(incomplete)]


def list_faults(asked: bool) -> None:
    """Prints the grammar of faults, and exits."""
    if asked:
        FORMATS[TERMINAL].write(formats.FAULTS, None)
        raise typer.Exit


TIME = "TIME"
"""The value of every option that is a time: 5, 5s, 2m or 1h30m."""


def _seconds(flag: str, given: str | float) -> float:
    """What a person gave, or a default, in seconds. Raises InputError."""
    return parse_duration(given, flag) if isinstance(given, str) else given


class Option(NamedTuple):
    """`more` is passed to typer; `flag`, or several with blanks between them, is given if the
    parameter's name is not the option's; under `heading` the help shows it."""

    help: str
    metavar: str | None = None
    flag: str | None = None
    more: Mapping[str, Any] = {}
    heading: str = OTHER

    def annotate(self, name: str, kind: Any) -> Any:
        """The type of a parameter, annotated for typer. An option whose value is a TIME reads it
        as seconds."""
        flags = (self.flag or f"--{name.replace('_', '-')}").split()
        shown = {"metavar": self.metavar, "help": self.help, "rich_help_panel": self.heading}
        settings: dict[str, Any] = {**shown, **self.more}
        if self.metavar == TIME:
            settings["parser"] = partial(_seconds, flags[0])
        return Annotated[kind, typer.Option(*flags, **settings)]


def headed(heading: str, **declared: Option) -> dict[str, Option]:
    """The options, to be shown under this heading of the help."""
    return {name: option._replace(heading=heading) for name, option in declared.items()}


OPTIONS = {
    **headed(
        WHAT,
        backend=Option("Use only this backend: host, cuda, opencl or torch. Repeatable.", "NAME"),
        device=Option(
            "Use only this device: cuda:1, its index, UUID or PCI address. Repeatable.", "DEVICE"
        ),
        prefix=Option("Select the benchmarks whose names begin with TEXT. Repeatable.", "TEXT"),
        profile=Option(
            "Select what is measured, and how: quick (64 MiB, ±5%), standard (512 MiB, ±1%), "
            "full (four sizes, ±0.5%), or vm, which compares configurations of a virtual machine.",
            "quick|standard|full|vm",
        ),
        size=Option(
            "Move this many bytes: 4K, 512M, 1G, 0x100000. A sweep: 1K:1G:x2, 64K:1M:+64K.",
            "SIZE[,SIZE…]",
        ),
    ),
    **headed(
        PRECISION,
        samples=Option("Take exactly N samples, whatever the precision.", "N"),
        loops=Option("Make exactly N copies in each sample (else at least 20 ms of them).", "N"),
        precision=Option(
            "Sample until the 95% interval of the median is within this: 0.01 or 1%.", "P"
        ),
        max_time=Option("Sample each cell for at most this long: 5, 5s, 2m.", TIME),
        timeout=Option("Give up on a cell after this long: 60, 60s, 2m.", TIME),
        no_verify=Option("Do not compare the copied bytes."),
    ),
    **headed(
        OUTPUT,
        label=Option("Name the run (1 to 64 characters) and its folder.", "TEXT"),
        out=Option("Keep the run below this folder.", "DIR"),
        limits=Option("Fail the cells that miss the limits in this file (docs/expect.md).", "FILE"),
        utilization=Option("Also show percentages of the theoretical figures, and CPU use."),
        matrix=Option("Show a matrix for each benchmark, and all that is known of its figures."),
        whole=Option(
            "Show every figure, instead of a line for each benchmark; measure also OpenCL devices "
            "that are the host's processor.",
            flag="--all",
        ),
        no_report=Option(
            "Do not write report.html beside the results.",
            more={"envvar": "LINKGAUGE_NO_REPORT", "show_envvar": False},
        ),
        no_verdict=Option("Show figures only; the exit code ignores low cells and findings."),
    ),
    **headed(
        ENGINES,
        kernel=Option("Use this kernel for copies by sm (cuda).", "plain|bulk"),
        blocks=Option("Launch kernels with N blocks (cuda).", "N"),
        threads=Option("Launch kernels with N threads in each block (cuda).", "N"),
        streams=Option("Split each copy by ce over N streams (cuda).", "N"),
        untuned=Option("Ignore the settings that earlier runs found fastest, on GPUs and host."),
        no_affinity=Option("Let the controlling thread run on any CPU."),
        host_kernel=Option("Use this kernel for host threads, wherever it can be used.", "NAME"),
    ),
    **headed(
        MACHINES,
        machine=Option(
            "Use a simulated machine, such as ppu-8, instead of this one.",
            "NAME|FILE.yml",
            more={"autocompletion": complete_machine},
        ),
        fault=Option(
            "Break the simulated machine in this way: see linkgauge run --list-faults. Repeatable.",
            "FAULT",
        ),
        list_faults=Option(
            "List what --fault accepts.", more={"is_eager": True, "callback": list_faults}
        ),
        root=Option(
            "Read a captured machine: its folder, or a file from linkgauge capture.",
            "DIR|FILE.tgz",
        ),
    ),
    **headed(
        COLLECTIVES,
        types=Option("Use these types of numbers, such as float,half, or all.", "TYPE[,TYPE…]"),
        reductions=Option(
            "Use these reductions, or all: sum, prod, max, min, avg, mulsum.", "OP[,OP…]"
        ),
        roots=Option("Use these ranks as the root, where a collective has one.", "RANK[,RANK…]"),
        split=Option("Run groups of ranks at the same time: MOD 2, DIV 4.", "HOW"),
        aggregate=Option("Issue N calls in one group of calls.", "N"),
        blocking=Option("Wait for each call to finish."),
        graphed=Option("Launch the calls as a CUDA graph."),
        registered=Option("Register the buffers with NCCL.", "local|symmetric"),
    ),
    **headed(
        RUNS,
        wait=Option("Wait while another run measures one of the devices."),
        nsys=Option("Measure under Nsight Systems, and keep its files with the run."),
        ncu=Option("Measure under Nsight Compute, and keep its files with the run."),
    ),
}
_C = TypeVar("_C", bound=Callable[..., int])


def own(**declared: Option) -> Callable[[_C], _C]:
    """Options that only this command has, or that differ here from other commands."""

    def declare(command: _C) -> _C:
        command.own = declared  # type: ignore[attr-defined]
        return command

    return declare


class Sampling(NamedTuple):
    """How much is measured of each cell."""

    samples: int | None = None
    loops: int | None = None
    precision: str | None = None
    max_time: float | None = None
    timeout: float | None = None
    no_verify: bool = False


class Shape(NamedTuple):
    """How devices copy."""

    kernel: str | None = None
    blocks: int | None = None
    threads: int | None = None
    streams: int | None = None
    untuned: bool = False
    no_affinity: bool = False


class Collecting(NamedTuple):
    """Which collectives are measured, and how they are called."""

    types: str | None = None
    reductions: str | None = None
    roots: str | None = None
    split: str | None = None
    aggregate: int | None = None
    blocking: bool = False
    graphed: bool = False
    registered: str | None = None


class Simulated(NamedTuple):
    """What is measured instead of this machine."""

    machine: str | None = None
    fault: list[str] | None = None


class Profiling(NamedTuple):
    """What is to watch the measuring."""

    nsys: bool = False
    ncu: bool = False


class _OptionGroup(NamedTuple):
    """Parameters that stand for one value, which `make` builds from their values by name."""

    parameters: tuple[inspect.Parameter, ...]
    make: Callable[..., Any]


def _group_of(annotation: Any) -> _OptionGroup | None:
    """The group of a parameter that stands for several options; None for any other."""
    if isinstance(annotation, type) and issubclass(annotation, tuple):
        return _fields_of(annotation)
    if get_origin(annotation) is Annotated and annotation.__origin__ is Format:
        return _flags_of(*annotation.__metadata__)
    return None


def _fields_of(kind: Any) -> _OptionGroup:
    hints = get_type_hints(kind)
    fields = kind._field_defaults.items()
    return _OptionGroup(tuple(_parameter(name, hints[name], value) for name, value in fields), kind)


def _flags_of(document: Document) -> _OptionGroup:
    """A flag for each format that the document has; the value is the requested format, else the
    terminal's."""
    able = [form for form in FORMATS.values() if form.is_document and document.has(form)]
    flags = {form.name: form for form in able}

    def choose(**given: bool) -> Format:
        asked = [flags[name] for name, is_given in given.items() if is_given]
        if len(asked) > 1:
            names = " and ".join(form.flag for form in asked)
            raise InputError(f"{names} both want stdout: choose one")
        return asked[0] if asked else FORMATS[TERMINAL]

    parameters = (
        _parameter(form.name, Option(form.help, heading=OUTPUT).annotate(form.name, bool), False)
        for form in able
    )
    return _OptionGroup(tuple(parameters), choose)


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def expanded(command: Callable[..., int]) -> Callable[..., int]:
    """The command as typer reads it: with an option for each option parameter, and with the options
    of its groups in the groups' places."""
    declared = OPTIONS | getattr(command, "own", {})
    parameters: list[inspect.Parameter] = []
    groups: dict[str, _OptionGroup] = {}
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        if (group := _group_of(parameter.annotation)) is None:
            parameters.append(parameter)
        else:
            groups[name] = group
            parameters += group.parameters
    parameters = [
        one.replace(annotation=declared[one.name].annotate(one.name, one.annotation))
        if one.name in declared
        else one
        for one in parameters
    ]

    @wraps(command)
    def run(**given: Any) -> int:
        for name, group in groups.items():
            given[name] = group.make(**{one.name: given.pop(one.name) for one in group.parameters})
        return command(**given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
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
    """Raises InputError for a number that its type (Threads, for example) does not allow."""
    import msgspec

    try:
        return msgspec.convert(value, kind | None)  # type: ignore[no-any-return]
    except msgspec.ValidationError:
        raise InputError(f"{name} {value}: give {kind.__metadata__[0].description}") from None
