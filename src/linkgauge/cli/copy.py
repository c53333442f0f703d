"""`linkgauge copy`: measures transfers that the user writes down."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from . import options
from .options import Csv, Json, Label, Loops, MaxTime, NoVerify, Precision, Profile, Samples, Size


def copy(
    transfers: Annotated[
        str, typer.Argument(help="Transfers in the notation; '&' joins those that run at once.")
    ],
    profile: Profile = "standard",
    size: Size = None,
    samples: Samples = None,
    loops: Loops = None,
    precision: Precision = None,
    max_time: MaxTime = None,
    no_verify: NoVerify = False,
    kernel: options.Kernel = None,
    blocks: options.Blocks = None,
    threads: options.Threads = None,
    streams: options.Streams = None,
    untuned: options.Untuned = False,
    label: Label = "copy",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Keep the run below this folder.")
    ] = None,
    json: Json = False,
    csv: Csv = False,
) -> int:
    """Measure transfers given in the notation, all at the same time.

    Example: linkgauge copy "host:0 -> opencl:0 by ce & opencl:0 -> host:0 by ce" --size 256M
    """
    from linkgauge.engine.plan import check_exists, make_plan
    from linkgauge.engine.worker import LocalWorker
    from linkgauge.model.notation import parse_transfers
    from linkgauge.model.transfer import Benchmark, Cell, Report

    from .session import carry_out, choose_document, make_engines, make_settings

    document = choose_document(json, csv)
    engines = make_engines(kernel, blocks, threads, streams, untuned)
    settings = make_settings(profile, size, samples, loops, precision, max_time, no_verify, engines)
    parsed = parse_transfers(transfers)
    spaces = {place.backend for t in parsed for place in (*t.memories, t.engine.owner)} - {"host"}
    report = Report.TOTAL if len(parsed) > 1 or parsed[0].both_ways else Report.FIRST
    cell = Cell("0", "0", parsed, report)
    with closing(LocalWorker(engines)) as worker:
        machine = worker.survey(sorted(spaces))
        check_exists(parsed, machine)
        benchmark = Benchmark("copy", str(cell), "+".join(sorted(spaces)) or "host", (cell,))
        plan = make_plan((benchmark,), machine, settings.sizes)
        return carry_out(
            worker, machine, plan, settings,
            label=label, out=out, document=document,
        )  # fmt: skip
