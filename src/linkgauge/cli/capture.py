"""`linkgauge capture`: everything that is read of a machine, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .devices import open_root, read, survey
from .options import Option, own


@own(anonymize=Option("Replace host names, serials, UUIDs, MAC and IP addresses."))
def capture(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.tgz", help="Where it is kept; - is stdout.")
    ],
    anonymize: bool = False,
    root: Path | None = None,
    backend: list[str] | None = None,
) -> int:
    """Keep every file that is read of this machine, and what its vendors' tools say, without
    secrets.

    FILE - is standard output. A file that exists is left as it is.

    Example: linkgauge capture machine.tgz --anonymize
    """
    from linkgauge.machine.archive import STDOUT, check_new, write_archive
    from linkgauge.machine.capture import capture as captured
    from linkgauge.machine.tree import ROOT
    from linkgauge.report.gaps import for_root

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
