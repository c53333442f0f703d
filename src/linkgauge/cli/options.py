"""The options of all commands, each declared once, and groups of them.

A command's parameter is an option if its name is in `OPTIONS` or among the command's own (`@own`):
`max_time` is `--max-time`. A parameter of a group's type (`sampling: Sampling`, `form: RunFormat`)
stands for the options of the group. `expanded` turns it into a signature for typer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any, NamedTuple, TypeVar, get_origin, get_type_hints

import typer

from linkgauge.model.errors import InputError
from linkgauge.report.formats import TERMINAL, Format, Kind, formats

RunFormat = Annotated[Format, "run"]
MachineFormat = Annotated[Format, "machine"]
FindingsFormat = Annotated[Format, "findings"]
DomainFormat = Annotated[Format, "domain"]
BenchmarksFormat = Annotated[Format, "benchmarks"]
VariationFormat = Annotated[Format, "variation"]
ScalingFormat = Annotated[Format, "scaling"]
ExportFormat = Annotated[Format, "summary"]


def complete_machine(incomplete: str) -> list[str]:
    from linkgauge.backends.sim.description import shipped

    return [name for name in shipped() if name.startswith(incomplete)]


def complete_benchmark(incomplete: str) -> list[str]:
    from linkgauge.benchmarks.catalog import CATALOG

    return [name for name in CATALOG if name.startswith(incomplete)]


def list_faults(asked: bool) -> None:
    """Prints the grammar of faults, and exits."""
    if asked:
        from linkgauge.report.fault_list import print_faults

        print_faults()
        raise typer.Exit


class Option(NamedTuple):
    """`more` is passed to typer; `flag` is given if the parameter's name is not the option's."""

    help: str
    metavar: str | None = None
    flag: str | None = None
    more: Mapping[str, Any] = {}

    def annotate(self, name: str, kind: Any) -> Any:
        """The type of a parameter, annotated for typer."""
        flag = self.flag or f"--{name.replace('_', '-')}"
        return Annotated[
            kind, typer.Option(flag, metavar=self.metavar, help=self.help, **self.more)
        ]


OPTIONS = {
    "backend": Option("Only this backend: host, cuda, opencl. Repeatable.", "NAME"),
    "device": Option(
        "Only this device: cuda:1, its index, UUID or PCI address. Repeatable.", "DEVICE"
    ),
    "prefix": Option("Benchmarks that begin so. Repeatable.", "TEXT"),
    "profile": Option(
        "quick: 64 MiB, ±5%; standard: 512 MiB, ±1%; full: four sizes, ±0.5%; vm: to compare "
        "configurations of a virtual machine.",
        "quick|standard|full|vm",
    ),
    "size": Option(
        "Bytes to move: 4K, 512M, 1G, 0x100000; a sweep: 1K:1G:x2, 64K:1M:+64K.", "SIZE[,SIZE…]"
    ),
    "samples": Option("Exactly N samples, whatever the precision.", "N"),
    "loops": Option("Exactly N copies a sample (else ≥ 20 ms of them).", "N"),
    "precision": Option("Sample until the median's 95% interval is within this: 0.01 or 1%.", "P"),
    "max_time": Option("At most this long sampling a cell.", "SECONDS"),
    "timeout": Option("Give a cell up that takes longer than this in all.", "SECONDS"),
    "no_verify": Option("Do not compare the bytes copied."),
    "label": Option("What this run is of; names its folder.", "TEXT"),
    "out": Option("Keep the run below this folder.", "DIR"),
    "kernel": Option("Copies by sm (cuda): which kernel.", "plain|bulk"),
    "blocks": Option("Blocks of a kernel's grid (cuda).", "N"),
    "threads": Option("Threads of a kernel's block (cuda).", "N"),
    "streams": Option("Split each copy by ce over N streams (cuda).", "N"),
    "untuned": Option("Use nothing that was remembered as fastest: GPUs' and host's."),
    "no_affinity": Option("Leave the controlling thread on any CPU."),
    "host_kernel": Option("Host threads: this kernel, wherever it can be used.", "NAME"),
    "limits": Option("Fail cells below these limits (limits.yml: docs/expect.md).", "FILE"),
    "utilization": Option("Also show percent of the theoretical figures, and CPUs used."),
    "no_verdict": Option("Figures only: exit codes ignore what is low and what the doctor finds."),
    "machine": Option(
        "SIMULATED: measure a described machine, such as ppu-8, instead of this one.",
        "NAME|FILE.yml",
        more={"autocompletion": complete_machine},
    ),
    "fault": Option(
        "What is to go wrong with it: see linkgauge run --list-faults. Repeatable.", "FAULT"
    ),
    "list_faults": Option(
        "Show what --fault takes.", more={"is_eager": True, "callback": list_faults}
    ),
    "root": Option(
        "A captured machine instead of this one: its folder, or what `capture` wrote.",
        "DIR|FILE.tgz",
    ),
    "types": Option("Collectives: types of numbers, or all: float,half.", "TYPE[,TYPE…]"),
    "reductions": Option("Collectives: sum, prod, max, min, avg, mulsum, or all.", "OP[,OP…]"),
    "roots": Option("Collectives with a root: these ranks.", "RANK[,RANK…]"),
    "split": Option("Collectives: groups of ranks at the same time: MOD 2, DIV 4.", "HOW"),
    "aggregate": Option("Collectives: N calls in one group of calls.", "N"),
    "blocking": Option("Collectives: wait for each."),
    "graphed": Option("Collectives: launch them as a CUDA graph."),
    "registered": Option("Collectives: register buffers with NCCL.", "local|symmetric"),
    "wait": Option("Wait where another run measures one of the devices."),
    "nsys": Option("Measure under Nsight Systems; keep its files with the run."),
    "ncu": Option("Measure under Nsight Compute; keep its files with the run."),
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


def _flags_of(kind: Kind) -> _OptionGroup:
    """A flag for each format that can render this, that with the most renderers first; the value is
    the requested format, else the terminal's."""
    able = [form for form in formats().values() if kind in form.renderers]
    flags = {form.name: form for form in able if form.is_document}

    def choose(**given: bool) -> Format:
        asked = [flags[name] for name, is_given in given.items() if is_given]
        if len(asked) > 1:
            names = " and ".join(form.flag for form in asked)
            raise InputError(f"{names} both want stdout: choose one")
        return asked[0] if asked else formats()[TERMINAL]

    parameters = (
        _parameter(form.name, Option(form.help).annotate(form.name, bool), False)
        for form in sorted(flags.values(), key=lambda form: -len(form.renderers))
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
