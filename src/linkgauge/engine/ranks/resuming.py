"""Going on with a run: by one process, or by all that a launcher has started."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from linkgauge.engine.controller import Observer
from linkgauge.engine.request import RunRequest
from linkgauge.engine.resume import Opening, alone
from linkgauge.machine.launch import launched
from linkgauge.model.settings import Settings


@contextmanager
def resuming(
    folder: Path, observer: Observer, *, limit: float | None, wait: bool
) -> Iterator[tuple[Opening, int]]:
    """What `engine.resume.go_on` measures the run in this folder with, and how many processes that
    is: this one, or all ranks of the launch, which appear within the limit (seconds). Rank 0 has
    the folder; any other rank takes part and leaves by SystemExit. Raises RankLost if a rank does
    not appear."""
    launch = launched()
    if launch.size == 1:
        yield alone, 1
        return
    if launch.rank:
        from .others import take_part

        sys.exit(take_part(launch, RunRequest(settings=Settings((), timeout=limit))))
    from .first import gathered_to_go_on

    with gathered_to_go_on(launch, folder, observer, limit=limit, wait=wait) as opening:
        yield opening, launch.size
