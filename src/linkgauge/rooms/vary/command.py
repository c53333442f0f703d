"""The command `linkgauge vary`: measures the same benchmarks under several settings, and shows the
differences."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from linkgauge.cli import common
from linkgauge.cli.help_text import PRECISION, SETTINGS, WHAT, Typed
from linkgauge.cli.options import Count, Options, argument, option
from linkgauge.cli.proposals import benchmark_names
from linkgauge.model.errors import InputError
from linkgauge.report.formats import Format

from . import VARIATION

if TYPE_CHECKING:
    from linkgauge.engine.request import Selection, Written

    from .rounds import RoundsRequest


def _memory_names(_: Typed) -> Iterable[str]:
    from .settings import MEMORIES

    return MEMORIES


def _experiment_names(_: Typed) -> Iterable[str]:
    from .experiments import EXPERIMENTS, LIST

    return (*EXPERIMENTS, LIST)


class ComparedOptions(Options):
    """The options to compare; each may have several values."""

    cpus: tuple[str, ...] = option(SETTINGS, "Use only these CPUs: 0-3,8, or all.", "CPUS")
    numa_node: tuple[str, ...] = option(
        SETTINGS, "Take the host memory of device copies from this node.", "N|near"
    )
    memory: tuple[str, ...] = option(
        SETTINGS,
        "Use this kind of host memory: pinned, pageable, base, thp, huge …",
        "KIND",
        offer=_memory_names,
    )
    streams: tuple[int, ...] = option(SETTINGS, "Split each copy by ce over N streams (cuda).", "N")
    affinity: tuple[str, ...] = option(
        SETTINGS, "Run the controlling thread near the memory, or on any CPU (cuda).", "on|off"
    )
    host_kernel: tuple[str, ...] = option(
        SETTINGS, "Use this kernel for host threads, or the fastest.", "NAME|fastest"
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
    """Measure the same under several settings, and show what differs.

    Repeat an option under "Settings to compare" to give several values; the first is the baseline.

    Examples:
        linkgauge vary --experiment list
        linkgauge vary --experiment engine
        linkgauge vary --prefix host_to_ --engine ce --engine sm
    """
    from .experiments import carry_out_named

    if asked.experiment is not None:
        return carry_out_named(asked)

    from .carrying_out import carry_out

    return carry_out(requested(asked), asked.form)


def requested(asked: VaryOptions) -> RoundsRequest:
    """The request that the options describe, without a named experiment. Raises InputError."""
    from linkgauge.cli.options_record import request_of
    from linkgauge.cli.requests import settings_of
    from linkgauge.model.settings import EngineSettings

    from .carrying_out import check_rounds
    from .rounds import RoundsRequest
    from .settings import variants_of

    alpha = check_rounds(asked.rounds, asked.significance)
    what, backends = _what(asked)
    engines = EngineSettings()
    settings = settings_of(asked.profile, asked.size, asked.sampling, engines, asked.simulated)
    request = request_of(asked, what, settings, asked.profile, backends=backends)
    given = {f"--{name.replace('_', '-')}": values for name, values in vars(asked.varied).items()}
    variants = variants_of(given, request)
    return RoundsRequest(variants, asked.rounds, alpha, asked.prepare, request)


def _what(asked: VaryOptions) -> tuple[Selection | Written, tuple[str, ...]]:
    """Returns the benchmarks or transfers to measure, and the backends."""
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
