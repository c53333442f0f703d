"""`linkgauge run`: measures benchmarks and keeps the results."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from linkgauge.model.errors import InputError

from . import options
from .options import (
    Backends,
    Csv,
    Devices,
    Json,
    Label,
    Loops,
    MaxTime,
    NoVerify,
    Precision,
    Profile,
    Samples,
    Size,
)


def _complete(incomplete: str) -> list[str]:
    from linkgauge.benchmarks.catalog import CATALOG

    return [name for name in CATALOG if name.startswith(incomplete)]


def run(
    context: typer.Context,
    benchmarks: Annotated[
        list[str] | None,
        typer.Argument(help="Names of benchmarks; all without any.", autocompletion=_complete),
    ] = None,
    prefix: Annotated[
        list[str] | None,
        typer.Option("--prefix", metavar="TEXT", help="Benchmarks that begin so. Repeatable."),
    ] = None,
    profile: Profile = "standard",
    backend: Backends = None,
    device: Devices = None,
    size: Size = None,
    samples: Samples = None,
    loops: Loops = None,
    precision: Precision = None,
    max_time: MaxTime = None,
    timeout: options.Timeout = None,
    no_verify: NoVerify = False,
    label: Label = "default",
    out: options.Out = Path("results"),
    json: Json = False,
    csv: Csv = False,
    only_d2d: Annotated[
        bool, typer.Option("--only-d2d", help="Only benchmarks between devices.")
    ] = False,
    parallel_pairs: Annotated[
        bool,
        typer.Option("--parallel-pairs", help="Measure disjoint pairs of devices at once."),
    ] = False,
    kernel: options.Kernel = None,
    blocks: options.Blocks = None,
    threads: options.Threads = None,
    streams: options.Streams = None,
    untuned: options.Untuned = False,
    no_affinity: options.NoAffinity = False,
    numa_node: options.NumaNode = None,
    host_kernel: options.HostKernel = None,
    tune: Annotated[
        bool,
        typer.Option("--tune", help="First search how each device copies best, and remember it."),
    ] = False,
    hardware: options.Hardware = None,
    limits: options.Limits = None,
    utilization: options.Utilization = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show cells, memory and time; measure nothing.")
    ] = False,
    machine: options.Machine = None,
    fault: options.Faults = None,
    list_faults: options.ListFaults = False,
    resume: options.Resume = None,
    wait: options.Wait = False,
) -> int:
    """Measure benchmarks and keep the results.

    Example: linkgauge run --prefix host_to_ --size 64M,512M --label before-pinning
    """
    from linkgauge.engine.process import WorkerProcess

    # It loads while the rest of this process does.
    first = context.with_resource(closing(WorkerProcess())) if resume is None else None
    import msgspec

    from linkgauge.benchmarks.catalog import select
    from linkgauge.engine.locks import devices_measured, hold
    from linkgauge.engine.plan import fabrics, lay_out, make_plan
    from linkgauge.engine.supervisor import Supervisor
    from linkgauge.judge.limits import read_limits
    from linkgauge.machine.hardware import read_hardware, state
    from linkgauge.report.dry_run import print_plan
    from linkgauge.report.terminal import make_console

    from .resume import go_on, in_effect
    from .session import (
        Display,
        carry_out,
        check_shape,
        choose_backends,
        choose_document,
        make_engines,
        make_settings,
        make_simulation,
        tune_devices,
    )

    display = Display(
        choose_document(json, csv), utilization, read_limits(limits) if limits else ()
    )
    if dry_run and csv:
        raise InputError("--csv is of samples, and a dry run takes none: use --json")
    if resume is not None:
        return go_on(resume, context, wait=wait, display=display)
    engines = make_engines(
        kernel, blocks, threads, streams, untuned, no_affinity, numa_node, host_kernel
    )
    stated = read_hardware(hardware) if hardware else {}
    simulation = make_simulation(machine, fault)
    settings = make_settings(
        profile, size, samples, loops, precision, max_time, no_verify, engines, timeout, simulation
    )
    settings = msgspec.structs.replace(settings, parallel_pairs=parallel_pairs)
    rows = select(benchmarks or (), prefix or (), only_d2d=only_d2d)
    accelerators, with_host = choose_backends(backend, simulation)
    with closing(Supervisor(settings, first)) as worker:
        surveyed = state(worker.survey(accelerators), stated)
        _refuse_missing(backend or (), surveyed.unavailable)
        over = fabrics(surveyed, device or (), numa_node) if accelerators else ()
        laid_out = lay_out(rows, over, surveyed.host.nodes if with_host else (), profile)
        plan = make_plan(
            laid_out, surveyed, settings.sizes,
            parallel_pairs=parallel_pairs, profile=None if size else profile,
        )  # fmt: skip
        check_shape(engines, plan)
        if dry_run:
            return print_plan(plan, settings, as_json=json)
        with hold(
            devices_measured(surveyed, plan), wait=wait, tell=make_console(stderr=True).print
        ):
            if tune:  # 30 to 40 s a model
                tune_devices(worker, over)
                surveyed = state(
                    worker.survey(accelerators), stated
                )  # which now tells what was remembered
            return carry_out(
                worker, surveyed, plan, settings,
                label=label, out=out, display=display, options=in_effect(context, settings),
            )  # fmt: skip


def _refuse_missing(asked: Sequence[str], unavailable: dict[str, str]) -> None:
    """A backend asked for by name must be there."""
    for name in asked:
        if name in unavailable:
            raise InputError(f"backend {name} has no devices here: {unavailable[name]}")
