"""A run that another program measured, and how linkgauge read the output of that program."""

from __future__ import annotations

from typing import Literal

import msgspec

from linkgauge.model.shareable import (
    Facts,
    FileName,
    FreeText,
    HostName,
    MemoryName,
    OwnName,
    Title,
    Variable,
    Version,
    Word,
)

HostVerdict = Literal["", "ok", "warn", "low", "fail", "error", "not judged"]
"""The verdict on the run of one of several hosts; empty before it is judged. Earlier versions also
said `error`."""


class HostFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one of several hosts that were judged together.

    host: The host's name, or the name of the file with its figures.
    medians: The median of each benchmark's figures, in the benchmark's unit.
    cells: How many cells were compared with those of the other hosts.
    low: How many of these cells reach less than 90 % of the other hosts' median.
    worst: The worst of the cells in `low`; empty if there is none.
    share: The worst cell's speed as a share of the other hosts' median; null if no cell is low.
    verdict: The verdict on its own figures and on this comparison; empty before it is judged."""

    host: HostName
    medians: dict[OwnName, float] = {}
    cells: int = 0
    low: int = 0
    worst: Title = ""
    share: float | None = None
    verdict: HostVerdict = ""

    @property
    def has_failed(self) -> bool:
        return self.verdict in ("fail", "error")


class ToolRun(msgspec.Struct, frozen=True, kw_only=True):
    """The other program that measured a run, and what its output and other text files say.

    name: The program's name; several names are separated by commas.
    version: The program's version; null if the output does not say.
    files: The names of the text files.
    hosts: The names of the hosts that took part, if the output says.
    lines: The number of lines in the files that are not empty.
    understood: The number of lines that linkgauge understood.
    missed: The first line that linkgauge did not understand; empty if all were understood.
    figures: The number of figures in the output.
    judged: The number of figures that became cells of the run.
    machine: The description and the files that the facts about the machine come from.
    assumed: Facts about the machine that no file has: from its data sheet, or assumed.
    clashes: The facts on which the files contradict one another.
    settings: The environment variables that were set, according to the output.
    ways: The transports that the files name: `P2P`, `SHM`, `NET/IB`, `GDRDMA`, `peer access` etc.
    adapters: The number of network adapters that the library uses, or that the machine has.
    nearest: How near each accelerator's nearest network adapter is, such as `PIX` or `SYS`.
    warnings: Warnings about process binding, empty memory banks and links, or from the library.
    relaxed: Whether relaxed ordering is on at all accelerators; null if no file says.
    failed: What failed, according to the program.
    peers: The figures of all hosts that were judged together; the run has the cells of one host."""

    name: OwnName
    version: Version | None = None
    files: tuple[FileName, ...] = ()
    hosts: tuple[HostName, ...] = ()
    lines: int = 0
    understood: int = 0
    missed: FreeText = ""
    figures: int = 0
    judged: int = 0
    machine: FileName = ""
    assumed: tuple[Facts, ...] = ()
    clashes: tuple[FreeText, ...] = ()
    settings: dict[Variable, Word] = {}
    ways: tuple[Word, ...] = ()
    adapters: int | None = None
    nearest: dict[MemoryName, Word] = {}
    warnings: tuple[FreeText, ...] = ()
    relaxed: bool | None = None
    failed: tuple[Facts, ...] = ()
    peers: tuple[HostFigures, ...] = ()
