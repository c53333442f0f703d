"""Shows what `linkgauge` without a command prints: this machine, what to measure, and commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.names import spans
from linkgauge.model.units import approximate_size, count_of
from linkgauge.report.blocks import Block, Column, Entry, Prose, Span, line, plain
from linkgauge.report.files import json_document
from linkgauge.report.results import table
from linkgauge.report.sections.pci import Subject, subjects
from linkgauge.report.words.remedies import Command

from .machine import machine_heading, unavailable_lines


class Glance(NamedTuple):
    """A machine, the quick profile's cells counted by kind, their time, and commands to try."""

    machine: Machine
    figures: Mapping[str, int]
    seconds: float
    commands: Sequence[Command]


def accelerators_of(machine: Machine) -> list[Subject]:
    """Returns the accelerators, one without a PCI address only if no other one has its model."""
    cpus = {one.memory for one in machine.all_devices if one.is_cpu}
    found = [one for one in subjects(machine) if one.label not in cpus]
    models = {one.model for one in found}
    bare = (one for one in machine.all_devices if not (one.pci or one.is_cpu or one.node))
    found += [Subject(label=o.memory, model=o.model) for o in bare if o.model not in models]
    return found


def glance_blocks(glance: Glance) -> Iterator[Block]:
    machine = glance.machine
    yield Prose([*machine_heading(machine), *_memories(machine)])
    rows = [(what, str(count)) for what, count in glance.figures.items()]
    time = f"linkgauge run --profile quick measures them in at most about {glance.seconds:.0f} s"
    found = table("Can be measured here", ("", Column("figures", True)), rows)
    yield found._replace(lines=[plain(f"{sum(glance.figures.values())} figures: {time}", "dim")])
    steps = [(Entry(one.line, tone="strong"), one.comment) for one in glance.commands]
    yield table("Type next", ("", ""), steps)
    yield Prose([line(Span("linkgauge --help", "strong"), " lists all commands")])


def _memories(machine: Machine) -> Iterator[tuple[Span, ...]]:
    size = machine.host.memory_total
    nodes = count_of(len(machine.host.nodes), "NUMA node")
    yield plain(f"{nodes}, {'unknown' if size is None else approximate_size(size)} of memory")
    known = accelerators_of(machine)
    equivalent = grouped((one.model or "accelerator", one.label) for one in known)
    for model, labels in equivalent.items():
        yield plain(f"{len(labels)} × {model} ({spans(labels)})")
    reached = any(not one.is_cpu for one in machine.all_devices)
    yield from unavailable_lines(machine, only_unanswered=reached)


def glance_document(glance: Glance) -> str:
    machine = glance.machine
    return json_document({
        "schema": "linkgauge.glance/1",
        "host": machine.host.hostname,
        "accelerators": [
            {"name": one.label, "model": one.model} for one in accelerators_of(machine)
        ],
        "unavailable": machine.unavailable,
        "unanswered": machine.unanswered,
        "figures": glance.figures,
        "most_seconds": glance.seconds,
        "commands": [
            {"command": one.line, "purpose": one.comment} for one in glance.commands
        ],
    })  # fmt: skip
