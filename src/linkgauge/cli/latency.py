"""Implements `linkgauge latency`, which times single iterations and shows their percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from . import common
from .help_text import PRECISION, WHAT
from .options import Count, Options, Time, argument, option
from .proposals import benchmark_names

PREFIX, OF_COPIES = "latency_", "latency_copy_"


class LatencyOptions(Options):
    benchmarks: tuple[str, ...] = argument(
        "BENCHMARK...",
        "Measure these latency_ benchmarks. Default: all; with --size, those of copies.",
        offer=benchmark_names,
    )
    size: str | None = option(
        WHAT,
        "Copy this many bytes, up to 1M: 64, 4K, 1:1M:x2. Default: a curve over sizes.",
        "SIZE[,SIZE…]",
    )
    iterations: Count = option(
        PRECISION, "Time N iterations of each cell, one by one.", "N", default=10_000
    )
    backend: tuple[str, ...] = common.BACKEND
    device: tuple[str, ...] = common.DEVICE
    timeout: Time | None = common.TIMEOUT
    no_verify: bool = common.NO_VERIFY
    label: str = common.label("latency")
    out: Path = common.RUNS_BELOW
    no_report: bool = common.NO_REPORT
    simulated: common.SimulatedOrListed
    utilization: bool = common.UTILIZATION
    wait: bool = common.WAIT
    profiling: common.Profiling
    form: common.RunFormat


def latency(asked: LatencyOptions) -> int:
    """Time single copies, flag writes and launches, and show their percentiles.

    Examples:
        linkgauge latency latency_copy_pingpong
        linkgauge latency --size 64 --iterations 1000
        linkgauge latency --size 64 --csv
    """
    from linkgauge.benchmarks.latency import SIZES
    from linkgauge.engine.request import Selection
    from linkgauge.model.errors import InputError
    from linkgauge.model.settings import EngineSettings
    from linkgauge.model.units import format_size
    from linkgauge.report.keeping import Display
    from linkgauge.uses.measuring import carry_out

    from .requests import request_of, settings_of, under

    size = asked.size
    sampling = common.Sampling(
        samples=asked.iterations, timeout=asked.timeout, no_verify=asked.no_verify
    )
    settings = settings_of("standard", size, sampling, EngineSettings(), asked.simulated)
    settings = under(asked.profiling, settings, asked.out)
    if size is not None and max(settings.sizes) > SIZES[-1]:
        most = format_size(SIZES[-1])
        raise InputError(
            f"--size {size}: latencies are measured for copies up to {most}: use linkgauge run "
            "for larger ones"
        )
    names = _names(asked.benchmarks, sized=size is not None)
    request = request_of(asked, Selection(names), settings, "standard")
    display = Display(
        asked.form, asked.utilization, verdict=False, matrix=True, page=not asked.no_report
    )
    return carry_out(request, display)


def _names(asked: Sequence[str], *, sized: bool) -> tuple[str, ...]:
    """Returns `asked` or, by default, the standard latency benchmarks (of copies if `sized`)."""
    from linkgauge.benchmarks.catalog import CATALOG, select
    from linkgauge.model.errors import InputError

    select(asked, ())  # refuses a name that is none
    for name in asked:
        if not name.startswith(PREFIX):
            raise InputError(f"{name} does not time single iterations: use linkgauge run")
        if sized and not name.startswith(OF_COPIES):
            raise InputError(f"{name} has no sizes: --size is for {OF_COPIES}…")
    prefix = OF_COPIES if sized else PREFIX
    standard = (n for n, row in CATALOG.items() if "standard" in row.profiles)
    return tuple(asked) or tuple(name for name in standard if name.startswith(prefix))
