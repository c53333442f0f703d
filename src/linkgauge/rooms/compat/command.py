"""`linkgauge as`: takes another tool's command line and prints that tool's output."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from linkgauge.cli.help_text import WHAT
from linkgauge.cli.options import OPTIONS, Option, complete_machine, own
from linkgauge.registry import loaded, named

CONTEXT = {"allow_interspersed_args": False}
"""Everything after the tool's name belongs to the tool, also -h."""

_OWN = ("--backend", "--machine", "--fault", "--wait")


def complete_tool(incomplete: str) -> list[str]:
    return [name for name in named("tools") if name.startswith(incomplete)]


@own(
    backend=Option(
        "Use cuda, opencl or host. Default: the first that has devices.",
        "NAME",
        heading=WHAT,
        more={"envvar": "LINKGAUGE_BACKEND"},
    ),
    machine=OPTIONS["machine"]._replace(
        more={"envvar": "LINKGAUGE_MACHINE", "autocompletion": complete_machine}
    ),
)
def as_tool(
    tool: Annotated[
        str,
        typer.Argument(metavar="TOOL", help="Act as this tool.", autocompletion=complete_tool),
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="ARGUMENTS...", help="Arguments of that tool, -h included."),
    ] = None,
    backend: str | None = None,
    machine: str | None = None,
    fault: list[str] | None = None,
    wait: bool = False,
) -> int:
    """Run another tool's command line, and print that tool's output.

    Options of linkgauge stand before the name of the tool; everything after it belongs to the tool.

    TOOL is nvbandwidth, sailbandwidth, rblnBandwidthLatencyTest, gc-hosttraffictest, bandwidthTest,
    p2pBandwidthLatencyTest, bandwidth_test, ping_pong, rocm-bandwidth-test, TransferBench,
    setup_vcpu_benchmarks, run_vcpu_benchmark, generate_report,
    or one of nccl-tests: all_reduce_perf, all_gather_perf, reduce_scatter_perf, broadcast_perf,
    reduce_perf, alltoall_perf, gather_perf, scatter_perf, sendrecv_perf, hypercube_perf.

    Examples:
        linkgauge as nvbandwidth -t host_to_device_memcpy_ce
        linkgauge as all_reduce_perf -b 8 -e 8G -f 2 -g 8
        linkgauge as --machine ppu-8 sailbandwidth --list
    """
    from linkgauge.cli.simulation import simulation_of
    from linkgauge.cli.tool import Where
    from linkgauge.engine.request import choose_backends
    from linkgauge.model.errors import InputError, LinkgaugeError
    from linkgauge.model.names import hint

    tools = named("tools")
    if tool not in tools:
        raise InputError(f"unknown tool {tool!r}{hint(tool, tools)}")
    simulation = simulation_of(machine, fault)
    choose_backends((backend,) if backend else (), simulation)
    try:
        code: int = loaded(tools[tool])(
            arguments or (), Where(backend or None, simulation, wait, tool)
        )
    except LinkgaugeError as error:
        sys.stdout.flush()
        print(f"{tool}: {error}", file=sys.stderr)
        code = error.exit_code
    misplaced = [one for one in arguments or () if one.partition("=")[0] in _OWN]
    if code and misplaced:
        right = f"linkgauge as {misplaced[0]} … {tool}"
        print(f"linkgauge: {misplaced[0]} goes before the tool: {right}", file=sys.stderr)
    return code
