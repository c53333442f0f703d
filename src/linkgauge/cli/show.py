"""`linkgauge show`: prints a run that was kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import Csv, Json


def show(
    run: Annotated[Path, typer.Argument(help="A run.json, a journal.jsonl or a run's folder.")],
    json: Json = False,
    csv: Csv = False,
) -> int:
    """Print a run that was kept: its matrices, or as JSON or CSV. Exits as the run did.

    Example: linkgauge show results/cpu/default/20261121T201500Z
    """
    from linkgauge.model.result import exit_code
    from linkgauge.report.files import read_run
    from linkgauge.report.terminal import make_console, print_run

    from .session import choose_document, write_document

    document = choose_document(json, csv)
    kept = read_run(run)
    if document is not None:
        write_document(kept, document)
    else:
        print_run(make_console(), kept)
    return exit_code(kept)
