"""`linkgauge watch`: short probes of every link now and then, and a line when one gets worse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linkgauge.cli.help_text import OUTPUT, WHAT, WHEN
from linkgauge.cli.options import TIME, Option, Simulated, complete_benchmark, headed, own
from linkgauge.model.errors import InputError


@own(
    **headed(
        WHEN,
        every=Option("Probe this often: 10s, 15m, 1h.", TIME),
        budget=Option("Keep devices busy for at most this share of the time.", "P"),
        duration=Option("End after this long: 8h, 30d. Default: never.", TIME, flag="--for"),
        probes=Option("End after N probes.", "N"),
    ),
    samples=Option("Take N samples of each cell in a probe.", "N", heading=WHAT),
    **headed(
        OUTPUT,
        least=Option("Report a cell that is slower than usual by this much.", "P"),
        label=Option("Compare with the runs of this label, and give it to the probes.", "TEXT"),
        out=Option("Also keep each probe in a folder below this one.", "DIR"),
        as_json=Option("Write each event as a line of JSON.", flag="--json"),
    ),
)
def watch(
    context: typer.Context,
    *,
    benchmarks: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="BENCHMARK...",
            help="Probe these benchmarks. Default: copies between host and devices and between "
            "devices; without devices, between the host's nodes.",
            autocompletion=complete_benchmark,
        ),
    ] = None,
    prefix: list[str] | None = None,
    backend: list[str] | None = None,
    device: list[str] | None = None,
    size: str | None = None,
    samples: int = 3,
    every: float = 3600.0,
    budget: str = "0.1%",
    duration: float | None = None,
    probes: int | None = None,
    least: str = "10%",
    label: str = "watch",
    out: Path | None = None,
    as_json: bool = False,
    simulated: Simulated,
    list_faults: bool = False,
) -> int:
    """Probe every link now and then, and report one that gets worse.

    A probe measures as many cells as the budget allows, in turn, and leaves busy devices alone. Its
    figures go to the history. Ctrl-C ends it.

    Examples:
        linkgauge watch --every 1h --budget 0.1%
        linkgauge watch --every 10s --budget 5% --for 10m
        linkgauge watch --probes 1 --json
    """
    from msgspec.structs import replace

    from linkgauge.cli import requests
    from linkgauge.cli.options import Sampling, at_least_one
    from linkgauge.cli.options_record import request_of
    from linkgauge.cli.simulation import simulation_of
    from linkgauge.engine.request import Selection
    from linkgauge.model.settings import EngineSettings
    from linkgauge.model.units import parse_fraction

    from .probes import Asked, WallClock, begin, teller

    if size is not None and "," in size:
        raise InputError("--size: a watch measures one size")
    simulation = simulation_of(*simulated)
    sampling = Sampling(samples=at_least_one("--samples", samples))
    engines = EngineSettings(searches=False)  # which take longer than any probe
    settings = requests.settings_of("quick", size, sampling, engines, simulation)
    named, begun = tuple(benchmarks or ()), tuple(prefix or ())
    is_default = not named and not begun
    request = request_of(
        context, Selection(DEVICES if is_default else named, begun), settings,
        label=label, out=out, profile=None if size else "quick", backends=tuple(backend or ()),
        devices=tuple(device or ()),
    )  # fmt: skip
    otherwise = replace(request, what=Selection(HOST)) if is_default and not device else None
    asked = Asked(
        request=request,
        every=every,
        budget=parse_fraction(budget, "--budget"),
        least=parse_fraction(least, "--least"),
        seconds=duration,
        probes=at_least_one("--probes", probes),
    )
    return begin(asked, otherwise, teller(as_json=as_json), WallClock())


DEVICES = (
    "host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "device_to_device_memcpy_read_ce",
)  # fmt: skip
HOST = ("host_to_host_memcpy_copy_cpu",)
