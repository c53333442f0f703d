"""`linkgauge latency`: times single iterations of what devices do, and shows their percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from .help_text import OUTPUT, PRECISION, WHAT
from .options import Option, Profiling, RunFormat, Sampling, Simulated, complete_benchmark, own

PREFIX, OF_COPIES = "latency_", "latency_copy_"


@own(
    size=Option(
        "Copy this many bytes, up to 1M: 64, 4K, 1:1M:x2. Default: a curve over sizes.",
        "SIZE[,SIZE…]",
        heading=WHAT,
    ),
    iterations=Option("Time N iterations of each cell, one by one.", "N", heading=PRECISION),
    out=Option("Keep runs below this folder.", "DIR", heading=OUTPUT),
)
def latency(
    context: typer.Context,
    *,
    benchmarks: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="BENCHMARK...",
            help="Measure these latency_ benchmarks. Default: all; with --size, those of copies.",
            autocompletion=complete_benchmark,
        ),
    ] = None,
    size: str | None = None,
    iterations: int = 10_000,
    backend: list[str] | None = None,
    device: list[str] | None = None,
    timeout: float | None = None,
    no_verify: bool = False,
    label: str = "latency",
    out: Path = Path("results"),
    no_report: bool = False,
    simulated: Simulated,
    list_faults: bool = False,
    utilization: bool = False,
    wait: bool = False,
    profiling: Profiling,
    form: RunFormat,
) -> int:
    """Time single copies, flags and launches, and show their percentiles.

    Examples:
        linkgauge latency latency_copy_pingpong
        linkgauge latency --size 64 --iterations 1000
        linkgauge latency --size 64 --csv > latency.csv
    """
    from linkgauge.benchmarks.latency import SIZES
    from linkgauge.engine.request import Selection
    from linkgauge.model.errors import InputError
    from linkgauge.model.settings import EngineSettings
    from linkgauge.model.units import format_size
    from linkgauge.report.live import Display

    from .options import at_least_one
    from .options_record import request_of
    from .requests import carry_out, settings_of, under
    from .simulation import simulation_of

    count = at_least_one("--iterations", iterations)
    sampling = Sampling(samples=count, timeout=timeout, no_verify=no_verify)
    simulation = simulation_of(*simulated)
    settings = settings_of("standard", size, sampling, EngineSettings(), simulation)
    settings = under(profiling, settings, out)
    if size is not None and max(settings.sizes) > SIZES[-1]:
        most = format_size(SIZES[-1])
        raise InputError(
            f"--size {size}: latencies are measured for copies up to {most}: see linkgauge run"
        )
    names = _names(benchmarks or (), sized=size is not None)
    request = request_of(
        context, Selection(names), settings,
        label=label, out=out, wait=wait, profile=None if size else "standard",
        backends=tuple(backend or ()), devices=tuple(device or ()),
    )  # fmt: skip
    return carry_out(
        request, Display(form, utilization, verdict=False, matrix=True, page=not no_report)
    )


def _names(asked: Sequence[str], *, sized: bool) -> tuple[str, ...]:
    """The benchmarks asked for, else those of the standard profile; with sizes, those of copies."""
    from linkgauge.benchmarks.catalog import CATALOG, select
    from linkgauge.model.errors import InputError

    select(asked, ())  # refuses a name that is none
    for name in asked:
        if not name.startswith(PREFIX):
            raise InputError(f"{name} does not time single iterations: see linkgauge run")
        if sized and not name.startswith(OF_COPIES):
            raise InputError(f"{name} has no sizes: --size is for {OF_COPIES}…")
    prefix = OF_COPIES if sized else PREFIX
    standard = (n for n, row in CATALOG.items() if "standard" in row.profiles)
    return tuple(asked) or tuple(name for name in standard if name.startswith(prefix))
