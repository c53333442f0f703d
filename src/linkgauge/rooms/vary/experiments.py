"""Defines the named experiments of `linkgauge vary`. An experiment stands for a command line that
answers one question. Users could also type this command line."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text

from linkgauge.cli.options import filled, members, read, values_of
from linkgauge.model.errors import InputError
from linkgauge.model.names import hint
from linkgauge.report.console import make_console

if TYPE_CHECKING:
    from .command import VaryOptions

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
    options: Mapping[str, str | tuple[str, ...]]


EXPERIMENTS: Mapping[str, NamedExperiment] = {
    "pinned": NamedExperiment(
        "What does it cost that host memory is not pinned?",
        _TO_AND_FRO,
        {"memory": ("pinned", "pageable")},
    ),
    "write-combined": NamedExperiment(
        "What do devices gain by write-combined host memory?",
        _TO_AND_FRO,
        {"memory": ("pinned", "wc")},
    ),
    "mapped": NamedExperiment(
        "From which size on is a copy better than a kernel that accesses host memory in place?",
        _TO_AND_FRO,
        {"memory": ("mapped",), "engine": ("sm", "ce"), "size": "4K:16M:x4"},
    ),
    "managed": NamedExperiment(
        "What does managed memory cost copy engines, and kernels that access it in place?",
        (*_TO_AND_FRO, "host_to_device_memcpy_sm", "device_to_host_memcpy_sm"),
        {"memory": ("pinned", "managed")},
    ),
    "pages": NamedExperiment(
        "What do huge pages gain, of host threads and of devices?",
        ("host_to_host_memcpy_copy_cpu", *_TO_AND_FRO),
        {"memory": ("base", "thp", "hugetlb")},
    ),
    "node": NamedExperiment(
        "What does it cost a device that host memory is not on the node near it?",
        _TO_AND_FRO,
        {"numa_node": ("near", EACH_NODE)},
    ),
    "streams": NamedExperiment(
        "Over how many streams is a copy the fastest?",
        _TO_AND_FRO,
        {"streams": ("1", "2", "4", "8", "16")},
    ),
    "engine": NamedExperiment(
        "Which paths do kernels copy over faster than copy engines?",
        (*_TO_AND_FRO, *_BETWEEN),
        {"engine": ("ce", "sm")},
    ),
    "graph": NamedExperiment(
        "What does it cost or save to launch a kernel as a graph?",
        ("latency_launch",),
        {"graph": ("off", "on")},
    ),
}


def carry_out_named(asked: VaryOptions) -> int:
    """Shows the command line of the experiment that the options name, and carries it out."""
    from .command import vary

    if asked.experiment == LIST:
        return _list_all()
    words, options = expanded(asked)
    console = make_console(stderr=asked.form.is_document)
    console.print(Text(EXPERIMENTS[str(asked.experiment)].question, "bold"))
    console.print(Text(shlex.join(("linkgauge", "vary", *words))))
    console.print()
    return vary(options)


def expanded(asked: VaryOptions) -> tuple[tuple[str, ...], VaryOptions]:
    """Returns the words of the experiment's command line, and its options. Options that were given
    replace those of the experiment. Raises InputError for an unknown name, or if the experiment
    does not suit the machine."""
    from .command import VaryOptions

    name = str(asked.experiment)
    if name not in EXPERIMENTS:
        raise InputError(f"unknown experiment {name!r}{hint(name, EXPERIMENTS)}")
    known = {of: (field, value) for of, field, value in values_of(asked)}
    given = {of: known[of][1] for of in known if of in asked.line.typed - {"experiment"}}
    own = {of: each for of, each in EXPERIMENTS[name].options.items() if of not in given}
    if EACH_NODE in own.get("numa_node", ()):
        own["numa_node"] = ("near", *_each_node(name, asked.simulated.machine))
    benchmarks = () if "prefix" in given else EXPERIMENTS[name].benchmarks
    benchmarks = given.pop("benchmarks", benchmarks)
    hints = {of: hint for of, hint, _ in members(VaryOptions)}
    made = {of: read(f"--{of}", hints[of], known[of][0], each) for of, each in own.items()}
    values = {of: value for of, (_, value) in known.items()}
    options = filled(
        VaryOptions, {**values, **made, "benchmarks": benchmarks, "experiment": None}, asked.line
    )
    vars(options)["form"] = asked.form
    flags = {known[of][0].flags_of(of)[0]: value for of, value in (made | given).items()}
    return (*benchmarks, *_words(flags)), options


def _each_node(name: str, machine: str | None) -> Iterator[str]:
    """Yields the NUMA nodes of the host, or of a simulated machine."""
    from linkgauge.cli.common import simulation_of

    from .settings import host_of

    nodes = host_of(simulation_of(machine)).nodes
    if len(nodes) < 2:
        whose = f"{machine} has" if machine is not None else "this machine has"
        raise InputError(f"experiment {name!r}: {whose} one NUMA node, so no memory is far")
    yield from (str(node.index) for node in nodes)


def _words(options: Mapping[str, object]) -> Iterator[str]:
    """Yields the words of options with their values. An option that is True is a flag."""
    for option, values in options.items():
        if values is True:
            yield option
        else:
            for value in values if isinstance(values, tuple) else (values,):
                yield from (option, str(value))


def _list_all() -> int:
    console = make_console()
    width = max(map(len, EXPERIMENTS))
    for name, asked in EXPERIMENTS.items():
        console.print(Text.assemble((f"{name:<{width}}", "bold"), f"  {asked.question}"))
        options = {f"--{of.replace('_', '-')}": values for of, values in asked.options.items()}
        words = shlex.join((*asked.benchmarks, *_words(options)))
        console.print(Text(f"{'':<{width}}  {words}", "dim"))
    return 0
