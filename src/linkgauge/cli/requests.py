"""Turns options into a request, carries the request out, and returns the exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar, get_args

import click
from msgspec.structs import replace

from linkgauge.engine.controller import Observer
from linkgauge.engine.kept.journal import JOURNAL_FILE
from linkgauge.engine.plan import Plan
from linkgauge.engine.profiles import PROFILES
from linkgauge.engine.ranks.opening import opened
from linkgauge.engine.request import RunRequest
from linkgauge.engine.session import Session
from linkgauge.engine.workers.process import WorkerProcess
from linkgauge.history.keeping import remember
from linkgauge.judge.limit_checks import refuse_unmatched
from linkgauge.model.documents.result import Run
from linkgauge.model.documents.soak import Soaking
from linkgauge.model.errors import InputError, ResultsError
from linkgauge.model.names import hint
from linkgauge.model.pairs import PairSample, Seed
from linkgauge.model.settings import (
    Blocks,
    EngineSettings,
    Profiler,
    Settings,
    Streams,
    Threads,
)
from linkgauge.model.units import parse_fraction, parse_sizes
from linkgauge.report.files import resumable
from linkgauge.report.formats import PLAN
from linkgauge.report.keeping import Display, Keeper, Remember
from linkgauge.report.live import LiveReport

from . import common
from .options import within
from .pairs_alone import with_pairs

_T = TypeVar("_T")
MOST_TEMPERATURE = 150.0
"""The highest temperature in °C that may be asked for; no accelerator works above it."""


def settings_of(
    profile: str,
    size: str | None,
    sampling: common.Sampling,
    engines: EngineSettings,
    simulated: common.Simulated | None = None,
) -> Settings:
    """Returns the profile's settings, changed by the given options. Raises InputError for invalid
    options."""
    simulation = None if simulated is None else simulated.simulation()
    if profile not in PROFILES:
        raise InputError(f"unknown profile {profile!r}{hint(profile, PROFILES)}")
    if simulation is not None and engines.host_kernel is not None:
        raise InputError("--host-kernel needs real threads: a simulated machine has none")
    base, precision, max_time = PROFILES[profile], sampling.precision, sampling.max_time
    if max_time is not None:
        base = replace(base, max_time=max_time, rate_time=max_time)
    return replace(
        base,
        sizes=base.sizes if size is None else parse_sizes(size),
        precision=base.precision if precision is None else parse_fraction(precision),
        samples=sampling.samples,
        loops=sampling.loops,
        verify=not sampling.no_verify,
        engines=engines,
        timeout=sampling.timeout,
        simulation=simulation,
    )


def soaked(settings: Settings, duration: float | None, max_temperature: float | None) -> Settings:
    """Returns the settings, with the time for which to repeat the plan if `duration` is given.
    Raises InputError for an invalid time or temperature."""
    if duration is None:
        if max_temperature is not None:
            raise InputError("--max-temperature ends what --for repeats: give --for, too")
        return settings
    if settings.profiler is not None:
        raise InputError(f"--for: not under --{settings.profiler}")
    if max_temperature is not None and not 0 < max_temperature <= MOST_TEMPERATURE:
        raise InputError(f"--max-temperature {max_temperature:g}: give degrees Celsius, such as 85")
    return replace(settings, soak=Soaking(duration, max_temperature))


def under(profiling: common.Profiling, settings: Settings, out: Path | None) -> Settings:
    """Returns the settings with the profiler that the options choose, if any. Raises InputError if
    the profiler is not installed, or if the run has nothing to profile."""
    asked = [name for name in get_args(Profiler) if getattr(profiling, name)]
    if not asked:
        return settings
    if len(asked) > 1:
        raise InputError("--nsys and --ncu: choose one")
    if settings.simulation is not None:
        raise InputError(f"--{asked[0]}: a profiler sees nothing of a simulated machine")
    if out is None:
        raise InputError(f"--{asked[0]} keeps its files with the run: give --out, too")
    from linkgauge.engine.workers.profiled import find

    find(asked[0])
    return replace(settings, profiler=asked[0])


def engines_of(
    shape: common.Shape, host_kernel: str | None = None, numa_node: int | None = None
) -> EngineSettings:
    """Returns the settings of engines. Raises InputError for values that no engine supports."""
    if host_kernel is not None:
        from linkgauge.backends.host_kernels import check_kernel

        check_kernel(host_kernel)
    return EngineSettings(
        kernel=shape.kernel,
        blocks=within("--blocks", shape.blocks, Blocks),
        threads=within("--threads", shape.threads, Threads),
        streams=within("--streams", shape.streams, Streams),
        tuned=not shape.untuned,
        affinity=not shape.no_affinity,
        numa_node=numa_node,
        host_kernel=host_kernel,
        host_tuned=not shape.untuned,
    )


def pair_sample_of(count: int | None, seed: int | None) -> PairSample | None:
    """Returns the sample of pairs, or None without a count. Raises InputError for a sample that
    cannot be drawn."""
    if count is None and seed is not None:
        raise InputError("--seed needs --sample-pairs")
    seed = within("--seed", seed, Seed)
    if count is None:
        return None
    return PairSample(count) if seed is None else PairSample(count, seed)


def command_line() -> tuple[str, ...]:
    """Returns the command as it was typed, for the record. For a call of the Python API, it is the
    command that does the same."""
    context = click.get_current_context(silent=True)
    words = sys.argv[1:] if context is None or context.obj is None else context.obj
    return ("linkgauge", *map(valid, words))


def valid(text: str) -> str:
    """Returns the text with bytes that cannot be stored replaced. Such bytes come from a shell in
    another encoding."""
    return text.encode("utf-8", "replace").decode()


def keeper_of(
    display: Display, kind: type[Keeper] = Keeper, remember: Remember = remember
) -> Keeper:
    """Returns the keeper of a run. It compares the run with earlier runs of the history."""
    from .earlier_runs import since

    return kind(display, remember, since)


def carry_out(
    request: RunRequest,
    display: Display,
    *,
    first: WorkerProcess | None = None,
    only_plan: bool = False,
) -> int:
    """Measures the request, or only shows its plan if `only_plan` is set. Returns the exit code."""
    with opened(request, first) as session, LiveReport(keeper_of(display)) as report:
        session.look_first(measures=not only_plan)
        plan = planned(session, report, display)
        if only_plan:
            from linkgauge.report.sections.plan import dry_run

            asked = session.request
            display.format.write(PLAN, dry_run(plan, asked.settings, asked.budget))
            return 0
        return concluded(session, plan, report, report.keeper, report.conclude)


def planned(session: Session, observer: Observer, display: Display) -> Plan:
    """Returns the session's plan. Raises InputError for a limit that fits nothing in it."""
    plan = session.plan(observer)
    refuse_unmatched(plan, session.machine, display.limits)
    return plan


def concluded(
    session: Session,
    plan: Plan,
    observer: Observer,
    keeper: Keeper,
    conclude: Callable[[Run, Path | None], _T],
) -> _T:
    """Measures the plan, and then pairs of devices that are in doubt. Returns what `conclude` makes
    of the run and its folder. After Ctrl-C it gets what is journaled; KeyboardInterrupt is raised
    if nothing is."""
    with stoppable(observer, lambda: session.folder):
        try:
            run = measured(
                lambda: session.measure(plan, observer, keeper.doubts), lambda: session.folder
            )
            run = with_pairs(run, session, plan, observer, keeper)
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
    """Says how to resume the run if a second signal stops this block."""
    try:
        yield
    except SystemExit:
        observer.say(str(resumable(ResultsError("stopped without a verdict"), folder())))
        raise


def measured(measure: Callable[[], Run], folder: Callable[[], Path | None]) -> Run:
    """Calls `measure` and returns its result. If the journal can no longer be written, the error
    says how to resume the run."""
    try:
        return measure()
    except ResultsError as error:
        raise resumable(error, folder()) from error
