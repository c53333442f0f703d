"""A session of one process, or of all that a launcher (mpiexec, mpirun, srun) has started."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from linkgauge.engine.controller import Doubts, Observer
from linkgauge.engine.interrupts import ENDING
from linkgauge.engine.journal import JOURNAL_FILE, Opened
from linkgauge.engine.plan import Plan
from linkgauge.engine.process import WorkerProcess
from linkgauge.engine.request import RunRequest
from linkgauge.engine.session import Session
from linkgauge.engine.session import opened as opened_alone
from linkgauge.model.errors import InputError, LinkgaugeError
from linkgauge.model.ranks import LostRank, RankLost
from linkgauge.model.result import Run

from .agent import Agent
from .gathering import serve_as_rank
from .heir import add_loss, keep_loss
from .launch import Launch, launched
from .links import lost_rank
from .wire import is_first
from .worker import LEAVE_SECONDS, ClusterWorker
from .world import leave

LOST_EXIT = 3
"""Exit code of a rank whose run ended with another rank."""
HEIR_SECONDS = 2.0
"""What the other ranks give the one that writes down that rank 0 is gone."""


class RankSession(Session):
    """A session of all ranks of a launch, on rank 0."""

    def __init__(self, request: RunRequest, worker: ClusterWorker) -> None:
        super().__init__(request, worker)
        self._ranks = worker

    def measure(self, plan: Plan, observer: Observer, doubts: Doubts = lambda run: ()) -> Run:
        self._ranks.hold(wait=self.request.wait)
        return super().measure(plan, observer, doubts)

    def _open(self, plan: Plan) -> Opened:
        opened = super()._open(plan)
        if self.folder is not None:
            self._ranks.keep(self.folder / JOURNAL_FILE)
        return opened


@contextmanager
def opened(request: RunRequest, first: WorkerProcess | None = None) -> Iterator[Session]:
    """A session as `engine.session.opened` opens it; or, of benchmarks between processes, one of
    all ranks of the launch. Rank 0 has it; any other rank takes part and leaves by SystemExit.

    Raises InputError if it does not fit the launch, RankLost if a rank does not take part.
    """
    launch = launched()
    if launch.size == 1 or not request.what.is_across_ranks:
        with opened_alone(request, first) as session:
            yield session
        return
    check(request)
    if launch.rank:
        sys.exit(_measure_with(launch, request))
    with closing(_gathered(launch, request)) as worker:
        try:
            session = RankSession(request, worker)
        except RankLost as ended:
            keep_loss(request, ended.lost)
            raise
        yield session


def _gathered(launch: Launch, request: RunRequest) -> ClusterWorker:
    try:
        return ClusterWorker(launch, request.settings)
    except RankLost as ended:
        keep_loss(request, ended.lost)
        raise


def check(request: RunRequest) -> None:
    """Raises InputError for what ranks cannot do together."""
    if request.devices:
        raise InputError("--device: each rank has the device of its number on its machine")
    if request.settings.parallel_pairs:
        raise InputError("--parallel-pairs is of one process")


def _measure_with(launch: Launch, request: RunRequest) -> int:
    """Takes part in rank 0's run until it is over. Returns the exit code."""
    for number in ENDING:  # which a terminal or a batch system sends to all: rank 0 ends the run
        signal.signal(number, signal.SIG_IGN)

    def left(agent: Agent, of_another: bool) -> None:
        """Ends this process, at whatever it is."""
        code = LOST_EXIT
        try:
            if not of_another:
                code = _of_first(launch, request, agent)
        finally:
            os._exit(code)

    try:
        serve_as_rank(launch, request.settings.timeout, left)
    except RankLost as ended:
        return _write_down(launch, request, None, ended.lost)
    # Those that wait for a rank that is gone would wait for ever.
    end = threading.Timer(LEAVE_SECONDS, os._exit, (LOST_EXIT,))
    end.daemon = True
    end.start()
    with suppress(LinkgaugeError):
        leave(launch)
    return 0  # MPICH tells its launcher that all is well as the process ends


def _of_first(launch: Launch, request: RunRequest, agent: Agent) -> int:
    """Rank 0 is gone. Returns the exit code."""
    first, journal = (agent.told.first, agent.told.journal) if agent.told else (None, None)
    return _write_down(launch, request, journal, lost_rank(first, 0, "ended", agent.doing))


def _write_down(launch: Launch, request: RunRequest, kept: str | None, lost: LostRank) -> int:
    """One rank of each machine keeps what is known, and says so."""
    mark = is_first(launch)
    if mark is None:
        time.sleep(HEIR_SECONDS)
        return LOST_EXIT
    with closing(mark):
        print(f"linkgauge: {lost}", file=sys.stderr, flush=True)
        try:
            if kept is None:
                keep_loss(request, lost)
            else:
                add_loss(Path(kept), lost)
        except LinkgaugeError as error:
            print(f"linkgauge: {error}", file=sys.stderr, flush=True)
        time.sleep(HEIR_SECONDS)
    return LOST_EXIT
