"""The command `linkgauge capture`."""

from __future__ import annotations

import sys
from pathlib import Path

from linkgauge.cli import common
from linkgauge.cli.devices import open_root, read, survey
from linkgauge.cli.help_text import OTHER
from linkgauge.cli.options import Options, argument, option


class CaptureOptions(Options):
    file: Path = argument("FILE.tgz", "Write this file; - is stdout.", required=True)
    anonymize: bool = option(
        OTHER, "Replace host names, serial numbers, UUIDs, MAC and IP addresses."
    )
    root: Path | None = common.ROOT
    backend: tuple[str, ...] = common.BACKEND


def capture(asked: CaptureOptions) -> int:
    """Save what linkgauge reads of this machine in one file, without secrets.

    The file holds each file that linkgauge reads, and what vendors' tools print. An existing file
    is never overwritten.

    Examples:
        linkgauge capture machine.tgz
        linkgauge capture machine.tgz --anonymize
    """
    from linkgauge.machine.captures.archive import STDOUT, check_new, write_archive
    from linkgauge.machine.captures.capture import capture as captured
    from linkgauge.machine.tree import ROOT as HERE
    from linkgauge.report.sections.machine import for_root

    file = asked.file
    check_new(file)
    place = HERE if asked.root is None else open_root(asked.root)
    machine = survey(asked.backend) if asked.root is None else read(place)
    tree = captured(place, machine, anonymous=asked.anonymize)
    write_archive(file, tree)
    is_streamed = file == STDOUT
    if not is_streamed:
        print(f"{file}: {len(tree.files)} files; to inspect: linkgauge devices --root {file}")
    for line in for_root(machine.inventory):
        print(f"not read: {line}", file=sys.stderr if is_streamed else sys.stdout)
    return 0
