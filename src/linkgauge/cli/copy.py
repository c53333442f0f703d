"""`linkgauge copy`: measures transfers that the user writes down."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from . import options
from .options import Csv, Json, Label, Loops, MaxTime, NoVerify, Precision, Profile, Samples, Size


def copy(
    context: typer.Context,
    transfers: Annotated[
        str, typer.Argument(help="Transfers in the notation; '&' joins those that run at once.")
    ],
    profile: Profile = "standard",
    size: Size = None,
    samples: Samples = None,
    loops: Loops = None,
    precision: Precision = None,
    max_time: MaxTime = None,
    timeout: options.Timeout = None,
    no_verify: NoVerify = False,
    kernel: options.Kernel = None,
    blocks: options.Blocks = None,
    threads: options.Threads = None,
    streams: options.Streams = None,
    untuned: options.Untuned = False,
    no_affinity: options.NoAffinity = False,
    host_kernel: options.HostKernel = None,
    label: Label = "copy",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Keep the run below this folder.")
    ] = None,
    machine: options.Machine = None,
    fault: options.Faults = None,
    list_faults: options.ListFaults = False,
    wait: options.Wait = False,
    json: Json = False,
    csv: Csv = False,
) -> int:
    """Measure transfers given in the notation, all at the same time.

    Example: linkgauge copy "host:0 -> opencl:0 by ce & opencl:0 -> host:0 by ce" --size 256M
    """
    from linkgauge.engine.locks import devices_measured, hold
    from linkgauge.engine.plan import check_exists, make_plan
    from linkgauge.engine.supervisor import Supervisor
    from linkgauge.model.notation import parse_transfers
    from linkgauge.model.transfer import Benchmark, Cell, Report
    from linkgauge.report.terminal import make_console

    from .resume import in_effect
    from .session import (
        Display,
        carry_out,
        check_shape,
        choose_document,
        make_engines,
        make_settings,
        make_simulation,
    )

    document = choose_document(json, csv)
    engines = make_engines(
        kernel, blocks, threads, streams, untuned, no_affinity, host_kernel=host_kernel
    )
    settings = make_settings(
        profile, size, samples, loops, precision, max_time, no_verify, engines, timeout,
        make_simulation(machine, fault),
    )  # fmt: skip
    parsed = parse_transfers(transfers)
    spaces = {place.backend for t in parsed for place in (*t.memories, t.engine.owner)} - {"host"}
    report = Report.TOTAL if len(parsed) > 1 or parsed[0].both_ways else Report.FIRST
    if any(memory.is_staging for transfer in parsed for memory in transfer.memories):
        report = Report.SUM  # host threads go on as long as others do: loops say nothing of them
    cell = Cell("0", "0", parsed, report)
    with closing(Supervisor(settings)) as worker:
        surveyed = worker.survey(sorted(spaces))
        check_exists(parsed, surveyed)
        benchmark = Benchmark("copy", str(cell), "+".join(sorted(spaces)) or "host", (cell,))
        plan = make_plan((benchmark,), surveyed, settings.sizes, profile=None if size else profile)
        check_shape(engines, plan)
        with hold(
            devices_measured(surveyed, plan), wait=wait, tell=make_console(stderr=True).print
        ):
            return carry_out(
                worker, surveyed, plan, settings,
                label=label, out=out, display=Display(document),
                options=in_effect(context, settings),
            )  # fmt: skip
