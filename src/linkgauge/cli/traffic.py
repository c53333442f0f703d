"""`linkgauge traffic`: host threads and a device at one staging buffer, together and alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from linkgauge.model.errors import InputError

from . import options
from .options import Csv, Devices, Json, Label, Loops, MaxTime, NoVerify, Precision, Samples


def traffic(
    context: typer.Context,
    backend: Annotated[
        str | None,
        typer.Option(
            "--backend",
            metavar="NAME",
            help="cuda, opencl or host (threads in a device's stead); else the first with devices.",
        ),
    ] = None,
    device: Devices = None,
    by: Annotated[
        str, typer.Option("--by", metavar="sm|ce", help="Which of the device's engines copies.")
    ] = "sm",
    streams: Annotated[
        int, typer.Option("--streams", metavar="N", help="Streams of small transfers (tiles).")
    ] = 32,
    piece: Annotated[
        str, typer.Option("--piece", metavar="SIZE", help="Bytes of a small transfer.")
    ] = "4K",
    payload: Annotated[
        str, typer.Option("--payload", metavar="SIZE", help="Bytes of a kernel's access (cuda).")
    ] = "256",
    size: Annotated[
        str, typer.Option("--buffer", metavar="SIZE", help="Bytes of the staging buffer.")
    ] = "16M",
    threads: Annotated[
        int | None,
        typer.Option("--threads", metavar="N", help="Host threads; else all CPUs but one."),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option("--duration", metavar="SECONDS", help="Measure each cell for so long."),
    ] = None,
    repeat: Annotated[
        int, typer.Option("--repeat", metavar="N", help="Measure everything N times.")
    ] = 1,
    min_device: Annotated[
        float,
        typer.Option("--min-device-bandwidth", metavar="GB/s", help="Fail where it is less."),
    ] = 0.0,
    min_host: Annotated[
        float, typer.Option("--min-host-bandwidth", metavar="GB/s", help="Fail where it is less.")
    ] = 0.0,
    samples: Samples = None,
    loops: Loops = None,
    precision: Precision = None,
    max_time: MaxTime = None,
    timeout: options.Timeout = None,
    no_verify: NoVerify = False,
    host_kernel: options.HostKernel = None,
    untuned: options.Untuned = False,
    label: Label = "traffic",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Keep the run below this folder.")
    ] = None,
    machine: options.Machine = None,
    fault: options.Faults = None,
    wait: options.Wait = False,
    json: Json = False,
    csv: Csv = False,
) -> int:
    """Measure host threads and a device that use one staging buffer at the same time.

    Example: linkgauge traffic --streams 16 --duration 5 --min-host-bandwidth 10
    """
    import msgspec

    from linkgauge.benchmarks.table import Fabric
    from linkgauge.benchmarks.traffic import EVERYTHING, lay_out, make_pieces, sides_of
    from linkgauge.engine.locks import devices_measured, hold
    from linkgauge.engine.plan import fabrics, make_plan
    from linkgauge.engine.supervisor import Supervisor
    from linkgauge.judge.thresholds import objection
    from linkgauge.model.units import parse_size
    from linkgauge.report.terminal import make_console

    from .resume import in_effect
    from .session import (
        Display,
        carry_out,
        choose_backends,
        choose_document,
        make_engines,
        make_settings,
        make_simulation,
    )

    document = choose_document(json, csv)
    _check_duration(
        duration, {"--samples": samples, "--precision": precision, "--max-time": max_time}
    )
    _check_least("--min-device-bandwidth", min_device)
    _check_least("--min-host-bandwidth", min_host)
    if backend == "host" and device:
        raise InputError(f"there is no device {device[0]}: backend host has threads in its stead")
    pieces = make_pieces(parse_size(piece), parse_size(payload), streams)
    options.at_least_one("--threads", threads)
    options.at_least_one("--repeat", repeat)
    simulation = make_simulation(machine, fault)
    engines = make_engines(None, None, None, None, untuned, host_kernel=host_kernel)
    settings = make_settings(
        "standard", size, samples, loops, precision, max_time or duration, no_verify,
        engines, timeout, simulation,
    )  # fmt: skip
    settings = msgspec.structs.replace(
        settings,
        precision=0.0 if duration is not None else settings.precision,
        # A device's pieces have a shape of their own: nothing that was tuned is of them.
        engines=msgspec.structs.replace(engines, pieces=pieces, tuned=False),
    )
    accelerators, _ = choose_backends([backend] if backend else None, simulation)
    with closing(Supervisor(settings)) as worker:
        surveyed = worker.survey(accelerators)
        host = Fabric("host", surveyed.host.nodes)
        over = fabrics(surveyed, device or ())[0] if accelerators else host
        sides = sides_of(over, by, streams, threads)
        benchmarks = lay_out(EVERYTHING, sides, over.backend) * repeat
        plan = make_plan(benchmarks, surveyed, settings.sizes)
        judged = partial(objection, least_device=min_device * 1e9, least_host=min_host * 1e9)
        with hold(
            devices_measured(surveyed, plan), wait=wait, tell=make_console(stderr=True).print
        ):
            return carry_out(
                worker, surveyed, plan, settings,
                label=label, out=out, display=Display(document, objection=judged),
                options=in_effect(context, settings),
            )  # fmt: skip


def _check_duration(duration: float | None, others: Mapping[str, object]) -> None:
    """Raises InputError for a duration that is none, or beside an option that also tells when a
    cell is done."""
    if duration is None:
        return
    if not (math.isfinite(duration) and duration > 0):
        raise InputError(f"--duration {duration:g} must be a positive number of seconds")
    for name, value in others.items():
        if value is not None:
            raise InputError(f"--duration and {name} both tell how long to measure: give one")


def _check_least(name: str, least: float) -> None:
    if not least >= 0:
        raise InputError(f"{name} {least:g}: give GB/s, 0 or more")
