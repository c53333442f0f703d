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
        str,
        typer.Argument(
            metavar="TRANSFERS", help="Measure these; '&' joins those that run at once."
        ),
    ],
    profile: str = "standard",
    size: str | None = None,
    sampling: Sampling,
    shape: Shape,
    host_kernel: str | None = None,
    label: str = "copy",
    out: Path | None = None,
    no_report: bool = False,
    simulated: Simulated,
    list_faults: bool = False,
    utilization: bool = False,
    wait: bool = False,
    profiling: Profiling,
    no_verdict: bool = False,
    form: RunFormat,
) -> int:
    """Measure transfers that you write down, all at the same time.

    A transfer is MEMORY -> MEMORY by ENGINE; ce is a copy engine, sm a kernel, cpu host threads.

    Examples:
        linkgauge copy "cuda:0 -> cuda:1 by ce" --size 256M
        linkgauge copy "host:0 -> cuda:0 & cuda:0 -> host:0"
    """
    from linkgauge.engine.request import Written
    from linkgauge.report.live import Display

    from .options_record import request_of
    from .requests import carry_out, engines_of, settings_of, under
    from .simulation import simulation_of

    engines = engines_of(shape, host_kernel)
    settings = settings_of(profile, size, sampling, engines, simulation_of(*simulated))
    settings = under(profiling, settings, out)
    request = request_of(
        context, Written(transfers), settings,
        label=label, out=out, wait=wait, profile=None if size else profile,
    )  # fmt: skip
    return carry_out(
        request,
        Display(form, utilization, verdict=not no_verdict, matrix=True, page=not no_report),
    )
