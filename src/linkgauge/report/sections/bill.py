"""Shows the bill of materials: the hardware and software with which the run was measured."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from linkgauge.model.documents.result import Run
from linkgauge.model.units import format_size
from linkgauge.report.blocks import Block, cut
from linkgauge.report.results import table

from . import OneRun, Section
from .machine import detailed_machine_blocks

MOST_VALUE = 2000


def _blocks(one: OneRun) -> Iterator[Block]:
    yield from detailed_machine_blocks(one.run.machine)
    facts = ((name, cut(text, MOST_VALUE)) for name, text in _facts(one.run) if text)
    yield table("How it was measured", ("", ""), facts)


def _facts(run: Run) -> Iterator[tuple[str, str | None]]:
    settings, machine = run.settings, run.machine
    yield "linkgauge", machine.linkgauge
    yield "commit", machine.commit
    yield "Python", machine.python
    yield "command", shlex.join(run.command)
    yield "run", run.id
    yield "label", run.label
    yield "began", run.started
    yield "resumed", ", ".join(run.resumed)
    yield "ended", run.finished or "interrupted"
    yield "sizes", ", ".join(map(format_size, settings.sizes))
    yield "precision", f"±{settings.precision:.2%}"
    yield "verified", "yes" if settings.verify else "no"


SECTION = Section("bill", "Bill of materials", 90, of_run=_blocks)
