"""The other program that a run was measured by, and how its output was read."""

from __future__ import annotations

import msgspec


class HostFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one of several hosts that were judged together.

    host: The host's name, or that of the text with its figures.
    medians: The median of each benchmark's figures, in the benchmark's unit.
    cells: How many cells were compared with those of the other hosts.
    low: How many of them are worse than the other hosts' median by more than is usual.
    worst: The worst of these cells; empty without any.
    share: What its worst cell reaches of the other hosts' median; null without such a cell.
    verdict: What its own figures and this comparison say of it; empty before it is judged.
    """

    host: str
    medians: dict[str, float] = {}
    cells: int = 0
    low: int = 0
    worst: str = ""
    share: float | None = None
    verdict: str = ""


class ToolRun(msgspec.Struct, frozen=True, kw_only=True):
    """The other program that a run was measured by, and the texts that tell of it and the machine.

    name: The program's name; several, with commas.
    version: Its version; null if its output does not tell.
    files: The names of the texts.
    hosts: The names of the hosts that took part, if the output tells.
    lines: The number of lines in the texts that are not empty.
    understood: How many of them were understood.
    missed: The first line that was not; empty if all were.
    figures: How many figures the output has.
    judged: How many of them are among the run's cells.
    machine: What the machine was described by.
    assumed: What was assumed of the machine, because no text tells.
    clashes: What the texts contradict one another about.
    settings: What the output says is set in the environment.
    ways: The ways that the library says that it takes: `P2P`, `SHM`, `NET/IB`, `GDRDMA`.
    adapters: How many network adapters the library uses, or the machine has.
    nearest: How near each accelerator's nearest network adapter is: `PIX`, `SYS`.
    warnings: The library's warnings about something that is missing.
    relaxed: Whether relaxed ordering is on at all accelerators; null if no text tells.
    failed: What the program reports to have failed.
    peers: The figures of all hosts, if several were judged together; the run has those of one.
    """

    name: str
    version: str | None = None
    files: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    lines: int = 0
    understood: int = 0
    missed: str = ""
    figures: int = 0
    judged: int = 0
    machine: str = ""
    assumed: tuple[str, ...] = ()
    clashes: tuple[str, ...] = ()
    settings: dict[str, str] = {}
    ways: tuple[str, ...] = ()
    adapters: int | None = None
    nearest: dict[str, str] = {}
    warnings: tuple[str, ...] = ()
    relaxed: bool | None = None
    failed: tuple[str, ...] = ()
    peers: tuple[HostFigures, ...] = ()
