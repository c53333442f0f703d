"""`linkgauge as`: takes another tool's command line and prints that tool's output."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import Faults, Wait, complete_machine

CONTEXT = {"allow_interspersed_args": False}
"""All that follows the tool's name is the tool's, also -h."""


def _complete_tool(incomplete: str) -> list[str]:
    from linkgauge.compat import TOOLS

    return [name for name in TOOLS if name.startswith(incomplete)]


def as_tool(
    tool: Annotated[
        str, typer.Argument(metavar="TOOL", help="Whose.", autocompletion=_complete_tool)
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGUMENTS]", help="That tool's own.")
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(
            "--backend",
            metavar="NAME",
            envvar="LINKGAUGE_BACKEND",
            help="cuda, opencl or host; else the first that has devices.",
        ),
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine",
            metavar="NAME|FILE.yml",
            envvar="LINKGAUGE_MACHINE",
            help="SIMULATED: measure a described machine, such as ppu-8, instead of this one.",
            autocompletion=complete_machine,
        ),
    ] = None,
    fault: Faults = None,
    wait: Wait = False,
) -> int:
    """Take another tool's command line and print that tool's output.

    Tools: nvbandwidth, sailbandwidth, rblnBandwidthLatencyTest, gc-hosttraffictest, bandwidthTest,
    p2pBandwidthLatencyTest, bandwidth_test. Options of linkgauge stand before the tool's name.

    Example: linkgauge as --machine ppu-8 nvbandwidth -t host_to_device_memcpy_ce
    """
    from linkgauge.compat import TOOLS
    from linkgauge.compat import tool as speak
    from linkgauge.compat.base import Where
    from linkgauge.model.errors import InputError

    from .session import choose_backends, make_simulation

    if tool not in TOOLS:
        raise InputError(f"unknown tool {tool!r}: there are {', '.join(TOOLS)}")
    simulation = make_simulation(machine, fault)
    choose_backends([backend] if backend else None, simulation)
    return speak(tool)(arguments or (), Where(backend or None, simulation, wait))
