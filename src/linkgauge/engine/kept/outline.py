"""Reads only the fields of runs that are needed to choose one of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from linkgauge.machine.host import this_host
from linkgauge.model.documents.result import Status


class _Host(msgspec.Struct, frozen=True):
    hostname: str = ""


class _MachineOnly(msgspec.Struct, frozen=True):
    host: _Host = _Host()
    simulated: str | None = None


class _HowOnly(msgspec.Struct, frozen=True):
    profile: str = ""
    sizes: tuple[int, ...] = ()


class _CellOnly(msgspec.Struct, frozen=True):
    status: Status = "skip"


class _ResultOnly(msgspec.Struct, frozen=True):
    cells: tuple[_CellOnly, ...] = ()


class _RecordOnly(msgspec.Struct, frozen=True):
    cell: _CellOnly = _CellOnly()


class RunOutline(msgspec.Struct, frozen=True):
    """The fields that are needed to choose a run. Documents that are no runs may lack some."""

    simulated: bool = False
    machine: _MachineOnly | None = None
    label: str = ""
    settings: _HowOnly = _HowOnly()
    results: tuple[_ResultOnly, ...] | None = None

    @property
    def is_own(self) -> bool:
        """Whether the run was measured on this machine, and not simulated."""
        here = self.machine is None or self.machine.host.hostname == this_host()
        return here and not self.is_simulated

    @property
    def is_simulated(self) -> bool:
        return self.simulated or (self.machine is not None and self.machine.simulated is not None)

    @property
    def is_measured(self) -> bool:
        """Whether any cell was not skipped: a run of skipped cells says nothing of the machine."""
        results = self.results
        return results is None or any(c.status != "skip" for one in results for c in one.cells)

    def __str__(self) -> str:
        if self.is_simulated:
            return "is simulated"
        if not self.is_own:
            where = self.machine.host.hostname if self.machine is not None else ""
            return f"was measured on {where or 'another machine'}"
        return "is of this machine" if self.is_measured else "measured nothing"


def outline_of(file: Path) -> RunOutline | None:
    try:
        with file.open("rb") as content:
            if file.suffix != ".jsonl":
                return msgspec.json.decode(content.read(), type=RunOutline)
            first = msgspec.json.decode(content.readline(), type=RunOutline)
            return replace(first, results=(_ResultOnly(tuple(_cells_in(content))),))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _cells_in(lines: Iterable[bytes]) -> Iterator[_CellOnly]:
    """Yields a journal's cells, until the first that was not skipped, or before a cut-off line."""
    decoder = msgspec.json.Decoder(_RecordOnly)
    for line in lines:
        try:
            cell = decoder.decode(line).cell
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        yield cell
        if cell.status != "skip":
            return
