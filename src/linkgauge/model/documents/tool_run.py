"""The other program that measured a run, and how linkgauge read its output."""

from __future__ import annotations

import msgspec


class ToolRun(msgspec.Struct, frozen=True, kw_only=True):
    """The other program that measured a run, and the texts that describe its output and the
    machine.

    name: The program's name; several names are separated by commas.
    version: The program's version; null if the output does not say.
    files: The names of the text files.
    hosts: The names of the hosts that took part, if the output says.
    lines: The number of lines in the texts that are not empty.
    understood: The number of lines that linkgauge understood.
    missed: The first line that linkgauge did not understand; empty if all were understood.
    figures: The number of figures in the output.
    judged: The number of figures that became cells of the run.
    machine: The source of the machine's description.
    assumed: What was assumed of the machine, because no text says.
    clashes: The facts on which the texts contradict one another.
    settings: The environment variables that were set, according to the output.
    ways: The transports that the library reports to use: `P2P`, `SHM`, `NET`.
    relaxed: Whether relaxed ordering is on at all accelerators; null if no text says.
    failed: What failed, according to the program."""

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
    relaxed: bool | None = None
    failed: tuple[str, ...] = ()
