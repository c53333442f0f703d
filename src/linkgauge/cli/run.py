"""`linkgauge run`: measures benchmarks and keeps the results."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linkgauge.model.errors import InputError
from linkgauge.report.formats import PLAN

from .collecting import choice_of
from .help_text import ENGINES, OUTPUT, RUNS, WHAT
from .options import (
    TIME,
    Collecting,
    Option,
    Profiling,
    RunFormat,
    Sampling,
    Shape,
    Simulated,
    complete_benchmark,
    headed,
    own,
)

if TYPE_CHECKING:
    from linkgauge.judge.limits import Limit


@own(
    **headed(
        WHAT,
        only_d2d=Option("Measure only the benchmarks between devices."),
        sample_pairs=Option(
            "Measure N device pairs, drawn at random; a re-run measures the same ones.", "N"
        ),
        seed=Option("Draw these pairs with this seed instead of 1.", "S"),
        host_mode=Option(
            "Run memory_stream_* in one mode: stream (comparable with STREAM) or peak (fastest).",
            "stream|peak",
        ),
        duration=Option(
            "Repeat all of it for this long, and show how it goes over the time: 8h, 90m.",
            TIME,
            flag="--for",
        ),
        max_temperature=Option("End what --for repeats if a device gets this hot.", "CELSIUS"),
        dry_run=Option("Show the cells, their memory and time; measure nothing."),
    ),
    **headed(
        OUTPUT,
        out=Option("Keep runs below this folder.", "DIR"),
        hardware=Option(
            "Record what the machine cannot report about itself (hardware.yml).", "FILE"
        ),
    ),
    **headed(
        ENGINES,
        parallel_pairs=Option("Measure disjoint pairs of devices at once."),
        numa_node=Option("Take host memory from this node, not from the device's own.", "N"),
        tune=Option("First search for the fastest settings of each device, and remember them."),
    ),
    resume=Option("Resume the run in this folder.", "FOLDER", heading=RUNS),
)
def run(
    context: typer.Context,
    *,
    benchmarks: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="BENCHMARK...",
            help="Measure these benchmarks. Default: all those of the profile.",
            autocompletion=complete_benchmark,
        ),
    ] = None,
    prefix: list[str] | None = None,
    profile: str = "standard",
    backend: list[str] | None = None,
    device: list[str] | None = None,
    size: str | None = None,
    sampling: Sampling,
    collecting: Collecting,
    label: str = "default",
    out: Path = Path("results"),
    form: RunFormat,
    only_d2d: bool = False,
    parallel_pairs: bool = False,
    sample_pairs: int | None = None,
    seed: int | None = None,
    shape: Shape,
    numa_node: int | None = None,
    host_kernel: str | None = None,
    host_mode: str | None = None,
    tune: bool = False,
    hardware: Path | None = None,
    limits: Path | None = None,
    utilization: bool = False,
    matrix: bool = False,
    whole: bool = False,
    duration: float | None = None,
    max_temperature: float | None = None,
    no_report: bool = False,
    no_verdict: bool = False,
    dry_run: bool = False,
    simulated: Simulated,
    list_faults: bool = False,
    resume: Path | None = None,
    wait: bool = False,
    profiling: Profiling,
) -> int:
    """Measure benchmarks and keep the results.

    Examples:
        linkgauge run --profile quick
        linkgauge run --prefix host_to_ --size 64M,512M
        linkgauge run all_reduce --for 8h --max-temperature 85
    """
    from linkgauge.engine.process import WorkerProcess
    from linkgauge.machine.launch import launched

    # It loads while the rest of this process loads. Ranks have none.
    alone = resume is None and launched().size == 1
    first = context.with_resource(closing(WorkerProcess())) if alone else None
    import msgspec

    from linkgauge.engine.request import Selection
    from linkgauge.machine.hardware import read_hardware
    from linkgauge.report.live import Display

    from . import requests
    from .options_record import given, request_of
    from .simulation import simulation_of

    bounds: tuple[Limit, ...] = ()
    if limits:
        from linkgauge.judge.limits import read_limits

        bounds = read_limits(limits)
    display = Display(
        form, utilization, bounds,
        verdict=not no_verdict, matrix=matrix, whole=whole, page=not no_report,
    )  # fmt: skip
    if dry_run and not PLAN.has(form):
        raise InputError(f"{form.flag} shows samples, and a dry run takes none: use --json")
    if resume is not None:
        from .resuming import resume as go_on

        return go_on(resume, given(context), display, wait=wait, timeout=sampling.timeout)
    engines = requests.engines_of(shape, host_kernel, numa_node)
    stated = read_hardware(hardware) if hardware else {}
    simulation = simulation_of(*simulated)
    settings = requests.settings_of(profile, size, sampling, engines, simulation)
    settings = msgspec.structs.replace(
        settings,
        parallel_pairs=parallel_pairs,
        sample_pairs=requests.pair_sample_of(sample_pairs, seed),
    )
    settings = requests.under(profiling, settings, out)
    settings = requests.soaked(settings, duration, max_temperature)
    if settings.profiler is not None and (tune or limits):
        raise InputError(
            f"--{'tune' if tune else 'limits'}: not under a profiler, which changes the figures"
        )
    mode = requests.host_mode_of(host_mode)
    what = Selection(tuple(benchmarks or ()), tuple(prefix or ()), only_d2d, mode)
    request = request_of(
        context, what, settings,
        label=label, out=out, wait=wait, profile=None if size else profile, tune=tune,
        backends=tuple(backend or ()), devices=tuple(device or ()), stated=stated,
        collectives=choice_of(collecting), with_cpus=whole,
    )  # fmt: skip
    return requests.carry_out(request, display, first=first, only_plan=dry_run)
