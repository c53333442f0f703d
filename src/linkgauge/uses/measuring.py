"""Carries out a request: measures, judges and keeps a run, and shows its progress and results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from linkgauge.engine.controller import Observer
from linkgauge.engine.kept.journal import JOURNAL_FILE
from linkgauge.engine.plan import Plan
from linkgauge.engine.request import RunRequest
from linkgauge.engine.session import Session, opened
from linkgauge.history import is_off
from linkgauge.machine.processes.launch import launched
from linkgauge.model.documents.result import Run
from linkgauge.model.errors import InputError, ResultsError
from linkgauge.report.files import resumable
from linkgauge.report.keeping import Display, Keeper, Remember

if TYPE_CHECKING:
    from linkgauge.engine.workers.process import WorkerProcess

_T = TypeVar("_T")


def keeper_of(
    display: Display, kind: type[Keeper] = Keeper, remember: Remember | None = None
) -> Keeper:
    """Returns a Keeper of runs, which compares them with earlier ones unless the history is off."""
    if is_off():
        return kind(display, remember)
    from linkgauge.history import keeping

    from .earlier_runs import since

    return kind(display, remember or keeping.remember, since)


@contextmanager
def opened_by_launch(request: RunRequest, first: WorkerProcess | None = None) -> Iterator[Session]:
    """Opens a session of this process, with its running worker `first`, or for work by several
    processes, of all ranks that a launcher (mpiexec, mpirun, srun) started. Only rank 0
    gets the session; the other ranks take part and end with SystemExit. Raises InputError if the
    request does not fit the launch, and RankLost if a rank is lost."""
    launch = launched()
    if launch.size == 1 or not request.what.is_across_ranks:
        with opened(request, first) as session:
            yield session
        return
    _check_fits_ranks(request)
    if launch.rank:
        from linkgauge.engine.ranks.member import take_part  # which loads backends

        sys.exit(take_part(launch, request.settings.timeout))
    from linkgauge.engine.ranks.rank_zero import opened_by_rank_zero

    with opened_by_rank_zero(launch, request) as session:
        yield session


def _check_fits_ranks(request: RunRequest) -> None:
    for name in request.what.of_one_process[:1]:
        raise InputError(f"{name} uses one process: run it without a launcher")
    if request.settings.soak is not None:
        raise InputError("--for works with one process only")
    if request.devices:
        raise InputError(
            "--device works with one process only: each rank uses the device of its own number"
        )
    if request.settings.parallel_pairs:
        raise InputError("--parallel-pairs works with one process only")


def carry_out(
    request: RunRequest,
    display: Display,
    *,
    first: WorkerProcess | None = None,
    only_plan: bool = False,
) -> int:
    from linkgauge.report.live import LiveReport

    with opened_by_launch(request, first) as session, LiveReport(keeper_of(display)) as report:
        session.look_first(measures=not only_plan)
        plan = planned(session, report, display)
        if only_plan or report.is_watched:
            from linkgauge.report.formats import PLAN
            from linkgauge.report.sections.plan import dry_run, time_of

            from .earlier_runs import usual_seconds

            asked = session.request
            usual = None
            if asked.budget == "plan":
                usual = usual_seconds(plan, session.machine, asked.settings)
            dry = dry_run(plan, asked.settings, asked.budget, usual)
            if only_plan:
                display.format.write(PLAN, dry)
                return 0
            if (dry.usual, dry.expected, dry.budget) != (None, None, None):
                report.say(f"takes {time_of(dry)}")
        return concluded(session, plan, report, report.keeper, report.conclude)


def planned(session: Session, observer: Observer, display: Display) -> Plan:
    """Plans a run. Raises InputError if a limit fits no cell of the plan."""
    plan = session.plan(observer)
    display.refuse_unmatched(plan, session.machine)
    return plan


def concluded(
    session: Session,
    plan: Plan,
    observer: Observer,
    keeper: Keeper,
    conclude: Callable[[Run, Path | None], _T],
) -> _T:
    """Measures a plan, then each pair of devices that may have slowed a collective. Passes the run
    and its folder to `conclude`, and returns what `conclude` returns. After Ctrl-C, the run is read
    from the journal. Raises KeyboardInterrupt if there is no journal."""
    with stoppable(observer, lambda: session.folder):
        try:
            run = measured(
                lambda: session.measure(plan, observer, keeper.doubts), lambda: session.folder
            )
            if pairs := keeper.pairs_in_doubt(run):
                from .pairs_alone import with_pairs

                run = with_pairs(pairs, run, session, plan, observer, keeper)
            session.end()  # while the run is judged and written
            return conclude(run, session.folder)
        except KeyboardInterrupt:  # nothing is being measured: what is journaled is kept
            if session.folder is None or not (session.folder / JOURNAL_FILE).exists():
                raise
            from linkgauge.engine.kept.runs import read_run

            observer.interrupted()
            return conclude(read_run(session.folder / JOURNAL_FILE), session.folder)


@contextmanager
def stoppable(observer: Observer, folder: Callable[[], Path | None]) -> Iterator[None]:
    """If a second signal (SIGINT, SIGTERM) ends this block, prints how to resume the run."""
    try:
        yield
    except SystemExit:
        observer.say(str(resumable(ResultsError("stopped without a verdict"), folder())))
        raise


def measured(measure: Callable[[], Run], folder: Callable[[], Path | None]) -> Run:
    """Calls `measure`. If the journal can no longer be written, the error says how to resume."""
    try:
        return measure()
    except ResultsError as error:
        raise resumable(error, folder()) from error
