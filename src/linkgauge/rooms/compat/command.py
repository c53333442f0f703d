"""The command `linkgauge as`: takes another tool's command line and prints that tool's output."""

from __future__ import annotations

import sys

from linkgauge.cli import common
from linkgauge.cli.help_text import WHAT
from linkgauge.cli.options import Options, argument, option
from linkgauge.registry import hook_of, loaded, named

CONTEXT = {"allow_interspersed_args": False}
"""The settings of the command's parser: everything after the tool's name (even -h) belongs to the
tool."""

_OWN = ("--backend", "--machine", "--fault", "--wait")


class AsOptions(Options):
    tool: str = argument("TOOL", "Act as this tool.", offer=lambda _: named("tools"), required=True)
    arguments: tuple[str, ...] = argument("ARGUMENTS...", "Arguments of that tool, -h included.")
    backend: str | None = option(
        WHAT,
        "Use cuda, opencl or host. Default: the first that has devices.",
        "NAME",
        envvar="LINKGAUGE_BACKEND",
        show_envvar=True,
        is_input=True,
    )
    machine: str | None = common.machine_option(envvar="LINKGAUGE_MACHINE", show_envvar=True)
    fault: tuple[str, ...] = common.FAULT
    wait: bool = common.WAIT


def as_tool(asked: AsOptions) -> int:
    """Take another tool's command line, measure, and print what that tool would.

    Options of linkgauge stand before the name of the tool; everything after it belongs to the tool.

    TOOL is nvbandwidth, sailbandwidth, rblnBandwidthLatencyTest, gc-hosttraffictest, bandwidthTest,
    p2pBandwidthLatencyTest, bandwidth_test, ping_pong, stream, sysbench,
    setup_vcpu_benchmarks, run_vcpu_benchmark, generate_report, or one of nccl-tests:
    all_reduce_perf, all_gather_perf, reduce_scatter_perf, broadcast_perf, reduce_perf,
    alltoall_perf, gather_perf, scatter_perf, sendrecv_perf, hypercube_perf.

    Examples:
        linkgauge as nvbandwidth -t host_to_device_memcpy_ce
        linkgauge as all_reduce_perf -b 8 -e 8G -f 2 -g 8
        linkgauge as --machine ppu-8 sailbandwidth --list
    """
    from linkgauge.cli.common import simulation_of
    from linkgauge.cli.tool import Where
    from linkgauge.cli.tool_options import UsageError
    from linkgauge.engine.request import choose_backends
    from linkgauge.machine.processes.launch import launched
    from linkgauge.model.errors import InputError, LinkgaugeError
    from linkgauge.model.names import hint

    tool, backend = asked.tool, asked.backend
    tools = named("tools")
    if tool not in tools:
        raise InputError(f"unknown tool {tool!r}{hint(tool, tools)}")
    simulation = simulation_of(asked.machine, asked.fault)
    choose_backends((backend,) if backend else (), simulation)
    try:
        where = Where(backend or None, simulation, asked.wait, tool)
        place, hook = tools[tool], hook_of("tools", tool)
        code = hook.exit_code(lambda: loaded(place)(asked.arguments, where))
    except LinkgaugeError as error:
        sys.stdout.flush()
        see = f"; see 'linkgauge as {tool} -h'" if isinstance(error, UsageError) else ""
        if not launched().rank:  # of the processes that mpirun started, the first says it
            print(f"{tool}: {error}{see}", file=sys.stderr)
        code = error.exit_code
    misplaced = [one for one in asked.arguments if one.partition("=")[0] in _OWN]
    if code and misplaced:
        right = f"linkgauge as {misplaced[0]} … {tool}"
        print(f"linkgauge: {misplaced[0]} goes before the tool: {right}", file=sys.stderr)
    return code
