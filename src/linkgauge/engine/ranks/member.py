"""Takes part in rank 0's run, as every other rank does."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress

from linkgauge.backends.mpi.world import leave
from linkgauge.machine.processes.launch import Launch
from linkgauge.machine.processes.signals import ignore_ending
from linkgauge.model.errors import LinkgaugeError
from linkgauge.model.ranks import LostRank

from .gathering import LEAVE_SECONDS, serve_as_rank

LOST_EXIT = 3
"""The exit code of a rank whose run ended because another rank was lost."""


def take_part(launch: Launch, limit: float | None) -> int:
    """Takes part until the run ends. Returns the exit code. `limit` may extend the deadlines."""
    ignore_ending()  # a terminal or a batch system sends them to all: rank 0 ends the run

    def say(error: object) -> None:
        print(f"linkgauge: rank {launch.rank}: {error}", file=sys.stderr, flush=True)

    def left(lost: LostRank | None) -> None:
        try:
            if lost is not None:
                say(lost)
        finally:
            os._exit(LOST_EXIT)

    try:
        serve_as_rank(launch, limit, left)
    except LinkgaugeError as error:
        say(error)
        return error.exit_code
    # Those that wait for a rank that is gone would wait for ever.
    end = threading.Timer(LEAVE_SECONDS, os._exit, (LOST_EXIT,))
    end.daemon = True
    end.start()
    with suppress(LinkgaugeError):
        leave(launch)
    return 0  # MPICH tells its launcher that all is well as the process ends
