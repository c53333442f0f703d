"""A report's parts, as the registry of sections makes them."""

from __future__ import annotations

import shlex
from typing import Any

from linkgauge.model.result import Run
from linkgauge.model.units import count_of

from .blocks import Attachment, Attachments, Line, Page, Part, cut, plain
from .formats import FORMATS, Document
from .results import named
from .sections import OneRun, SeveralRuns, sections

MOST_NAME = 120
"""Characters of a name in a title."""


def page_of_run(one: OneRun) -> Page:
    made = (
        Part(section.name, section.title, tuple(section.of_run(one)))
        for section in sections()
        if section.of_run is not None
    )
    run = one.run
    return Page(
        f"{named(run.machine)} · {short(run.label)}",
        (plain(_machine(run)), plain(_times(run), "dim")),
        tuple(part for part in made if part.blocks),
        run.simulated,
    )


def page_of_runs(several: SeveralRuns) -> Page:
    made = (
        Part(section.name, section.title, tuple(section.of_runs(several)))
        for section in sections()
        if section.of_runs is not None
    )
    labels = sum(len(one.configurations) for one in several.comparisons)
    configurations = count_of(labels, "configuration")
    count = f"{count_of(len(several.runs), 'run')} of {configurations}"
    lines: list[Line] = [
        plain(f"{count} on {', '.join(one.accelerator for one in several.comparisons)}")
    ]
    lines += [plain(f"left out: {why}", "warn") for why in several.left_out]
    return Page(
        configurations,
        lines,
        tuple(part for part in made if part.blocks),
        any(one.run.simulated for one in several.runs),
    )


def page_of_kept(document: Document, value: Any) -> Page:
    """What a room's command keeps besides runs: what people see of it, and what programs read."""
    forms = (FORMATS[name] for name in document.texts)
    name = document.name.split()[-1]
    files = [
        Attachment(
            f"{name}.{one.name}", f"{document.name}, for programs", one.document(document, value)
        )
        for one in forms
    ]
    times = f"label {value.label} · {value.started} to {value.finished or 'an interruption'}"
    return Page(
        short(f"{document.title} · {value.label}"),
        (plain(short(shlex.join(value.command), 2 * MOST_NAME)), plain(short(times), "dim")),
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
    models: dict[str, int] = {}
    for device in machine.all_devices:
        models[device.model] = models.get(device.model, 0) + 1
    devices = [f"{count} × {model}" if count > 1 else model for model, count in models.items()]
    host = machine.host
    parts = [*devices, host.cpu_model or "unknown processor", f"{host.cpus} CPUs"]
    return short(", ".join(parts), 2 * MOST_NAME)


def _times(run: Run) -> str:
    end = f" to {run.finished}" if run.finished else ", interrupted"
    return short(f"label {run.label} · {run.started}{end} · linkgauge {run.machine.linkgauge}")
