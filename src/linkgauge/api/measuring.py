"""Functions that measure: `run`, `measure`, `scale`, `vary` and `check`."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from linkgauge.engine.interrupts import undisturbed
from linkgauge.engine.request import RunRequest
from linkgauge.history.keeping import remember
from linkgauge.model.documents.result import Run
from linkgauge.model.errors import Interrupted
from linkgauge.report.formats import TERMINAL, formats
from linkgauge.report.keeping import Display, Keeper, Kept
from linkgauge.uses.measuring import concluded, keeper_of, opened_by_launch, planned

from .calling import LOG, Say, asked, takes
from .keywords import CheckKeywords, CopyKeywords, RunKeywords, ScaleKeywords, VaryKeywords
from .progress import ProgressLine
from .runs import MeasuredRun, view_of

if TYPE_CHECKING:
    from linkgauge.model.documents.scaling import Scaling
    from linkgauge.model.documents.variation import Variation
    from linkgauge.rooms.check.health import Health
    from linkgauge.rooms.vary.rounds import RoundsRequest


@takes(RunKeywords)
def run(*benchmarks: str, say: Say = LOG, **options: Unpack[RunKeywords]) -> MeasuredRun:
    """Measures benchmarks (default: all of the profile) and keeps the run, as `linkgauge run` does.
    `options` are the command's: times in seconds or text (`2m`), sizes in bytes or text (`64M`),
    fractions as numbers or text (`1%`). The run is kept below `out` (default: `results`), or
    nowhere if `out` is None. `say` receives messages for people. Benchmarks that this machine
    cannot run become results with a status and a reason. Raises InputError for options that the
    command refuses, DeviceBusy while another run measures a device, ResultsError if the run cannot
    be kept, and Interrupted, which holds the cells measured so far, after Ctrl-C."""
    from linkgauge.cli.run import RunOptions, displayed, requested

    with asked("run", RunOptions, benchmarks, options) as given:
        return view_of(_measured(requested(given), _keeper(displayed(given), say), say))


@takes(CopyKeywords)
def measure(
    transfers: str,
    size: str | int | None = None,
    *,
    say: Say = LOG,
    **options: Unpack[CopyKeywords],
) -> MeasuredRun:
    """Measures transfers at the same time, as `linkgauge copy` does: `host:0 -> cuda:0 by ce &
    cuda:0 -> host:0 by ce`. `size` is in bytes, or text: one size (`256M`) or several (`1K:1G:x2`).
    The run is kept below `out`; if `out` is None (the default), it is not kept. Impossible
    transfers become a cell with status and reason. Other options and errors are as for `run`."""
    from linkgauge.cli.copy import CopyOptions, displayed, requested

    with asked("copy", CopyOptions, (transfers,), {"size": size, **options}) as given:
        return view_of(_measured(requested(given), _keeper(displayed(given), say), say))


@takes(ScaleKeywords)
def scale(
    collective: str | None = None, *, say: Say = LOG, **options: Unpack[ScaleKeywords]
) -> Scaling:
    """Measures a collective on more and more devices, as `linkgauge scale` does. Returns each
    size's seconds and bytes/s, and where and why more devices stop helping. `gpus` and `nodes` are
    text (`1,2,4`). The run's folder gets a `scale.json`. Options and errors are as for `run`."""
    from linkgauge.rooms.scale.carrying_out import ScalingKeeper
    from linkgauge.rooms.scale.command import ScaleOptions, requested
    from linkgauge.rooms.scale.scaling import scaling_of

    names = () if collective is None else (collective,)
    with asked("scale", ScaleOptions, names, options) as given:
        request = requested(given)
        keeper = _keeper(Display(formats()[TERMINAL]), say, ScalingKeeper)
        return scaling_of(_measured(request, keeper, say).run)


@takes(VaryKeywords)
def vary(*benchmarks: str, say: Say = LOG, **options: Unpack[VaryKeywords]) -> Variation:
    """Measures the same benchmarks or transfers with several settings, as `linkgauge vary` does,
    and compares the cells in SI units. An option with several values (such as `memory` or
    `streams`) is varied; its first value is the baseline. `experiment` names prepared benchmarks
    and settings. All runs are kept. Raises LinkgaugeError if the command `prepare` fails. Other
    options and errors are as for `run`."""
    from linkgauge.rooms.vary.command import VaryOptions, expanded, requested

    with asked("vary", VaryOptions, benchmarks, options) as given:
        return _varied(requested(given if given.experiment is None else expanded(given)[1]), say)


@takes(CheckKeywords)
def check(*, say: Say = LOG, **options: Unpack[CheckKeywords]) -> Health:
    """Checks in at most `under` (seconds or text; default: 60 s) whether this node is fit for work,
    as `linkgauge check` does. Returns the answer (`is_healthy`), its reason in one word (`reason`),
    and the judged run (`run`). Raises InputError for options that the command refuses."""
    from linkgauge.rooms.check.command import CheckOptions, checked

    began = time.monotonic()
    with asked("check", CheckOptions, (), options) as given, ProgressLine(say) as line:
        return checked(given, began, line.say, line.now)


def _keeper(display: Display, say: Say, kind: type[Keeper] = Keeper) -> Keeper:
    return keeper_of(display, kind, partial(remember, say=say))


def _measured(request: RunRequest, keeper: Keeper, say: Say) -> Kept:
    def conclude(run: Run, folder: Path | None) -> Kept:
        with undisturbed():
            kept = keeper.keep(run, folder)
            if kept.problem is not None:
                raise kept.problem
            keeper.remember(kept)
            if kept.since is not None:
                say(kept.since)
        return kept

    with opened_by_launch(request) as session, ProgressLine(say) as line:
        session.look_first()
        plan = planned(session, line, keeper.display)
        kept = concluded(session, plan, line, keeper, conclude)
    if kept.run.finished is None:
        where = f"; measured cells are kept in {kept.folder}" if kept.folder else ""
        raise Interrupted(f"interrupted{where}", view_of(kept))
    return kept


def _varied(request: RoundsRequest, say: Say) -> Variation:
    from linkgauge.rooms.vary.carrying_out import measure_and_compare

    with ProgressLine(say) as line:
        found = measure_and_compare(request, line)
    if isinstance(found.end, KeyboardInterrupt):
        where = f"; what was compared is kept in {found.kept}" if found.kept else ""
        raise Interrupted(f"interrupted{where}", found.variation) from found.end
    if found.end is not None:
        raise found.end
    return found.variation
