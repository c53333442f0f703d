"""`linkgauge report`: kept runs as a page or as a PDF."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linkgauge.registry import named

from .options import Option, own


@own(
    against=Option("Compare the labels with this one; else with the host, or the first.", "LABEL"),
    output=Option(
        "Write to this file (else report.html in the first folder).", "FILE.html|.pdf", flag="-o"
    ),
)
def report(
    *,
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN|DIR...",
            help="Show this run: its folder, its run.json, what `pack` wrote, or the latest of a "
            "label; or compare several, and all those below folders. Default: the latest run of "
            "this machine.",
        ),
    ] = None,
    against: str | None = None,
    output: Path | None = None,
) -> int:
    """Write a report of one or several runs, as HTML or PDF.

    The HTML is one file that opens offline. Several runs are grouped by accelerator and compared by
    label. Exits with 0 however the runs ended: `linkgauge show` exits with the code of the run.

    Examples:
        linkgauge report -o report.pdf
        linkgauge report results/nvidia-h200 --against host
        linkgauge report host pinned -o compared.html
    """
    from linkgauge.engine.runs import find_run
    from linkgauge.report.reading import kept_at, page_of, page_of_kept
    from linkgauge.report.render.drawing import Drawer
    from linkgauge.report.render.writing import REPORT_FILE, check_name, write_page

    if output is not None:
        check_name(output)
    asked = [find_run(one, command="report", also=named("kept")) for one in (runs or (None,))]
    kept = kept_at(asked[0]) if len(asked) == 1 and against is None else None
    folder = asked[0] if asked[0].is_dir() else asked[0].parent
    path = output if output is not None else folder / REPORT_FILE
    with Drawer() as drawer:
        write_page(path, page_of_kept(*kept) if kept else page_of(asked, against), drawer)
    typer.echo(f"report: {path}")
    return 0
