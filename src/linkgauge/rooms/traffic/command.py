"""The command `linkgauge traffic`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from linkgauge.cli import common
from linkgauge.cli.help_text import ENGINES, OUTPUT, PRECISION, WHAT
from linkgauge.cli.options import Count, Options, Time, option
from linkgauge.model.errors import InputError


class TrafficOptions(Options):
    backend: str | None = option(
        WHAT,
        "Use cuda, opencl, or host (threads instead of a device). Default: the first that has "
        "devices.",
        "NAME",
        is_input=True,
    )
    device: tuple[str, ...] = common.DEVICE
    by: str = option(ENGINES, "Copy by this engine of the device.", "sm|ce", default="sm")
    streams: int = option(ENGINES, "Run N streams of small transfers (tiles).", "N", default=32)
    piece: str = option(WHAT, "Move this many bytes in each small transfer.", "SIZE", default="4K")
    payload: str = option(
        WHAT,
        "Let a kernel move this many bytes in each of its accesses (cuda).",
        "SIZE",
        default="256",
    )
    size: str = option(
        WHAT,
        "Use a staging buffer of this many bytes; 1M:64M:x2 is a sweep.",
        "SIZE[,SIZE…]",
        "--buffer",
        default="16M",
    )
    threads: Count | None = option(
        ENGINES, "Use N host threads. Default: one for each CPU but one.", "N"
    )
    duration: Time | None = option(PRECISION, "Measure each cell for this long: 5, 5s, 2m.", "TIME")
    repeat: Count = option(PRECISION, "Measure everything N times.", "N", default=1)
    min_device: float = option(
        OUTPUT, "Fail if the device moves less.", "GB/s", "--min-device-bandwidth", default=0.0
    )
    min_host: float = option(
        OUTPUT, "Fail if the host threads move less.", "GB/s", "--min-host-bandwidth", default=0.0
    )
    sampling: common.Sampling
    host_kernel: str | None = common.HOST_KERNEL
    untuned: bool = common.UNTUNED
    label: str = common.label("traffic")
    out: Path | None = common.OUT
    verbose: bool = common.VERBOSE
    no_report: bool = common.NO_REPORT
    simulated: common.Simulated
    utilization: bool = common.UTILIZATION
    wait: bool = common.WAIT
    no_verdict: bool = common.NO_VERDICT
    form: common.RunFormat


def traffic(asked: TrafficOptions) -> int:
    """Measure host threads and a device that share a staging buffer.

    Examples:
        linkgauge traffic --buffer 16M --by ce
        linkgauge traffic --streams 16 --duration 5"""
    import msgspec

    from linkgauge.cli.requests import engines_of, request_of, settings_of
    from linkgauge.model.units import parse_size
    from linkgauge.report.keeping import Display
    from linkgauge.uses.measuring import carry_out

    from .benchmarks import StagedTraffic, make_pieces, objection

    _check_duration(asked.duration, asked.sampling)
    for side, least in (("device", asked.min_device), ("host", asked.min_host)):
        if not least >= 0:
            raise InputError(f"--min-{side}-bandwidth {least:g}: give GB/s, 0 or more")
    backend = asked.backend
    if backend == "host" and asked.device:
        raise InputError(
            f"there is no device {asked.device[0]}: --backend host uses threads instead"
        )
    pieces = make_pieces(parse_size(asked.piece), parse_size(asked.payload), asked.streams)
    longest = asked.sampling.max_time or asked.duration
    sampling = common.Sampling(**vars(asked.sampling) | {"max_time": longest})
    engines = engines_of(common.Shape(untuned=asked.untuned), asked.host_kernel)
    settings = settings_of("standard", asked.size, sampling, engines, asked.simulated)
    settings = msgspec.structs.replace(
        settings,
        precision=0.0 if asked.duration is not None else settings.precision,
        # A device's pieces have their own shape: tuned settings do not apply.
        engines=msgspec.structs.replace(engines, pieces=pieces, tuned=False),
    )
    what = StagedTraffic(asked.by, asked.streams, asked.threads, asked.repeat)
    request = request_of(asked, what, settings, backends=(backend,) if backend else ())
    judged = partial(
        objection, least_device=asked.min_device * 1e9, least_host=asked.min_host * 1e9
    )
    display = Display(
        asked.form, asked.utilization, objection=judged,
        verdict=not asked.no_verdict, verbose=asked.verbose, page=not asked.no_report,
    )  # fmt: skip
    return carry_out(request, display)


def _check_duration(duration: float | None, sampling: common.Sampling) -> None:
    if duration is None:
        return
    for name in ("samples", "precision", "max_time"):
        if getattr(sampling, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"--duration and {option} both set how long to measure: give one")
