"""Opens a session of one process, or of all that a launcher (mpiexec, mpirun, srun) has started."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from linkgauge.engine.request import RunRequest
from linkgauge.engine.session import Session
from linkgauge.engine.session import opened as opened_alone
from linkgauge.engine.workers.process import WorkerProcess
from linkgauge.machine.processes.launch import launched
from linkgauge.model.errors import InputError


@contextmanager
def opened(request: RunRequest, first: WorkerProcess | None = None) -> Iterator[Session]:
    """Opens a session. If the benchmarks need several processes, it measures with all ranks, but
    only rank 0 gets it: the other ranks take part and end with SystemExit. Raises InputError if the
    request does not fit the launch, RankLost if a rank does not take part."""
    launch = launched()
    if launch.size == 1 or not request.what.is_across_ranks:
        with opened_alone(request, first) as session:
            yield session
        return
    _check(request)
    if launch.rank:
        from .member import take_part  # which loads backends

        sys.exit(take_part(launch, request.settings.timeout))
    from .rank_zero import opened_by_rank_zero

    with opened_by_rank_zero(launch, request) as session:
        yield session


def _check(request: RunRequest) -> None:
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
