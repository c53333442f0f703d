"""Implements `linkgauge report`, which writes stored runs as a page or as a PDF."""

from __future__ import annotations

from pathlib import Path

from linkgauge.registry import named

from .help_text import OTHER
from .options import Options, argument, option
from .proposals import labels


class ReportOptions(Options):
    runs: tuple[Path, ...] = argument(
        "RUN|DIR...",
        "Show this run (its folder, run.json, a file of `pack`, or a label for its latest run); "
        "or compare several runs, or all below a folder. Default: the latest run of this machine.",
        offer=labels,
    )
    against: str | None = option(
        OTHER,
        "Compare the other labels with this one. Default: the host's label, or the first.",
        "LABEL",
        is_input=True,
        offer=labels,
    )
    output: Path | None = option(
        OTHER, "Write to this file (else report.html in the first folder).", "FILE.html|.pdf", "-o"
    )


def report(asked: ReportOptions) -> int:
    """Write a report of one or several runs, as HTML or PDF.

    The HTML is one file that opens offline. Several runs are grouped by accelerator and compared by
    label. Exits with 0 however the runs ended: `linkgauge show` exits with the code of the run.

    Examples:
        linkgauge report -o report.pdf
        linkgauge report results/nvidia-h200 --against host
        linkgauge report host pinned -o compared.html
    """
    from linkgauge.engine.kept.runs import find_run
    from linkgauge.report.reading import kept_at, page_of, page_of_kept
    from linkgauge.report.render.drawing import Drawer
    from linkgauge.report.render.writing import REPORT_FILE, check_name, write_page

    if asked.output is not None:
        check_name(asked.output)
    found = [find_run(one, command="report", also=named("kept")) for one in (asked.runs or (None,))]
    kept = kept_at(found[0]) if len(found) == 1 and asked.against is None else None
    folder = found[0] if found[0].is_dir() else found[0].parent
    path = asked.output if asked.output is not None else folder / REPORT_FILE
    with Drawer() as drawer:
        write_page(path, page_of_kept(*kept) if kept else page_of(found, asked.against), drawer)
    print(f"report: {path}")
    return 0
