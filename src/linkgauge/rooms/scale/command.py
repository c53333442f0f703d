"""The command `linkgauge scale`: measures a collective over more and more devices."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from linkgauge.cli import common
from linkgauge.cli.help_text import WHAT, Typed
from linkgauge.cli.options import Options, argument, numbers, option
from linkgauge.report.formats import Format

from . import SCALING

if TYPE_CHECKING:
    from linkgauge.engine.request import RunRequest


def _collective_names(_: Typed) -> Iterable[str]:
    from linkgauge.model.operations.collective import COLLECTIVE_NAMES

    return COLLECTIVE_NAMES


class ScaleOptions(Options):
    collective: str = argument(
        "COLLECTIVE",
        "Measure this one: all_reduce, alltoall …",
        offer=_collective_names,
        default="all_reduce",
    )
    gpus: str | None = option(
        WHAT,
        "Use N devices: 1,2,4,8. Default: powers of two, and all.",
        "N[,N…]",
    )
    nodes: str | None = option(
        WHAT,
        "Use one device on each of N nodes, on the first rail: 1,2,4.",
        "N[,N…]",
    )
    backend: tuple[str, ...] = common.BACKEND
    device: tuple[str, ...] = common.DEVICE
    size: str | None = option(
        WHAT,
        "Move this many bytes: 1M, 8:512M:x4. Default: 8 B to 512 MiB by factors of 4.",
        "SIZE",
    )
    sampling: common.Sampling
    label: str = common.label("scale")
    out: Path = common.RUNS_BELOW
    verbose: bool = common.VERBOSE
    no_report: bool = common.NO_REPORT
    simulated: common.SimulatedOrListed
    wait: bool = common.WAIT
    form: Annotated[Format, SCALING]


def scale(asked: ScaleOptions) -> int:
    """Measure a collective on more and more devices.

    Shows up to which number of devices it scales, and what slows it down.

    Examples:
        linkgauge scale all_reduce
        linkgauge scale alltoall --gpus 1,2,4,8 --size 64M
        linkgauge scale --machine fat-tree-64 --nodes 1,2,4,64"""
    from linkgauge.report.keeping import Display

    from .carrying_out import carry_out

    return carry_out(
        requested(asked), Display(asked.form, verbose=asked.verbose, page=not asked.no_report)
    )


def requested(asked: ScaleOptions) -> RunRequest:
    from linkgauge.cli.requests import request_of, settings_of
    from linkgauge.model.errors import InputError
    from linkgauge.model.names import UnknownName, hint
    from linkgauge.model.operations.collective import COLLECTIVE_NAMES
    from linkgauge.model.settings import EngineSettings

    from .benchmarks import ScalingBenchmark

    gpus, nodes = asked.gpus, asked.nodes
    if gpus is not None and nodes is not None:
        raise InputError("--gpus and --nodes exclude each other")
    flag, text, of = ("--gpus", gpus, "devices") if nodes is None else ("--nodes", nodes, "nodes")
    counts = numbers(flag, text, f"give numbers of {of}, such as 1,2,4,8", 99_999, 0)
    if 0 in counts:
        raise InputError(f"{flag} {text}: give 1 or more")
    name = next((one for one in COLLECTIVE_NAMES if one == asked.collective), None)
    if name is None:
        near = hint(asked.collective, COLLECTIVE_NAMES)
        raise UnknownName("collective", asked.collective, near)
    engines = EngineSettings()
    settings = settings_of("standard", asked.size, asked.sampling, engines, asked.simulated)
    what = ScalingBenchmark(name, tuple(sorted(counts)), nodes is not None)
    return request_of(asked, what, settings, "standard")
