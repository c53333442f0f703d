"""`linkgauge pack`: a kept run as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import Option, own


@own(
    anonymize=Option("Replace host names, users, serials, UUIDs, MACs, paths and labels."),
    output=Option("The archive's name (else RUN-ID.tar.zst); - is stdout.", "FILE", flag="-o"),
)
def pack(
    *,
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUN",
            help="Pack the run in this folder. Default: the latest run of this machine.",
        ),
    ] = None,
    anonymize: bool = False,
    output: Path | None = None,
) -> int:
    """Pack a kept run into one file, also without names.

    The file holds samples, journal, machine and report. An existing file is never overwritten.
    `tar --zstd -x` unpacks it; `linkgauge show` and `export` read it.

    Examples:
        linkgauge pack results/cpu/default/20261121T201500Z
        linkgauge pack --anonymize -o run.tar.zst
    """
    from linkgauge.engine.runs import PACKED, one_run
    from linkgauge.machine.archive import STDOUT, check_new, write_new
    from linkgauge.report.pack import pack_run

    if output is not None:
        check_new(output)
    packed = pack_run(one_run(run, "pack"), anonymous=anonymize)
    path = output or Path(f"{packed.id}{PACKED}")
    write_new(path, packed.content)
    is_streamed = path == STDOUT
    typer.echo(f"packed: {path}: {', '.join(packed.names)}", err=is_streamed)
    for name in packed.left_out:
        typer.echo(f"left out, because it cannot be anonymised: {name}", err=is_streamed)
    return 0
