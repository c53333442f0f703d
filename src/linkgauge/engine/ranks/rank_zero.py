"""Rank 0's session, which measures with all ranks of a launch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from linkgauge.engine.controller import Doubts, Observer
from linkgauge.engine.plan import Plan
from linkgauge.engine.request import RunRequest
from linkgauge.engine.session import Session
from linkgauge.machine.processes.launch import Launch
from linkgauge.model.documents.result import Run

from .gathering import Gathering
from .worker import ClusterWorker


class RankSession(Session):
    def __init__(self, request: RunRequest, worker: ClusterWorker) -> None:
        super().__init__(request, worker)
        self._ranks = worker

    def measure(self, plan: Plan, observer: Observer, doubts: Doubts = lambda run: ()) -> Run:
        self._ranks.hold(wait=self.request.wait, tell=observer.say)
        return super().measure(plan, observer, doubts)


@contextmanager
def opened_by_rank_zero(launch: Launch, request: RunRequest) -> Iterator[RankSession]:
    """Opens the session. Raises RankLost if a rank is missing, InputError if ranks disagree."""
    with (
        closing(Gathering(launch, request.settings.timeout)) as gathering,
        closing(ClusterWorker(gathering, request.settings)) as worker,
    ):
        yield RankSession(request, worker)
