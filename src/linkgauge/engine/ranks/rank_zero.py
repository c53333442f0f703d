"""Rank 0's session, which measures with all ranks, and rank 0's part in resuming a run.

If a rank dies, `member_links` notices the loss and raises RankLost. `engine/controller.py` records
the loss in the journal as `Run.lost`, and `report/words/worst.py` shows it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from linkgauge.engine.controller import Doubts, Observer
from linkgauge.engine.kept.journal import JOURNAL_FILE, Opened
from linkgauge.engine.kept.resume import Opening
from linkgauge.engine.plan import Plan
from linkgauge.engine.request import RunRequest
from linkgauge.engine.session import Session
from linkgauge.machine.processes.launch import Launch
from linkgauge.model.documents.result import Run
from linkgauge.model.ranks import RankLost

from .gathering import Gathering
from .rank_zero_lost import keep_loss
from .worker import ClusterWorker


class RankSession(Session):
    """Rank 0's session, which measures with all ranks of a launch."""

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
def opened_by_rank_zero(launch: Launch, request: RunRequest) -> Iterator[RankSession]:
    """Opens the session once all ranks have appeared. If a rank does not appear, records the loss
    in a journal and raises RankLost. Raises InputError if the ranks do not fit together."""
    with _keeping_losses(request):
        gathering = Gathering(launch, request.settings.timeout)
    with closing(gathering), closing(ClusterWorker(gathering, request.settings)) as worker:
        with _keeping_losses(request):
            session = RankSession(request, worker)
        yield session


@contextmanager
def _keeping_losses(request: RunRequest) -> Iterator[None]:
    """Writes a journal if a rank is lost within this block, before the run has a journal."""
    try:
        yield
    except RankLost as ended:
        keep_loss(request, ended.lost)
        raise


@contextmanager
def gathered_to_go_on(
    launch: Launch, folder: Path, observer: Observer, *, limit: float | None, wait: bool
) -> Iterator[Opening]:
    """Gathers the ranks, and yields a function that opens workers to resume the run in this folder.
    All ranks end with rank 0. Raises RankLost if a rank does not appear within `limit` seconds."""
    with closing(Gathering(launch, limit)) as gathering:

        @contextmanager
        def opening(run: Opened) -> Iterator[ClusterWorker]:
            with closing(ClusterWorker(gathering, run.settings)) as worker:
                worker.survey(tuple(run.machine.devices))
                worker.hold(wait=wait, tell=observer.say)
                worker.keep(folder / JOURNAL_FILE)
                yield worker

        yield opening
