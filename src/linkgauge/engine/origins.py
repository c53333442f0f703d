"""Where a kept run was measured: all that is read of files of which only one is wanted."""

from __future__ import annotations

from pathlib import Path

import msgspec

from linkgauge.machine.host import this_host


class _Host(msgspec.Struct, frozen=True):
    hostname: str = ""


class _Machine(msgspec.Struct, frozen=True):
    host: _Host = _Host()
    simulated: str | None = None


class Origin(msgspec.Struct, frozen=True):
    """The machine of a run.json, or of a journal's first record."""

    simulated: bool = False
    machine: _Machine = _Machine()

    @property
    def is_own(self) -> bool:
        """Whether it is this machine."""
        return not self.is_simulated and self.machine.host.hostname == this_host()

    @property
    def is_simulated(self) -> bool:
        return self.simulated or self.machine.simulated is not None

    def __str__(self) -> str:
        if self.is_simulated:
            return "is simulated"
        return f"was measured on {self.machine.host.hostname or 'another machine'}"


def origin_of(file: Path) -> Origin | None:
    """None if the file does not tell: whoever reads all of it says why."""
    try:
        with file.open("rb") as content:
            data = content.readline() if file.suffix == ".jsonl" else content.read()
        return msgspec.json.decode(data, type=Origin)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
