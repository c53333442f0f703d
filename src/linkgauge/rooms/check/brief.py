"""A brief plan: each link of a machine, its memory and a collective, in little time."""

from __future__ import annotations

import time

from msgspec.structs import replace

from linkgauge.engine.pair_sample import draw
from linkgauge.engine.plan import Plan, able, make_plan, most_seconds
from linkgauge.engine.profiles import PROFILES
from linkgauge.engine.request import RunRequest, Selection
from linkgauge.engine.session import Session
from linkgauge.model.pairs import PairSample
from linkgauge.model.settings import EngineSettings, Settings, Simulation
from linkgauge.model.transfer import Benchmark

LINKS = ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce")
HOST = ("host_to_host_memcpy_read_cpu",)
COLLECTIVE = ("all_reduce",)
PAIRS = ("device_to_device_memcpy_write_ce",)
PROFILE = "quick"
SHARE = 0.6
"""Share of the time that the plan's estimate may fill: workers start, and cells in doubt are
measured once more."""


def brief_settings(seconds: float, simulation: Simulation | None) -> Settings:
    """How a check of this many seconds measures: how long a cell is sampled, and when it is given
    up. Nothing is searched, which would take longer than to measure."""
    profile = PROFILES[PROFILE]
    return replace(
        profile,
        max_time=min(max(seconds / 200, 0.05), profile.max_time),
        timeout=min(max(seconds / 4, 2.0), 15.0),
        engines=EngineSettings(searches=False),
        simulation=simulation,
    )


def brief_plan(session: Session, seconds: float) -> Plan:
    """The links of each device, host memory, a collective, and as many pairs of devices as
    `seconds` allow. Which pairs changes from minute to minute, so that checks get round to all of
    them; on a simulated machine it does not. Raises InputError if a backend or a device that was
    asked for is not there."""
    request, settings = session.request, session.request.settings
    with_host = not request.backends or "host" in request.backends
    by_link = replace(request, profile=PROFILE)
    plan = _planned(session, by_link, (*LINKS, *(HOST if with_host else ())), 0)
    plan += _planned(session, replace(request, profile=None), COLLECTIVE, _cells(plan))
    pairs = _laid_out(session, by_link, PAIRS)
    if not any(one.cells for one in pairs):
        return plan
    whole = make_plan(pairs, session.machine, settings.sizes, profile=PROFILE)
    each = (most_seconds(whole, settings) or 0.0) / max(1, sum(1 for _ in able(whole)))
    left = SHARE * seconds - (most_seconds(plan, settings) or 0.0)
    count = max(1, int(left / each)) if each else _cells(whole)
    seed = 1 if settings.simulation is not None else int(time.time() // 60) % (1 << 32)
    drawn = draw(pairs, PairSample(count, seed))
    more = make_plan(drawn, session.machine, settings.sizes, first=_cells(plan), profile=PROFILE)
    return plan + more


def _planned(session: Session, request: RunRequest, names: tuple[str, ...], first: int) -> Plan:
    benchmarks = _laid_out(session, request, names)
    sizes = session.request.settings.sizes
    return make_plan(
        benchmarks, session.machine, sizes, first=first, profile=request.profile
    ) if benchmarks else ()  # fmt: skip


def _laid_out(
    session: Session, request: RunRequest, names: tuple[str, ...]
) -> tuple[Benchmark, ...]:
    """Those of the named benchmarks that this machine has anything for."""
    if set(names).isdisjoint(HOST) and not request.over(session.machine):
        return ()
    return Selection(names).lay_out(request, session.machine)


def _cells(plan: Plan) -> int:
    return sum(len(sheet.cells) for sheet in plan)
