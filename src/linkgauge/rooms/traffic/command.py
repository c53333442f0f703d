"""`linkgauge traffic`: host threads and a device at one staging buffer, together and alone."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import typer

from linkgauge.cli.help_text import ENGINES, OUTPUT, PRECISION, WHAT
from linkgauge.cli.options import (
    TIME,
    Option,
    RunFormat,
    Sampling,
    Shape,
    Simulated,
    at_least_one,
    headed,
    own,
)
from linkgauge.model.errors import InputError


@own(
    **headed(
        WHAT,
        backend=Option(
            "Use cuda, opencl, or host (threads instead of a device). Default: the first that has "
            "devices.",
            "NAME",
        ),
        piece=Option("Move this many bytes in each small transfer.", "SIZE"),
        payload=Option("Move this many bytes in each access of a kernel (cuda).", "SIZE"),
        size=Option(
            "Use a staging buffer of this many bytes; 1M:64M:x2 is a sweep.",
            "SIZE[,SIZE…]",
            "--buffer",
        ),
    ),
    **headed(
        PRECISION,
        duration=Option("Measure each cell for this long: 5, 5s, 2m.", TIME),
        repeat=Option("Measure everything N times.", "N"),
    ),
    **headed(
        OUTPUT,
        min_device=Option("Fail if the device moves less.", "GB/s", "--min-device-bandwidth"),
        min_host=Option("Fail if the host threads move less.", "GB/s", "--min-host-bandwidth"),
    ),
    **headed(
        ENGINES,
        by=Option("Copy by this engine of the device.", "sm|ce"),
        streams=Option("Run N streams of small transfers (tiles).", "N"),
        threads=Option("Use N host threads. Default: one for each CPU but one.", "N"),
    ),
)
def traffic(
    context: typer.Context,
    *,
    backend: str | None = None,
    device: list[str] | None = None,
    by: str = "sm",
    streams: int = 32,
    piece: str = "4K",
    payload: str = "256",
    size: str = "16M",
    threads: int | None = None,
    duration: float | None = None,
    repeat: int = 1,
    min_device: float = 0.0,
    min_host: float = 0.0,
    sampling: Sampling,
    host_kernel: str | None = None,
    untuned: bool = False,
    label: str = "traffic",
    out: Path | None = None,
    no_report: bool = False,
    simulated: Simulated,
    utilization: bool = False,
    wait: bool = False,
    no_verdict: bool = False,
    form: RunFormat,
) -> int:
    """Measure host threads and a device that share a staging buffer.

    Examples:
        linkgauge traffic --buffer 16M --by ce
        linkgauge traffic --streams 16 --duration 5
    """
    import msgspec

    from linkgauge.cli.options_record import request_of
    from linkgauge.cli.requests import carry_out, engines_of, settings_of
    from linkgauge.cli.simulation import simulation_of
    from linkgauge.model.units import parse_size
    from linkgauge.report.live import Display

    from .benchmarks import StagedTraffic, make_pieces, objection

    _check_duration(duration, sampling)
    _check_least("--min-device-bandwidth", min_device)
    _check_least("--min-host-bandwidth", min_host)
    if backend == "host" and device:
        raise InputError(f"there is no device {device[0]}: backend host uses threads instead")
    pieces = make_pieces(parse_size(piece), parse_size(payload), streams)
    at_least_one("--threads", threads)
    at_least_one("--repeat", repeat)
    simulation = simulation_of(*simulated)
    engines = engines_of(Shape(untuned=untuned), host_kernel)
    sampling = sampling._replace(max_time=sampling.max_time or duration)
    settings = settings_of("standard", size, sampling, engines, simulation)
    settings = msgspec.structs.replace(
        settings,
        precision=0.0 if duration is not None else settings.precision,
        # A device's pieces have their own shape: tuned settings do not apply.
        engines=msgspec.structs.replace(engines, pieces=pieces, tuned=False),
    )
    request = request_of(
        context, StagedTraffic(by, streams, threads, repeat), settings,
        label=label, out=out, wait=wait,
        backends=(backend,) if backend else (), devices=tuple(device or ()),
    )  # fmt: skip
    judged = partial(objection, least_device=min_device * 1e9, least_host=min_host * 1e9)
    display = Display(
        form, utilization, objection=judged, verdict=not no_verdict, page=not no_report
    )
    return carry_out(request, display)


def _check_duration(duration: float | None, sampling: Sampling) -> None:
    """Raises InputError for a duration combined with an option that also
    limits a cell."""
    if duration is None:
        return
    for name in ("samples", "precision", "max_time"):
        if getattr(sampling, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"--duration and {option} both set how long to measure: give one")


def _check_least(name: str, least: float) -> None:
    if not least >= 0:
        raise InputError(f"{name} {least:g}: give GB/s, 0 or more")
