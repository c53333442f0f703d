"""The command `linkgauge check`."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated

from linkgauge.cli import common
from linkgauge.cli.help_text import OUTPUT, PRECISION, WHAT
from linkgauge.cli.options import Count, Options, Time, option
from linkgauge.cli.proposals import labels
from linkgauge.model.errors import InputError
from linkgauge.report.formats import Document, Format

if TYPE_CHECKING:
    from linkgauge.engine.request import RunRequest
    from linkgauge.judge.compare.likeness import RunFigures
    from linkgauge.model.settings import Settings
    from linkgauge.uses.sides import Say

    from .health import Health

CONDITION = Document("a check", texts={"json": "linkgauge.rooms.check.health:condition_document"})
LEAST, MOST, UNDER = 5.0, 86400.0, 60.0
GOOD = "good"


class CheckOptions(Options):
    under: Time = option(
        PRECISION,
        "End within this time, whatever hangs: 30s, 2m. Default: 60s.",
        "TIME",
        default=UNDER,
        show_default=False,
    )
    backend: tuple[str, ...] = common.BACKEND
    devices: Count | None = option(WHAT, "Fail unless there are N accelerators.", "N")
    limits: Path | None = common.LIMITS
    waivers: Path | None = common.WAIVERS
    baseline: Path | None = option(
        WHAT,
        "Also compare this node with a run, a baseline or a label.",
        "REF",
        is_input=True,
        offer=labels,
    )
    label: str = common.label("check")
    out: Path | None = option(OUTPUT, "Keep the run below this folder. Default: nowhere.", "DIR")
    simulated: common.Simulated
    form: Annotated[Format, CONDITION]


def check(asked: CheckOptions) -> int:
    """Say whether this node is fit for work.

    Measures each link, host memory and a collective for a moment. Prints one line, and exits with 0
    if the node is healthy, or nothing tells what it should reach; else with 1.

    Examples:
        linkgauge check --under 60s
        linkgauge check --machine dgx-h200-8 --devices 8 --json"""
    began, form = time.monotonic(), asked.form
    with ending(began + time_of(asked), form):
        result = checked(asked, began)
        from linkgauge.report.console import make_console
        from linkgauge.report.render.terminal import styled

        from .health import condition_line

        if form.is_document:
            form.write(CONDITION, result)
        # One line, however long.
        make_console(stderr=form.is_document).print(styled(condition_line(result)))
    return 0 if result.is_healthy else 1


def checked(
    asked: CheckOptions, began: float, say: Say | None = None, now: Say = lambda _: None
) -> Health:
    """Checks this node. `began` is the monotonic time of the start. `say` prints messages, and
    `now` receives the name of each step. Raises InputError for invalid options."""
    under = time_of(asked)
    with tempfile.TemporaryDirectory(
        prefix="linkgauge-check-", ignore_cleanup_errors=True
    ) as folder:
        from msgspec.structs import replace

        from linkgauge.engine.kept.folder import check_writable
        from linkgauge.judge.limits import refuse_unmatched
        from linkgauge.model.by_name import by_name
        from linkgauge.uses.sides import side_of, to_stderr

        from .bounded import Task, measure_within
        from .health import health_of

        limits = common.limits_in(asked.limits)
        waivers = common.waivers_in(asked.waivers)
        before = side_of(asked.baseline, say or to_stderr) if asked.baseline else ()
        request = _request(asked, Path(folder) / "runs")
        if before:
            _refuse_unlike(asked, before, request.settings)
        if asked.out is not None:
            check_writable(asked.out)
        reserve = min(max(under / 10, 1.5), 5.0)
        task = by_name(Task, request, deadline=began + under - reserve)
        bounded = measure_within(task, Path(folder), now)
        if bounded.run is not None:
            bounded = replace(bounded, run=common.with_waivers(bounded.run, waivers))
        if bounded.run is not None and not bounded.missing:
            refuse_unmatched(bounded.run.results, bounded.run.machine, limits)
        longest = request.settings.timeout or under
        health = health_of(bounded, limits, before, asked.devices, longest)
        return replace(health, at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))


def _refuse_unlike(asked: CheckOptions, before: Sequence[RunFigures], settings: Settings) -> None:
    from linkgauge.engine.kept.runs import RESULTS
    from linkgauge.judge.compare.likeness import settings_facts
    from linkgauge.report.words.figures import said
    from linkgauge.report.words.sentences import program

    facts = settings_facts([[run.settings for run in before], [settings]])
    if not facts:
        return
    name = program()
    under = [] if asked.under == UNDER else ["--under", f"{asked.under:g}s"]
    given = {"--machine": asked.simulated.machine, "--change": asked.simulated.change}
    on = [word for option, of in given.items() if of is not None for word in (option, of)]
    by = [word for backend in asked.backend for word in ("--backend", backend)]
    check = (name, "check", *under, *by, *on, "--out", str(RESULTS), "--label", GOOD)
    raise InputError(
        f"{asked.baseline} is of runs that were not measured as this check measures "
        f"({facts[0].name}: {said(facts[0], ('baseline', 'check'))}): make a baseline of a check: "
        f"{join(check)} && {join((name, 'baseline', GOOD, '-o', f'{GOOD}.json'))}"
    )


def time_of(asked: CheckOptions) -> float:
    if not LEAST <= asked.under <= MOST:
        raise InputError(f"--under {asked.under:g}s: give 5 s to 24 h")
    return asked.under


def _request(asked: CheckOptions, otherwise: Path) -> RunRequest:
    from linkgauge.cli.requests import request_of
    from linkgauge.engine.request import Selection, choose_backends

    from .bounded import PROFILE, brief_settings

    simulation = asked.simulated.simulation()
    choose_backends(asked.backend, simulation)
    settings = brief_settings(asked.under, simulation)
    return request_of(asked, Selection(), settings, PROFILE, out=asked.out or otherwise)


@contextmanager
def ending(deadline: float, form: Format) -> Iterator[None]:
    """Prints `not ok` and exits with 1 if the block, such as a file access, hangs at `deadline`."""

    def end() -> None:
        line = "not ok: the check itself hung"
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        document = (
            '{"schema": "linkgauge.check/1", "verdict": "fail", "exit_code": 1, "findings": [], '
            '"condition": {"type": "LinksHealthy", "status": "False", "reason": "Hung", '
            f'"message": "the check itself hung", "lastHeartbeatTime": "{at}", '
            f'"lastTransitionTime": "{at}"}}}}'
        )
        os.write(1, f"{document if form.is_document else line}\n".encode())
        os._exit(1)

    timer = threading.Timer(max(0.0, deadline - time.monotonic()), end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        sys.stdout.flush()
