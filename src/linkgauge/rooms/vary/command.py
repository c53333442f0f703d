"""The command `linkgauge vary`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from linkgauge.cli import common
from linkgauge.cli.help_text import PRECISION, SETTINGS, WHAT, Typed
from linkgauge.cli.options import Count, Options, argument, option, values_of
from linkgauge.cli.proposals import benchmark_names
from linkgauge.model.errors import InputError
from linkgauge.model.names import hint
from linkgauge.report.formats import Format

from . import VARIATION

if TYPE_CHECKING:
    from linkgauge.engine.request import Selection, Written

    from .rounds import RoundsRequest


def _memory_names(_: Typed) -> Iterable[str]:
    from .settings import MEMORIES

    return MEMORIES


def _experiment_names(_: Typed) -> Iterable[str]:
    return (*EXPERIMENTS, LIST)


class ComparedOptions(Options):
    cpus: tuple[str, ...] = option(SETTINGS, "Use only these CPUs: 0-3,8, or all.", "CPUS")
    numa_node: tuple[str, ...] = option(
        SETTINGS, "Take the host memory of device copies from this node.", "N|near"
    )
    memory: tuple[str, ...] = option(
        SETTINGS,
        "Use this kind of host memory: pinned, pageable, base, thp, huge … (Tab shows all).",
        "KIND",
        offer=_memory_names,
    )
    streams: tuple[int, ...] = option(SETTINGS, "Split each copy by ce over N streams (cuda).", "N")
    affinity: tuple[str, ...] = option(
        SETTINGS, "Run the controlling thread near the memory, or on any CPU (cuda).", "on|off"
    )
    host_kernel: tuple[str, ...] = option(
        SETTINGS, "Use this copy loop for host threads, or the fastest.", "NAME|fastest"
    )
    engine: tuple[str, ...] = option(SETTINGS, "Copy by copy engines, or by kernels.", "ce|sm")
    graph: tuple[str, ...] = option(
        SETTINGS, "Launch each kernel of latency_launch as a graph, or directly.", "on|off"
    )
    env: tuple[str, ...] = option(
        SETTINGS, "Set an environment variable to each value; empty unsets it.", "NAME=A,B"
    )


class VaryOptions(Options):
    benchmarks: tuple[str, ...] = argument(
        "BENCHMARK...",
        "Measure these benchmarks, or transfers as linkgauge copy takes them.",
        offer=benchmark_names,
    )
    prefix: tuple[str, ...] = common.PREFIX
    experiment: str | None = option(
        WHAT,
        "Run the benchmarks and settings of an experiment; list shows all experiments.",
        "NAME|list",
        offer=_experiment_names,
        is_input=True,
    )
    varied: ComparedOptions
    prepare: str | None = option(
        SETTINGS,
        "Run this before each run, with the setting in its environment.",
        "COMMAND",
        is_input=True,
    )
    rounds: Count = option(PRECISION, "Measure every setting N times.", "N", default=10)
    significance: str = option(
        PRECISION, "Accept this rate of false differences.", "P", default="1%"
    )
    profile: str = common.profile("quick")
    backend: tuple[str, ...] = common.BACKEND
    device: tuple[str, ...] = common.DEVICE
    size: str | None = common.SIZE
    sampling: common.Sampling
    host_mode: Literal["stream", "peak"] | None = option(
        WHAT, "Run memory_stream_* in one mode.", "stream|peak"
    )
    label: str = common.label("vary")
    out: Path = common.RUNS_BELOW
    simulated: common.SimulatedOrListed
    wait: bool = common.WAIT
    form: Annotated[Format, VARIATION]


def vary(asked: VaryOptions) -> int:
    """Measure the same benchmarks under several settings, and show what differs.

    Repeat an option under "Settings to compare" to give several values; the first is the baseline.

    Examples:
        linkgauge vary --experiment list
        linkgauge vary --experiment engine
        linkgauge vary --prefix host_to_ --engine ce --engine sm"""
    if asked.experiment is not None:
        return carry_out_named(asked)

    from .carrying_out import carry_out

    return carry_out(requested(asked), asked.form)


def requested(asked: VaryOptions) -> RoundsRequest:
    from linkgauge.cli.requests import request_of, settings_of
    from linkgauge.model.settings import EngineSettings

    from .carrying_out import check_rounds
    from .rounds import RoundsRequest
    from .settings import variants_of

    alpha = check_rounds(asked.rounds, asked.significance)
    what, backends = _what(asked)
    engines = EngineSettings()
    settings = settings_of(asked.profile, asked.size, asked.sampling, engines, asked.simulated)
    request = request_of(asked, what, settings, asked.profile, backends=backends)
    variants = variants_of(vars(asked.varied), request)
    return RoundsRequest(variants, asked.rounds, alpha, asked.prepare, request)


def _what(asked: VaryOptions) -> tuple[Selection | Written, tuple[str, ...]]:
    from linkgauge.benchmarks.catalog import select
    from linkgauge.engine.request import Selection, Written

    names, prefix = asked.benchmarks, asked.prefix
    transfers = [text for text in names if "->" in text]
    if not names and not prefix:
        raise InputError("vary what? Give benchmarks, --prefix, --experiment or transfers")
    if transfers:
        if prefix or len(names) > 1:
            raise InputError("give benchmarks, or transfers in one argument, joined with '&'")
        if asked.varied.numa_node:
            raise InputError("--numa-node has no effect: the transfers name their nodes")
        return Written(transfers[0]), asked.backend
    is_on_host = all(row.on_host for row in select(names, prefix))
    # Opening others would take time in every round.
    backends = asked.backend or (("host",) if is_on_host else ())
    return Selection(names, prefix, host_mode=asked.host_mode), backends


# Named experiments. Each stands for a command line that answers one question, and that users could
# also type.

EACH_NODE = "each"
"""The word that stands for each NUMA node of the machine."""
LIST = "list"
"""The name of the experiment that lists the others."""
_TO_AND_FRO = ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce")
_BETWEEN = ("device_to_device_memcpy_read_ce", "device_to_device_memcpy_write_ce")


class NamedExperiment(NamedTuple):
    """A predefined experiment. An option's first value is the baseline of a comparison."""

    question: str
    options: Mapping[str, str | tuple[str | int, ...]]
    benchmarks: tuple[str, ...] = _TO_AND_FRO


EXPERIMENTS: Mapping[str, NamedExperiment] = {
    "pinned": NamedExperiment(
        "What does it cost that host memory is not pinned?",
        {"memory": ("pinned", "pageable")},
    ),
    "write-combined": NamedExperiment(
        "What do devices gain by write-combined host memory?",
        {"memory": ("pinned", "wc")},
    ),
    "mapped": NamedExperiment(
        "From which size on is a copy better than a kernel that accesses host memory in place?",
        {"memory": ("mapped",), "engine": ("sm", "ce"), "size": "4K:16M:x4"},
    ),
    "managed": NamedExperiment(
        "What does managed memory cost copy engines, and kernels that access it in place?",
        {"memory": ("pinned", "managed")},
        (*_TO_AND_FRO, "host_to_device_memcpy_sm", "device_to_host_memcpy_sm"),
    ),
    "pages": NamedExperiment(
        "What do host threads and devices gain by huge pages?",
        {"memory": ("base", "thp", "hugetlb")},
        ("host_to_host_memcpy_copy_cpu", *_TO_AND_FRO),
    ),
    "node": NamedExperiment(
        "What does it cost a device that host memory is not on the node near it?",
        {"numa_node": ("near", EACH_NODE)},
    ),
    "streams": NamedExperiment(
        "Over how many streams is a copy the fastest?",
        {"streams": (1, 2, 4, 8, 16)},
    ),
    "engine": NamedExperiment(
        "On which paths do kernels copy faster than copy engines?",
        {"engine": ("ce", "sm")},
        (*_TO_AND_FRO, *_BETWEEN),
    ),
    "graph": NamedExperiment(
        "What does it cost or save to launch a kernel as a graph?",
        {"graph": ("off", "on")},
        ("latency_launch",),
    ),
}


def carry_out_named(asked: VaryOptions) -> int:
    from rich.text import Text

    from linkgauge.report.console import make_console

    if asked.experiment == LIST:
        console, width = make_console(), max(map(len, EXPERIMENTS))
        for name, one in EXPERIMENTS.items():
            console.print(Text.assemble((f"{name:<{width}}", "bold"), f"  {one.question}"))
            flags = {f"--{of.replace('_', '-')}": values for of, values in one.options.items()}
            command = shlex.join((*one.benchmarks, *_words(flags)))
            console.print(Text(f"{'':<{width}}  {command}", "dim"))
        return 0
    words, options = expanded(asked)
    console = make_console(stderr=asked.form.is_document)
    console.print(Text(EXPERIMENTS[str(asked.experiment)].question, "bold"))
    console.print(Text(shlex.join(("linkgauge", "vary", *words))))
    console.print()
    return vary(options)


def expanded(asked: VaryOptions) -> tuple[tuple[str, ...], VaryOptions]:
    """Returns an experiment's command line and options. Options of the user replace the options of
    the experiment. Raises InputError if the experiment is unknown or does not fit the machine."""
    name = str(asked.experiment)
    if name not in EXPERIMENTS:
        raise InputError(f"unknown experiment {name!r}{hint(name, EXPERIMENTS)}")
    own = {of: v for of, v in EXPERIMENTS[name].options.items() if of not in asked.line.typed}
    if EACH_NODE in own.get("numa_node", ()):
        own["numa_node"] = ("near", *_each_node(name, asked.simulated))
    benchmarks = asked.benchmarks or (() if asked.prefix else EXPERIMENTS[name].benchmarks)
    changed = {"benchmarks": benchmarks, "experiment": None, "size": own.get("size", asked.size)}
    compared = {of: own.get(of, value) for of, value in vars(asked.varied).items()}
    options = VaryOptions(**vars(asked) | changed | {"varied": ComparedOptions(**compared)})
    known = {of: (field.flags_of(of), value) for of, field, value in values_of(options)}
    typed = [of for of in known if of in asked.line.typed - {"benchmarks", "experiment"}]
    flags = {known[of][0][0]: known[of][1] for of in (*own, *typed)}
    return (*benchmarks, *_words(flags)), options


def _each_node(name: str, simulated: common.Simulated) -> Iterator[str]:
    from .settings import host_of

    nodes = host_of(simulated.simulation()).nodes
    if len(nodes) < 2:
        whose = "this machine has" if simulated.machine is None else f"{simulated.machine} has"
        raise InputError(f"experiment {name!r}: {whose} one NUMA node, so no memory is far")
    yield from (str(node.index) for node in nodes)


def _words(options: Mapping[str, object]) -> Iterator[str]:
    for flag, values in options.items():
        if values is True:
            yield flag
        else:
            for value in values if isinstance(values, tuple) else (values,):
                yield from (flag, str(value))
