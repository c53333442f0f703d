"""The commands `linkgauge pack` and `linkgauge share`."""

from __future__ import annotations

import sys
from pathlib import Path

from linkgauge.cli.help_text import OTHER
from linkgauge.cli.options import Options, argument, option
from linkgauge.cli.proposals import labels


class ShareOptions(Options):
    run: Path | None = argument(
        "RUN",
        "Share this run (its folder, run.json, a file of `pack`, or a label for its latest run). "
        "Default: the latest run of this machine.",
        offer=labels,
    )
    output: Path | None = option(
        OTHER, "The page (else linkgauge-RUN-ID.html); - is stdout.", "FILE.html", "-o"
    )


def share(asked: ShareOptions) -> int:
    """Write a run as a small page and a short text, both without names of hosts and users.

    The page is the report, anonymised as `pack --anonymize` does, in less than 1 MB. The page says
    what was left out. The text is six lines for a ticket: machine, verdict, figures, the
    first finding, what is not judged, and the page. An existing file is never overwritten. Exits
    with 0 however the run ended.

    Examples:
        linkgauge share -o run.html
        linkgauge share results/cpu/default/20261121T201500Z"""
    from linkgauge.engine.kept.folder import label_name
    from linkgauge.engine.kept.runs import one_run, read_run
    from linkgauge.machine.captures.archive import STDOUT, check_new, write_new

    from .page import card, shared, small_page

    if asked.output is not None:
        check_new(asked.output)
    found = read_run(one_run(asked.run, "share"))
    path = asked.output or Path(f"linkgauge-{label_name(found.id)}.html")
    check_new(path)
    one = shared(found)
    page = small_page(one)
    write_new(path, page)
    is_streamed = path == STDOUT
    name = "stdout" if is_streamed else path.name
    print("\n".join(card(one, name, len(page))), file=sys.stderr if is_streamed else sys.stdout)
    return 0


# `linkgauge pack`: a kept run as one file.


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
    """Pack a stored run into one file; --anonymize leaves names out.

    The file holds samples, journal, machine and report. An existing file is never overwritten.
    `tar --zstd -x` unpacks it; `linkgauge show` and `export` read it.

    Examples:
        linkgauge pack results/cpu/default/20261121T201500Z
        linkgauge pack --anonymize -o run.tar.zst"""
    from linkgauge.engine.kept.runs import PACKED, one_run
    from linkgauge.machine.captures.archive import STDOUT, check_new, write_new

    from .packing import pack_run

    if asked.output is not None:
        check_new(asked.output)
    packed = pack_run(one_run(asked.run, "pack"), anonymous=asked.anonymize)
    path = asked.output or Path(f"{packed.id}{PACKED}")
    write_new(path, packed.content)
    stream = sys.stderr if path == STDOUT else sys.stdout
    print(f"packed: {path}: {', '.join(packed.names)}", file=stream)
    for name in packed.left_out:
        print(f"left out, because it cannot be anonymised: {name}", file=stream)
    return 0
