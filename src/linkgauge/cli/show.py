"""`linkgauge show`: prints a stored run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import RunFormat


def show(
    *,
    run: Annotated[
        Path, typer.Argument(help="A run.json, a journal.jsonl, a vary.json, or its folder.")
    ],
    limits: Path | None = None,
    utilization: bool = False,
    no_verdict: bool = False,
    form: RunFormat,
) -> int:
    """Print a run that was kept: its matrices, or as JSON or CSV. Exits as the run did.

    Example: linkgauge show results/cpu/default/20261121T201500Z
    """
    from linkgauge.engine.runs import read_run, read_variation
    from linkgauge.judge.limits import read_limits
    from linkgauge.report.live import Display, show_kept

    if (variation := read_variation(run)) is not None:
        form.write("variation", variation)
        return 0
    display = Display(
        form, utilization, read_limits(limits) if limits else (), verdict=not no_verdict
    )
    return show_kept(read_run(run), run if run.is_dir() else run.parent, display)
