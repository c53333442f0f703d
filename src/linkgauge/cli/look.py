"""Implements `linkgauge` without a command: a quick look at this machine."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from linkgauge.report.formats import GLANCE

if TYPE_CHECKING:
    from linkgauge.engine.plan import Plan
    from linkgauge.report.formats import Format
    from linkgauge.report.words.remedies import Command

SECONDS = 2.0
"""The most seconds that this screen waits for accelerators."""
PROFILE = "quick"
_EXAMPLE = "dgx-h200-8"


def look(form: Format) -> int:
    from linkgauge.engine.workers.process import early_worker

    with early_worker(brief=not form.is_document) as first:
        from linkgauge.engine.controller import Observer
        from linkgauge.engine.profiles import PROFILES
        from linkgauge.engine.request import RunRequest
        from linkgauge.engine.session import opened
        from linkgauge.report.sections.glance import Glance
        from linkgauge.report.sections.plan import dry_run

        settings = PROFILES[PROFILE]
        request = RunRequest(settings=settings, profile=PROFILE, budget="plan")
        with opened(request, first, None if form.is_document else SECONDS) as session:
            session.look_first(measures=False)
            machine, plan, asked = session.machine, session.plan(Observer()), session.request
        reached = any(not device.is_cpu for device in machine.all_devices)
        seconds = dry_run(plan, asked.settings, asked.budget).most_seconds or 0.0
        form.write(GLANCE, Glance(machine, _figures(plan), seconds, _fitting(devices=reached)))
    return 0


def _figures(plan: Plan) -> dict[str, int]:
    from linkgauge.benchmarks.catalog import groups
    from linkgauge.engine.plan import able

    counts = Counter(table.benchmark for table, _ in able(plan))
    sums = {what: sum(counts[row.name] for row in rows) for what, rows in groups().items()}
    return {what: count for what, count in sums.items() if count}


def _fitting(*, devices: bool) -> list[Command]:
    from linkgauge.report.words.remedies import Command
    from linkgauge.report.words.sentences import program

    from .doctor import look_at_a_run

    first = look_at_a_run()
    measures = Command((program(), "run", "--profile", PROFILE), "measure all of this")
    judges = Command((program(), "doctor"), "what is wrong with the setup, and how to fix it")
    checks = Command((program(), "check", "--under", "60s"), "is this machine fit for work?")
    shows = Command(
        (program(), "run", "--machine", _EXAMPLE, "--profile", PROFILE),
        "how it looks with eight GPUs (SIMULATED)",
    )
    begun = [first, measures] if first.comment else [measures, judges]
    trains = Command(
        (program(), "judge", "nccl.log"), "is training slow? judge a log (docs/slow-training.md)"
    )
    return [*begun, checks if devices else shows, trains]
