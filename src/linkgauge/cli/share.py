"""`linkgauge share`: a kept run for others."""

from __future__ import annotations

from pathlib import Path

import click

from .help_text import OTHER
from .options import Options, argument, option


class ShareOptions(Options):
    run: Path | None = argument(
        "RUN",
        "Share this run: its folder, its run.json, what `pack` wrote, or the latest of a label. "
        "Default: the latest run of this machine.",
    )
    output: Path | None = option(
        OTHER, "The page (else linkgauge-RUN-ID.html); - is stdout.", "FILE.html", "-o"
    )


def share(asked: ShareOptions) -> int:
    """Write a run as one small page without names, and a card of text.

    The page is the report, anonymised as `pack --anonymize` does, in less than 1 MB; it says what
    it has no room for. The card is six lines for a ticket: machine, verdict, figures, the first
    finding, what is not judged, and the page. An existing file is never overwritten. Exits with 0
    however the run ended.

    Examples:
        linkgauge share -o run.html
        linkgauge share results/cpu/default/20261121T201500Z
    """
    from linkgauge.engine.folder import label_name
    from linkgauge.engine.runs import one_run, read_run
    from linkgauge.machine.archive import STDOUT, check_new, write_new
    from linkgauge.report.share import card, shared, small_page

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
    click.echo("\n".join(card(one, name, len(page))), err=is_streamed)
    return 0
