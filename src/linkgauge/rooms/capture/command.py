"""`linkgauge capture`: everything that is read of a machine, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linkgauge.cli.devices import open_root, read, survey
from linkgauge.cli.options import Option, own


@own(anonymize=Option("Replace host names, serial numbers, UUIDs, MAC and IP addresses."))
def capture(
    file: Annotated[Path, typer.Argument(metavar="FILE.tgz", help="Write this file; - is stdout.")],
    anonymize: bool = False,
    root: Path | None = None,
    backend: list[str] | None = None,
) -> int:
    """Save what is read of this machine in one file, without secrets.

    The file holds each file that linkgauge reads, and what vendors' tools print. An existing file
    is never overwritten.

    Examples:
        linkgauge capture machine.tgz
        linkgauge capture machine.tgz --anonymize
    """
    from linkgauge.machine.archive import STDOUT, check_new, write_archive
    from linkgauge.machine.capture import capture as captured
    from linkgauge.machine.tree import ROOT
    from linkgauge.report.sections.host import for_root

    check_new(file)
    place = ROOT if root is None else open_root(root)
    machine = survey(backend) if root is None else read(place)
    tree = captured(place, machine, anonymous=anonymize)
    write_archive(file, tree)
    is_streamed = file == STDOUT
    if not is_streamed:
        typer.echo(f"{file}: {len(tree.files)} files; to look: linkgauge devices --root {file}")
    for line in for_root(machine.inventory):
        typer.echo(f"not read: {line}", err=is_streamed)
    return 0
