"""Writes journals for runs that lost a rank before there was a journal, or that lost rank 0. For
other losses, see `rank_zero`."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from linkgauge.engine.controller import now
from linkgauge.engine.kept.folder import create_run_folder
from linkgauge.engine.kept.journal import (
    JOURNAL_FILE,
    Closed,
    Journal,
    LossRecord,
    Opened,
    last_part,
)
from linkgauge.engine.request import RunRequest
from linkgauge.machine.host import read_host
from linkgauge.model.errors import DeviceBusy
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.ranks import LostRank

LOCKED_SECONDS, AGAIN_SECONDS = 5.0, 0.02
"""The seconds for which a journal may still be locked by a process that is gone, and between two
checks."""
NO_DEVICE = "cpu"
"""The folder of runs that did not get to any device."""


def keep_loss(request: RunRequest, lost: LostRank) -> Path | None:
    """Writes a journal that records only the loss, and returns the folder of the run. Returns None
    if the run is not to be kept. Raises InputError or ResultsError if the journal cannot be
    written."""
    if request.out is None:
        return None
    started = now()
    folder = create_run_folder(Path(request.out), NO_DEVICE, request.label, started)
    simulation = request.settings.simulation
    opened = Opened(
        id=folder.name,
        label=request.label,
        simulated=simulation is not None,
        command=request.command,
        started=started,
        machine=Machine(read_host(), simulated=simulation.machine if simulation else None),
        settings=request.settings,
        plan=(),
        options=request.options,
    )
    journal = Journal.begin(folder / JOURNAL_FILE, opened)
    for record in (LossRecord(lost), Closed(now())):
        journal.append(record)
    journal.close()
    return folder


@contextmanager
def stopped(process: int | None) -> Iterator[bool]:
    """Stops a silent rank 0 while this block runs, and kills it afterwards, so that it cannot write
    any more. Yields whether it was stopped."""
    try:
        held = None if process is None else os.pidfd_open(process)
    except OSError:  # it has ended, or this kernel has no such handles
        held = None
    if held is None:
        yield False
        return
    try:
        _send(held, signal.SIGSTOP)
        yield True
    finally:
        _send(held, signal.SIGKILL)
        os.close(held)


def _send(held: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(held, number)


def add_loss(journal: Path, lost: LostRank, *, by_force: bool = False) -> None:
    """Adds the loss to the journal that rank 0 has left, and ends the journal. `by_force` ignores
    the lock of a stopped rank 0. Raises InputError if there is no journal."""
    deadline = time.monotonic() + LOCKED_SECONDS
    while True:
        try:
            reopened, records = Journal.reopen(journal, tuple, by_force=by_force)
            break
        except DeviceBusy:  # the kernel has not done away with all of rank 0 yet
            if time.monotonic() > deadline:
                raise
            time.sleep(AGAIN_SECONDS)
    if not any(isinstance(record, (LossRecord, Closed)) for record in last_part(records)):
        for record in (LossRecord(lost), Closed(now())):
            reopened.append(record)
    reopened.close()
