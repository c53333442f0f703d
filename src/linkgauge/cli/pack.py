"""`linkgauge pack`: a kept run as one file."""

from __future__ import annotations

from pathlib import Path

import click

from .help_text import OTHER
from .options import Options, argument, option


class PackOptions(Options):
    run: Path | None = argument(
        "RUN", "Pack the run in this folder. Default: the latest run of this machine."
    )
    anonymize: bool = option(
        OTHER, "Replace host names, users, serials, UUIDs, MACs, paths and labels."
    )
    output: Path | None = option(
        OTHER, "The archive's name (else RUN-ID.tar.zst); - is stdout.", "FILE", "-o"
    )


def pack(asked: PackOptions) -> int:
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

    if asked.output is not None:
        check_new(asked.output)
    packed = pack_run(one_run(asked.run, "pack"), anonymous=asked.anonymize)
    path = asked.output or Path(f"{packed.id}{PACKED}")
    write_new(path, packed.content)
    is_streamed = path == STDOUT
    click.echo(f"packed: {path}: {', '.join(packed.names)}", err=is_streamed)
    for name in packed.left_out:
        click.echo(f"left out, because it cannot be anonymised: {name}", err=is_streamed)
    return 0
