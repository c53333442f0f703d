"""`linkgauge scale`: a collective over more and more devices, and where it stops to scale."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linkgauge.cli.help_text import OUTPUT, WHAT
from linkgauge.cli.options import Option, Sampling, Simulated, own
from linkgauge.report.formats import Format

from .documents import SCALING


def _complete_collective(incomplete: str) -> list[str]:
    from linkgauge.model.collective import COLLECTIVE_NAMES

    return [name for name in COLLECTIVE_NAMES if name.startswith(incomplete)]


@own(
    gpus=Option(
        "Use these numbers of devices: 1,2,4,8. Default: powers of two, and all.",
        "N[,N…]",
        heading=WHAT,
    ),
    nodes=Option(
        "Use one device of each of these numbers of nodes, on the first rail: 1,2,4.",
        "N[,N…]",
        heading=WHAT,
    ),
    size=Option(
        "Move this many bytes: 1M, 8:512M:x4. Default: 8 B to 512 MiB by factors of 4.",
        "SIZE",
        heading=WHAT,
    ),
    out=Option("Keep runs below this folder.", "DIR", heading=OUTPUT),
)
def scale(
    context: typer.Context,
    *,
    collective: Annotated[
        str,
        typer.Argument(
            metavar="COLLECTIVE",
            help="Measure this one: all_reduce, alltoall …",
            autocompletion=_complete_collective,
            show_default=True,
        ),
    ] = "all_reduce",
    gpus: str | None = None,
    nodes: str | None = None,
    backend: list[str] | None = None,
    device: list[str] | None = None,
    size: str | None = None,
    sampling: Sampling,
    label: str = "scale",
    out: Path = Path("results"),
    no_report: bool = False,
    simulated: Simulated,
    list_faults: bool = False,
    wait: bool = False,
    form: Annotated[Format, SCALING],
) -> int:
    """Measure a collective on more and more devices.

    Shows up to which number of devices it scales, and what slows it down.

    Examples:
        linkgauge scale all_reduce
        linkgauge scale alltoall --gpus 1,2,4,8 --size 64M
        linkgauge scale --machine fat-tree-64 --nodes 1,2,4,64
    """
    from linkgauge.cli import requests
    from linkgauge.cli.options_record import request_of
    from linkgauge.cli.simulation import simulation_of
    from linkgauge.model.collective import COLLECTIVE_NAMES
    from linkgauge.model.errors import InputError
    from linkgauge.model.names import hint
    from linkgauge.model.settings import EngineSettings
    from linkgauge.report.live import Display

    from .benchmarks import Scaling
    from .carrying_out import carry_out

    if gpus is not None and nodes is not None:
        raise InputError("--gpus and --nodes exclude each other")
    counts = counts_of(gpus) if nodes is None else counts_of(nodes, "--nodes")
    name = next((one for one in COLLECTIVE_NAMES if one == collective), None)
    if name is None:
        near = hint(collective, COLLECTIVE_NAMES)
        raise InputError(f"unknown collective {collective!r}{near}")
    simulation = simulation_of(*simulated)
    settings = requests.settings_of("standard", size, sampling, EngineSettings(), simulation)
    request = request_of(
        context, Scaling(name, counts, nodes is not None), settings,
        label=label, out=out, wait=wait, profile=None if size else "standard",
        backends=tuple(backend or ()), devices=tuple(device or ()),
    )  # fmt: skip
    return carry_out(request, Display(form, page=not no_report))


def counts_of(text: str | None, option: str = "--gpus") -> tuple[int, ...]:
    """`1,2,4`, each once, the least first. Raises InputError for anything else."""
    from linkgauge.model.errors import InputError

    given = [] if text is None else [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and 0 < len(part) < 6 for part in given):
        what = "nodes" if option == "--nodes" else "devices"
        raise InputError(f"{option} {text}: give numbers of {what}, such as 1,2,4,8")
    counts = sorted({int(part) for part in given})
    if counts[:1] == [0]:
        raise InputError(f"{option} {text}: give 1 or more")
    return tuple(counts)
