"""`linkgauge as`: takes another tool's command line and prints that tool's output."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .options import OPTIONS, Option, complete_machine, own

CONTEXT = {"allow_interspersed_args": False}
"""Everything after the tool's name belongs to the tool, also -h."""


def complete_tool(incomplete: str) -> list[str]:
    from linkgauge.compat import TOOLS

    return [name for name in TOOLS if name.startswith(incomplete)]


@own(
    backend=Option(
        "cuda, opencl or host; else the first that has devices.",
        "NAME",
        more={"envvar": "LINKGAUGE_BACKEND"},
    ),
    machine=OPTIONS["machine"]._replace(
        more={"envvar": "LINKGAUGE_MACHINE", "autocompletion": complete_machine}
    ),
)
def as_tool(
    tool: Annotated[
        str,
        typer.Argument(metavar="TOOL", help="One of those above.", autocompletion=complete_tool),
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGUMENTS", help="That tool's own, also -h.")
    ] = None,
    backend: str | None = None,
    machine: str | None = None,
    fault: list[str] | None = None,
    wait: bool = False,
) -> int:
    """Take another tool's command line and print that tool's output.

    Options of linkgauge stand before the tool's name, all that follows it is the tool's own.

    \b
    Example: linkgauge as nvbandwidth -t device_to_device_memcpy_read_ce -j
             linkgauge as --machine ppu-8 sailbandwidth -t one_to_all_write_sm -i 1
             linkgauge as --machine rbln-32 rblnBandwidthLatencyTest --tc 3 --npu_id_list 0,1
             linkgauge as --machine ipu-m2000 gc-hosttraffictest -d 0 -j
             linkgauge as bandwidthTest --memory=pageable --htod
             linkgauge as p2pBandwidthLatencyTest --p2p_read
             linkgauge as bandwidth_test --size 256M --iter 10 --out bandwidth.csv
             linkgauge as all_reduce_perf -b 8 -e 8G -f 2 -g 8
             linkgauge as ping_pong --iter 10000 --size 64 --out latency.csv
             linkgauge as setup_vcpu_benchmarks
             linkgauge as run_vcpu_benchmark pinned
    """
    from linkgauge.compat import TOOLS
    from linkgauge.compat import tool as speak
    from linkgauge.compat.base import Where
    from linkgauge.engine.request import choose_backends
    from linkgauge.model.errors import InputError, LinkgaugeError

    from .requests import simulation_of

    if tool not in TOOLS:
        raise InputError(f"unknown tool {tool!r}: there are {', '.join(TOOLS)}")
    simulation = simulation_of(machine, fault)
    choose_backends((backend,) if backend else (), simulation)
    try:
        return speak(tool)(arguments or (), Where(backend or None, simulation, wait))
    except LinkgaugeError as error:
        sys.stdout.flush()
        print(f"{tool}: {error}", file=sys.stderr)
        return error.exit_code
