"""`linkgauge export`: a kept run as a table for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linkgauge.cli.options import ExportFormat, Option, own
from linkgauge.model.errors import InputError
from linkgauge.report.formats import SAMPLES, SUMMARY


@own(
    samples=Option("Every raw sample instead of a row for each cell."),
    output=Option("Write to this file instead of stdout.", "FILE", flag="-o"),
)
def export(
    *,
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUN",
            help="Write this run.json, the run in this folder, or what `pack` wrote. Default: the "
            "latest run of this machine.",
        ),
    ] = None,
    form: ExportFormat,
    samples: bool = False,
    output: Path | None = None,
) -> int:
    """Write a stored run as CSV, JSON, Markdown, JUnit or Parquet.

    A row stands for a cell, or with --samples for a raw sample. Exits with 0 however the run
    ended: `linkgauge show` exits with the code of the run.

    Examples:
        linkgauge export --markdown
        linkgauge export --csv --samples -o samples.csv
        linkgauge export --junit -o junit.xml
    """
    from linkgauge.engine.runs import one_run, read_run
    from linkgauge.report.files import write_asked
    from linkgauge.report.judged import judged

    if not form.is_document:
        raise InputError("give a format: --csv, --json, --markdown, --junit or --parquet")
    found = judged(read_run(one_run(run, "export")))
    document = SAMPLES if samples else SUMMARY
    if output is None:
        form.write(document, found)
        return 0
    write_asked(output, form.document(document, found))
    typer.echo(f"exported: {output}")
    return 0
