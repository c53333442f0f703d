"""The command `linkgauge watch`."""

from __future__ import annotations

from pathlib import Path

from linkgauge.cli import common
from linkgauge.cli.help_text import OUTPUT, WHAT, WHEN
from linkgauge.cli.options import Count, Options, Time, argument, option
from linkgauge.cli.proposals import benchmark_names
from linkgauge.model.errors import InputError


class WatchOptions(Options):
    benchmarks: tuple[str, ...] = argument(
        "BENCHMARK...",
        "Probe these benchmarks. Default: copies between host and devices and between devices; "
        "without devices, between the host's nodes.",
        offer=benchmark_names,
    )
    prefix: tuple[str, ...] = common.PREFIX
    backend: tuple[str, ...] = common.BACKEND
    device: tuple[str, ...] = common.DEVICE
    size: str | None = common.SIZE
    samples: Count = option(WHAT, "Take N samples of each cell in a probe.", "N", default=3)
    every: Time = option(
        WHEN, "Probe this often: 10s, 15m. Default: 1h.", "TIME", default=3600.0, show_default=False
    )
    budget: str = option(
        WHEN, "Keep devices busy for at most this share of the time.", "P", default="0.1%"
    )
    duration: Time | None = option(
        WHEN, "End after this long: 8h, 30d. Default: never.", "TIME", "--for"
    )
    probes: Count | None = option(WHEN, "End after N probes.", "N")
    least: str | None = option(
        OUTPUT,
        "Report a cell that is slower than usual by this much. Default: 3%; 10% where single "
        "figures of healthy machines vary by more than 3%.",
        "P",
    )
    label: str = option(
        OUTPUT,
        "Compare with the runs of this label, and give it to the probes.",
        "TEXT",
        default="watch",
    )
    out: Path | None = option(OUTPUT, "Also keep each probe in a folder below this one.", "DIR")
    as_json: bool = option(OUTPUT, "Write each event as a line of JSON.", flags="--json")
    simulated: common.SimulatedOrListed


def watch(asked: WatchOptions) -> int:
    """Probe every link now and then, and report one that gets worse.

    A probe measures the next cells that the budget allows, and omits busy devices. The figures go
    to the history. Ctrl-C ends the watch.

    Examples:
        linkgauge watch --every 1h --budget 0.1%
        linkgauge watch --every 10s --budget 5% --for 10m
        linkgauge watch --probes 1 --json"""
    from msgspec.structs import replace

    from linkgauge.cli.requests import request_of, settings_of
    from linkgauge.engine.request import Selection
    from linkgauge.model.settings import EngineSettings
    from linkgauge.model.units import parse_fraction

    from .probes import Asked, WallClock, begin, teller

    if asked.size is not None and "," in asked.size:
        raise InputError("--size: a watch measures one size")
    is_default = not asked.benchmarks and not asked.prefix
    what = Selection(DEVICES if is_default else asked.benchmarks, asked.prefix)
    sampling = common.Sampling(samples=asked.samples)
    engines = EngineSettings(tunes=False)  # which take longer than any probe
    settings = settings_of("quick", asked.size, sampling, engines, asked.simulated)
    request = request_of(asked, what, settings, "quick")
    otherwise = replace(request, what=Selection(HOST)) if is_default and not asked.device else None
    probing = Asked(
        request=request,
        every=asked.every,
        budget=parse_fraction(asked.budget, "--budget"),
        least=None if asked.least is None else parse_fraction(asked.least, "--least"),
        seconds=asked.duration,
        probes=asked.probes,
    )
    return begin(probing, otherwise, teller(as_json=asked.as_json), WallClock())


DEVICES = (
    "host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "device_to_device_memcpy_read_ce",
)  # fmt: skip
HOST = ("host_to_host_memcpy_copy_cpu",)
