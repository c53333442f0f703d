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
    from linkgauge.report.files import JOURNAL_FILE, read_run
    from linkgauge.report.terminal import make_console, print_run

    from .session import choose_document, how_to_go_on, write_document

    document = choose_document(json, csv)
    kept = read_run(run)
    if document is not None:
        write_document(kept, document)
    else:
        console = make_console()
        print_run(console, kept)
        folder = run if run.is_dir() else run.parent
        if kept.finished is None and (folder / JOURNAL_FILE).exists():
            console.print(how_to_go_on(folder))
    return exit_code(kept)
