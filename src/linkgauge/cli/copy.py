"""`linkgauge copy`: measures transfers that the user writes down."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import Profiling, RunFormat, Sampling, Shape, Simulated


def copy(
    context: typer.Context,
    *,
    transfers: Annotated[
        str, typer.Argument(help="Transfers in the notation; '&' joins those that run at once.")
    ],
    profile: str = "standard",
    size: str | None = None,
    sampling: Sampling,
    shape: Shape,
    host_kernel: str | None = None,
    label: str = "copy",
    out: Path | None = None,
    simulated: Simulated,
    list_faults: bool = False,
    utilization: bool = False,
    wait: bool = False,
    profiling: Profiling,
    no_verdict: bool = False,
    form: RunFormat,
) -> int:
    """Measure transfers given in the notation, all at the same time.

    Example: linkgauge copy "host:0 -> opencl:0 by ce & opencl:0 -> host:0 by ce" --size 256M
    """
    from linkgauge.engine.request import Written
    from linkgauge.report.live import Display

    from .options_record import request_of
    from .requests import carry_out, engines_of, settings_of, simulation_of, under

    engines = engines_of(shape, host_kernel)
    settings = settings_of(profile, size, sampling, engines, simulation_of(*simulated))
    settings = under(profiling, settings, out)
    request = request_of(
        context, Written(transfers), settings,
        label=label, out=out, wait=wait, profile=None if size else profile,
    )  # fmt: skip
    return carry_out(request, Display(form, utilization, verdict=not no_verdict))
