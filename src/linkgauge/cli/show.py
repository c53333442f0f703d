"""`linkgauge show`: prints a run that was kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .options import Csv, Json


def show(
    run: Annotated[Path, typer.Argument(help="A run.json, a journal.jsonl or a run's folder.")],
    limits: options.Limits = None,
    utilization: options.Utilization = False,
    json: Json = False,
    csv: Csv = False,
) -> int:
    """Print a run that was kept: its matrices, or as JSON or CSV. Exits as the run did.

    Example: linkgauge show results/cpu/default/20261121T201500Z
    """
    from linkgauge.engine.runs import JOURNAL_FILE, read_run
    from linkgauge.judge.limits import apply, read_limits
    from linkgauge.judge.verdict import judge
    from linkgauge.model.result import exit_code
    from linkgauge.report.terminal import make_console

    from .session import (
        Display,
        choose_document,
        how_to_go_on,
        show_result,
        tell_of,
        write_document,
    )

    display = Display(
        choose_document(json, csv), utilization, read_limits(limits) if limits else ()
    )
    kept = apply(judge(read_run(run)), display.limits)
    if display.document is not None:
        write_document(kept, display.document)
    else:
        console = make_console()
        for result in kept.results:
            show_result(console, result, display)
        tell_of(console, kept, display)
        folder = run if run.is_dir() else run.parent
        if kept.finished is None and (folder / JOURNAL_FILE).exists():
            console.print(how_to_go_on(folder))
    return exit_code(kept)
