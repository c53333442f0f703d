"""`linkgauge export`: a kept run as a table for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linkgauge.model.errors import InputError
from linkgauge.report.formats import Kind

from .options import ExportFormat, Option, own


@own(
    samples=Option("Every raw sample instead of a row for each cell."),
    output=Option("Write to this file instead of stdout.", "FILE", flag="-o"),
)
def export(
    *,
    run: Annotated[
        Path | None, typer.Argument(help="A run's folder, its run.json, or what `pack` wrote.")
    ] = None,
    form: ExportFormat,
    samples: bool = False,
    output: Path | None = None,
) -> int:
    """Write a kept run as a table: a row for each cell, or with --samples for each raw sample.

    Exits with 0 however the run ended: `linkgauge show` exits as it did.

    Example: linkgauge export results/cpu/default/20261121T201500Z --junit -o junit.xml
    """
    from linkgauge.engine.runs import read_run
    from linkgauge.report.files import write_file
    from linkgauge.report.rows import judged

    from .kept import kept_run

    if not form.is_document:
        raise InputError("give a format: --csv, --json, --markdown, --junit or --parquet")
    found = judged(read_run(kept_run(run)))
    kind: Kind = "samples" if samples else "summary"
    if output is None:
        form.write(kind, found)
        return 0
    write_file(output, form.document(kind, found))
    typer.echo(f"exported: {output}")
    return 0
