"""Takes part in rank 0's run, as every other rank does. If rank 0 is lost, records the loss."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path

from linkgauge.backends.mpi.world import leave
from linkgauge.engine.request import RunRequest
from linkgauge.machine.processes.launch import Launch
from linkgauge.machine.processes.signals import ignore_ending
from linkgauge.machine.processes.wire import is_first
from linkgauge.model.errors import LinkgaugeError
from linkgauge.model.ranks import LostRank, RankLost

from .gathering import LEAVE_SECONDS, serve_as_rank
from .member_links import lost_rank
from .member_loop import ENDED, Agent
from .rank_zero_lost import add_loss, keep_loss, stopped
from .started import Processes

LOST_EXIT = 3
"""Exit code of a rank whose run ended with another rank."""
RECORDING_SECONDS = 2.0
"""The seconds that the other ranks wait for the rank that records the loss of rank 0."""
AGAIN_SECONDS = 0.1
"""The interval at which this rank checks whether the others have ended."""


def take_part(launch: Launch, request: RunRequest) -> int:
    """Takes part in rank 0's run until the run is over. Returns the exit code."""
    ignore_ending()  # a terminal or a batch system sends them to all: rank 0 ends the run

    def left(agent: Agent, how: str | None) -> None:
        """Ends this process at once, after a rank was lost. Records the loss first if it is that of
        rank 0."""
        code = LOST_EXIT
        try:
            if how is not None:
                code = _of_first(launch, request, agent, how)
        finally:
            os._exit(code)

    try:
        serve_as_rank(launch, request.settings.timeout, left)
    except RankLost as ended:
        return _write_down(launch, request, None, ended.lost)
    except LinkgaugeError as error:  # that only this rank has
        print(f"linkgauge: rank {launch.rank}: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    # Those that wait for a rank that is gone would wait for ever.
    end = threading.Timer(LEAVE_SECONDS, os._exit, (LOST_EXIT,))
    end.daemon = True
    end.start()
    with suppress(LinkgaugeError):
        leave(launch)
    return 0  # MPICH tells its launcher that all is well as the process ends


def _of_first(launch: Launch, request: RunRequest, agent: Agent, how: str) -> int:
    """Describes the loss of rank 0 and records it. Returns the exit code."""
    known = agent.introduction
    first, journal = (known.first, known.journal) if known else (None, None)
    return _write_down(launch, request, journal, lost_rank(first, 0, how, agent.doing))


def _write_down(launch: Launch, request: RunRequest, kept: str | None, lost: LostRank) -> int:
    """Prints and records the loss of rank 0, in one rank of each machine. Returns the exit code."""
    mark = is_first(launch)
    if mark is None:
        time.sleep(RECORDING_SECONDS)
        return LOST_EXIT
    with closing(mark), ExitStack() as until_the_end:
        print(f"linkgauge: {lost}", file=sys.stderr, flush=True)
        is_stopped = until_the_end.enter_context(stopped(_silent(launch, lost)))
        try:
            if kept is None:
                keep_loss(request, lost)
            else:
                add_loss(Path(kept), lost, by_force=is_stopped)
        except LinkgaugeError as error:
            print(f"linkgauge: {error}", file=sys.stderr, flush=True)
        time.sleep(RECORDING_SECONDS)
        if is_stopped:
            _await_others(launch)
    return LOST_EXIT


def _silent(launch: Launch, lost: LostRank) -> int | None:
    """Returns the process id of a silent rank 0 if it is on this machine, else None. If the ranks
    connect over a network, the result is also None unless the process is stopped (suspended),
    because the network may be the cause of the silence."""
    if lost.how == ENDED or lost.process is None:
        return None
    processes = Processes(launch)
    if processes.rank_of(lost.process) != 0:
        return None
    return lost.process if launch.by_name or processes.is_stopped(lost.process) else None


def _await_others(launch: Launch) -> None:
    """Waits some seconds for the other ranks to end, because a launcher may kill all ranks once
    rank 0 is dead."""
    processes, deadline = Processes(launch), time.monotonic() + LEAVE_SECONDS
    while processes.living().keys() - {0, launch.rank} and time.monotonic() < deadline:
        time.sleep(AGAIN_SECONDS)
