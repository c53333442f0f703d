"""Defines the named experiments of `linkgauge vary`. An experiment stands for a command line that
answers one question. Users could also type this command line."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import click
from rich.text import Text

from linkgauge.model.errors import InputError
from linkgauge.model.names import hint
from linkgauge.report.console import make_console
from linkgauge.report.formats import Format

EACH_NODE = "each"
"""The word that stands for each NUMA node of the machine."""
LIST = "list"
"""The name of the experiment that lists the others."""
_TO_AND_FRO = ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce")
_BETWEEN = ("device_to_device_memcpy_read_ce", "device_to_device_memcpy_write_ce")


class NamedExperiment(NamedTuple):
    """A named experiment. `question` is what it answers. `options` has the values of each option;
    if there are several, the first is the baseline."""

    question: str
    benchmarks: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]


EXPERIMENTS: Mapping[str, NamedExperiment] = {
    "pinned": NamedExperiment(
        "What does it cost that host memory is not pinned?",
        _TO_AND_FRO,
        {"--memory": ("pinned", "pageable")},
    ),
    "write-combined": NamedExperiment(
        "What do devices gain by write-combined host memory?",
        _TO_AND_FRO,
        {"--memory": ("pinned", "wc")},
    ),
    "mapped": NamedExperiment(
        "From which size on is a copy better than a kernel that accesses host memory in place?",
        _TO_AND_FRO,
        {"--memory": ("mapped",), "--engine": ("sm", "ce"), "--size": ("4K:16M:x4",)},
    ),
    "managed": NamedExperiment(
        "What does managed memory cost copy engines, and kernels that access it in place?",
        (*_TO_AND_FRO, "host_to_device_memcpy_sm", "device_to_host_memcpy_sm"),
        {"--memory": ("pinned", "managed")},
    ),
    "pages": NamedExperiment(
        "What do huge pages gain, of host threads and of devices?",
        ("host_to_host_memcpy_copy_cpu", *_TO_AND_FRO),
        {"--memory": ("base", "thp", "hugetlb")},
    ),
    "node": NamedExperiment(
        "What does it cost a device that host memory is not on the node near it?",
        _TO_AND_FRO,
        {"--numa-node": ("near", EACH_NODE)},
    ),
    "streams": NamedExperiment(
        "Over how many streams is a copy the fastest?",
        _TO_AND_FRO,
        {"--streams": ("1", "2", "4", "8", "16")},
    ),
    "engine": NamedExperiment(
        "Which paths do kernels copy over faster than copy engines?",
        (*_TO_AND_FRO, *_BETWEEN),
        {"--engine": ("ce", "sm")},
    ),
    "graph": NamedExperiment(
        "What does it cost or save to launch a kernel as a graph?",
        ("latency_launch",),
        {"--graph": ("off", "on")},
    ),
}


def carry_out_named(name: str, form: Format) -> int:
    """Shows the command line of an experiment, and carries it out."""
    if name == LIST:
        return _list_all()
    words = words_of(name)
    console = make_console(stderr=form.is_document)
    console.print(Text(EXPERIMENTS[name].question, "bold"))
    console.print(Text(shlex.join(("linkgauge", "vary", *words))))
    console.print()
    with typed(words) as context:
        return int(context.command.invoke(context))


def typed(words: Sequence[str]) -> click.Context:
    """The context of the current command with these words as its command line."""
    context = click.get_current_context()
    return context.command.make_context(
        context.info_name, list(words), parent=context.parent, obj=context.obj
    )


def words_of(name: str) -> tuple[str, ...]:
    """The words of the experiment's command line. Options that the user typed replace those of the
    experiment. Raises InputError for an unknown name, or if the experiment does not suit the
    machine."""
    if name not in EXPERIMENTS:
        raise InputError(f"unknown experiment {name!r}{hint(name, EXPERIMENTS)}")
    context, asked = click.get_current_context(), EXPERIMENTS[name]
    given = dict(_given(context))
    benchmarks = given.pop("", asked.benchmarks if "--prefix" not in given else ())
    own = {option: each for option, each in asked.options.items() if option not in given}
    if EACH_NODE in own.get("--numa-node", ()):
        own["--numa-node"] = ("near", *_each_node(name, context.params["machine"]))
    return (*benchmarks, *_words(own | given))


def _each_node(name: str, machine: str | None) -> Iterator[str]:
    """Yields the NUMA nodes of the host, or of a simulated machine."""
    from linkgauge.cli.simulation import simulation_of

    from .settings import host_of

    nodes = host_of(simulation_of(machine)).nodes
    if len(nodes) < 2:
        whose = f"{machine} has" if machine is not None else "this machine has"
        raise InputError(f"experiment {name!r}: {whose} one NUMA node, so no memory is far")
    yield from (str(node.index) for node in nodes)


def _words(options: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Yields the words of options with their values. An option without values is a flag."""
    for option, values in options.items():
        yield from (word for value in values for word in (option, value)) if values else (option,)


def _given(context: click.Context) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields the options that were typed in addition to the experiment's name, each with its
    values. The name of the benchmarks is empty."""
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if name == "experiment" or source is None or source.name != "COMMANDLINE":
            continue
        option = "" if parameter.param_type_name == "argument" else parameter.opts[0]
        value = context.params[name]
        values = value if isinstance(value, list | tuple) else (value,)
        yield option, () if value is True else tuple(map(str, values))


def _list_all() -> int:
    console = make_console()
    width = max(map(len, EXPERIMENTS))
    for name, asked in EXPERIMENTS.items():
        console.print(Text.assemble((f"{name:<{width}}", "bold"), f"  {asked.question}"))
        words = shlex.join((*asked.benchmarks, *_words(asked.options)))
        console.print(Text(f"{'':<{width}}  {words}", "dim"))
    return 0
