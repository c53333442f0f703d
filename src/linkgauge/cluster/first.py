"""Rank 0's session, which measures with all ranks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from linkgauge.engine.controller import Doubts, Observer
from linkgauge.engine.journal import JOURNAL_FILE, Opened
from linkgauge.engine.plan import Plan
from linkgauge.engine.request import RunRequest
from linkgauge.engine.session import Session
from linkgauge.model.ranks import RankLost
from linkgauge.model.result import Run

from .heir import keep_loss
from .launch import Launch
from .worker import ClusterWorker


class RankSession(Session):
    """A session of all ranks of a launch, on rank 0."""

    def __init__(self, request: RunRequest, worker: ClusterWorker) -> None:
        super().__init__(request, worker)
        self._ranks = worker

    def measure(self, plan: Plan, observer: Observer, doubts: Doubts = lambda run: ()) -> Run:
        self._ranks.hold(wait=self.request.wait, tell=observer.say)
        return super().measure(plan, observer, doubts)

    def _open(self, plan: Plan) -> Opened:
        opened = super()._open(plan)
        if self.folder is not None:
            self._ranks.keep(self.folder / JOURNAL_FILE)
        return opened


@contextmanager
def opened_by_first(launch: Launch, request: RunRequest) -> Iterator[RankSession]:
    """The session, once all ranks are there. Raises RankLost if one is not, which is kept, and
    InputError if the ranks do not fit together."""
    with _keeping_losses(request):
        worker = ClusterWorker(launch, request.settings)
    with closing(worker):
        with _keeping_losses(request):
            session = RankSession(request, worker)
        yield session


@contextmanager
def _keeping_losses(request: RunRequest) -> Iterator[None]:
    """A run that comes to nothing for a rank's loss is kept as that."""
    try:
        yield
    except RankLost as ended:
        keep_loss(request, ended.lost)
        raise
