"""A report's parts, as the registry of sections makes them."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable
from typing import Any

from linkgauge.model.result import Run
from linkgauge.model.units import count_of

from .blocks import Attachment, Attachments, Block, Page, Part, cut, plain
from .formats import FORMATS, Document
from .results import named
from .sections import OneRun, Section, SeveralRuns, sections

MOST_NAME = 120
"""Characters of a name in a title."""


def page_of_run(one: OneRun) -> Page:
    made = ((each, each.of_run(one)) for each in sections() if each.of_run is not None)
    run = one.run
    return Page(
        f"{named(run.machine)} · {short(run.label)}",
        (plain(_machine(run)), plain(f"{_times(run)} · linkgauge {run.machine.linkgauge}", "dim")),
        _parts(made),
        run.simulated,
    )


def page_of_runs(several: SeveralRuns) -> Page:
    made = ((each, each.of_runs(several)) for each in sections() if each.of_runs is not None)
    labels = sum(len(one.found.sides) for one in several.comparisons)
    configurations = count_of(labels, "configuration")
    count = f"{count_of(len(several.runs), 'run')} of {configurations}"
    accelerators = ", ".join(one.accelerator for one in several.comparisons)
    lines = (
        plain(f"{count} on {accelerators}"),
        *(plain(why, "warn") for why in several.left_out),
    )
    simulated = any(one.run.simulated for one in several.runs)
    return Page(configurations, lines, _parts(made), simulated)


def _parts(made: Iterable[tuple[Section, Iterable[Block]]]) -> tuple[Part, ...]:
    parts = (Part(section.name, section.title, tuple(blocks)) for section, blocks in made)
    return tuple(part for part in parts if part.blocks)


def page_of_kept(document: Document, value: Any) -> Page:
    """What a room's command keeps besides runs: what people see of it, and what programs read."""
    name, said = document.name.split()[-1], f"{document.name}, for programs"
    files = [
        Attachment(f"{name}.{form}", said, FORMATS[form].document(document, value))
        for form in document.texts
    ]
    return Page(
        short(f"{document.title} · {value.label}"),
        (plain(short(shlex.join(value.command), 2 * MOST_NAME)), plain(_times(value), "dim")),
        (
            Part(name, document.title, tuple(document.shown(value))),
            Part("data", "Raw data", (Attachments(files),)),
        ),
        value.simulated,
    )


def short(text: str, most: int = MOST_NAME) -> str:
    """A name on one line."""
    return cut(text, most)


def _machine(run: Run) -> str:
    """`8 × NVIDIA H200, Intel(R) Xeon(R) …, 224 CPUs`."""
    machine = run.machine
    models = Counter(device.model for device in machine.all_devices)
    devices = [f"{count} × {model}" if count > 1 else model for model, count in models.items()]
    host = machine.host
    parts = [*devices, host.cpu_model or "unknown processor", f"{host.cpus} CPUs"]
    return short(", ".join(parts), 2 * MOST_NAME)


def _times(of: Any) -> str:
    """When a run or a document was made."""
    end = f" to {of.finished}" if of.finished else ", interrupted"
    return short(f"label {of.label} · {of.started}{end}")
