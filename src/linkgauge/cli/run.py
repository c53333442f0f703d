"""Implements `linkgauge run`, which measures benchmarks and keeps the results."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from linkgauge.model.errors import InputError
from linkgauge.registry import deferred
from linkgauge.report.formats import PLAN

from . import common
from .help_text import ENGINES, OUTPUT, PRECISION, RUNS, WHAT
from .options import Count, Options, Time, argument, option

if TYPE_CHECKING:
    from linkgauge.engine.request import RunRequest
    from linkgauge.engine.workers.process import WorkerProcess
    from linkgauge.report.keeping import Display


class RunOptions(Options):
    benchmarks: tuple[str, ...] = argument(
        "BENCHMARK...",
        "Measure these benchmarks. Default: all those of the profile.",
        offer=deferred("linkgauge.cli.proposals:benchmark_names"),
    )
    prefix: tuple[str, ...] = common.PREFIX
    profile: str = common.profile("standard")
    backend: tuple[str, ...] = common.BACKEND
    device: tuple[str, ...] = common.DEVICE
    size: str | None = common.SIZE
    sampling: common.Sampling
    collecting: common.CollectiveOptions
    label: str = common.label("default")
    out: Path = common.RUNS_BELOW
    form: common.RunFormat
    only_d2d: bool = option(WHAT, "Measure only the benchmarks between devices.")
    parallel_pairs: bool = option(ENGINES, "Measure disjoint pairs of devices at once.")
    sample_pairs: Count | None = option(
        WHAT, "Measure N device pairs, sampled at random; a re-run measures the same ones.", "N"
    )
    seed: int | None = option(WHAT, "Draw these pairs with this seed instead of 1.", "S")
    shape: common.Shape
    numa_node: int | None = option(
        ENGINES, "Take host memory from this node, not from the device's own.", "N"
    )
    host_kernel: str | None = common.HOST_KERNEL
    host_mode: Literal["stream", "peak"] | None = option(
        WHAT,
        "Run memory_stream_* in one mode: stream (comparable with STREAM) or peak (fastest).",
        "stream|peak",
    )
    budget: Time | None = option(
        PRECISION,
        "End the run after this long: 30s, 5m. Each cell is measured three times, main "
        "benchmarks first; then the least precise cells are repeated. Default: the time that "
        "--dry-run shows.",
        "TIME",
    )
    tune: bool = option(
        ENGINES, "First search for the fastest settings of each device, and remember them."
    )
    hardware: Path | None = option(
        OUTPUT,
        "Add what the machine cannot report about itself, from this file (hardware.yml).",
        "FILE",
        is_input=True,
    )
    limits: Path | None = common.LIMITS
    waivers: Path | None = common.WAIVERS
    utilization: bool = common.UTILIZATION
    matrix: bool = common.MATRIX
    whole: bool = common.WHOLE
    duration: Time | None = option(
        WHAT,
        "Repeat the whole run for this long, and show how figures change: 8h, 90m.",
        "TIME",
        "--for",
    )
    max_temperature: float | None = option(
        WHAT, "With --for: stop repeating if a device gets this hot.", "CELSIUS"
    )
    verbose: bool = common.VERBOSE
    no_report: bool = common.NO_REPORT
    no_verdict: bool = common.NO_VERDICT
    dry_run: bool = option(WHAT, "Show the cells, their memory and time; measure nothing.")
    simulated: common.SimulatedOrListed
    resume: Path | None = option(RUNS, "Resume the run in this folder.", "FOLDER", is_input=True)
    wait: bool = common.WAIT
    profiling: common.Profiling


def run(asked: RunOptions) -> int:
    """Measure benchmarks and keep the results.

    Examples:
        linkgauge run --profile quick
        linkgauge run --prefix host_to_ --size 64M,512M
        linkgauge run all_reduce --for 8h --max-temperature 85
    """
    from linkgauge.machine.processes.launch import launched

    # It loads while the rest of this process loads. Ranks and simulated machines have none.
    alone = asked.resume is None and asked.simulated.machine is None and launched().size == 1
    if not alone:
        return _carry_out(asked, None)
    from linkgauge.engine.workers.process import WorkerProcess

    with closing(WorkerProcess()) as first:
        return _carry_out(asked, first)


def _carry_out(asked: RunOptions, first: WorkerProcess | None) -> int:
    display, form = displayed(asked), asked.form
    if asked.dry_run and not PLAN.has(form):
        raise InputError(
            f"{form.flag} shows what was measured, and a dry run measures nothing: use --json"
        )
    if asked.resume is not None:
        from linkgauge.uses.resuming import resume

        from .requests import command_of, given

        return resume(asked.resume, given(asked), command_of(asked), display, wait=asked.wait)
    if asked.simulated.change is not None and not asked.dry_run:
        unchanged = common.simulation_of(asked.simulated.machine, asked.simulated.fault)
        if unchanged is not None:
            from linkgauge.uses import what_if

            return what_if.carry_out(requested(asked), unchanged, display)
    from linkgauge.uses.measuring import carry_out

    return carry_out(requested(asked), display, first=first, only_plan=asked.dry_run)


def displayed(asked: RunOptions) -> Display:
    """Returns how to judge and show the run. Raises InputError for wrong limits or waivers."""
    from linkgauge.report.keeping import Display

    return Display(
        asked.form, asked.utilization, common.limits_in(asked.limits),
        verdict=not asked.no_verdict, matrix=asked.matrix, whole=asked.whole,
        verbose=asked.verbose, page=not asked.no_report,
        waivers=common.waivers_in(asked.waivers),
    )  # fmt: skip


def requested(asked: RunOptions) -> RunRequest:
    from msgspec.structs import replace

    from linkgauge.engine.request import Selection

    from . import requests

    stated: dict[str, str] = {}
    if asked.hardware:
        from linkgauge.machine.hardware import read_hardware

        stated = read_hardware(asked.hardware)
    engines = requests.engines_of(asked.shape, asked.host_kernel, asked.numa_node)
    settings = replace(
        requests.settings_of(asked.profile, asked.size, asked.sampling, engines, asked.simulated),
        parallel_pairs=asked.parallel_pairs,
        sample_pairs=requests.pair_sample_of(asked.sample_pairs, asked.seed),
    )
    settings = requests.under(asked.profiling, settings, asked.out)
    if asked.budget is not None and asked.duration is not None:
        raise InputError("--for says how long the run takes: leave out --budget")
    settings = requests.soaked(settings, asked.duration, asked.max_temperature)
    if settings.profiler is not None and (asked.tune or asked.limits):
        name = "tune" if asked.tune else "limits"
        raise InputError(f"--{name}: not under a profiler, which changes the figures")
    what = Selection(asked.benchmarks, asked.prefix, asked.only_d2d, asked.host_mode)
    return requests.request_of(
        asked, what, settings, asked.profile, tune=asked.tune, stated=stated,
        collectives=requests.choice_of(asked.collecting), with_cpus=asked.whole,
        budget=asked.budget or "plan",
    )  # fmt: skip
