"""The page that Prometheus scrapes. What is slow to read or to write out is kept; a scrape joins
it."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import linkgauge
from linkgauge.model.inventory import Seen

from .families import Families
from .live_families import live_text
from .machine import Say
from .machine import Source as Machine
from .reader import PATIENCE, Reader, Taken
from .result_families import add_ages, result_text
from .results import Results
from .results import Source as ResultSource

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class _Part(NamedTuple):
    """A part of the page, as it is and packed by gzip, whose parts join as texts do."""

    plain: bytes
    packed: bytes


def _part(text: bytes) -> _Part:
    return _Part(text, gzip.compress(text, 6, mtime=0))


class _Written(NamedTuple):
    """Results, and their part of the page."""

    results: Results
    part: _Part


_NOTHING = _Written(Results(), _part(b""))


class _Writer:
    """Writes results out, once for as long as they are the same."""

    def __init__(self, source: ResultSource) -> None:
        self._source = source
        self._last = _NOTHING

    def read(self) -> _Written:
        results = self._source.read()
        if results is not self._last.results:
            self._last = _Written(results, _part(result_text(results)))
        return self._last


class Page:
    """Of a machine and of a source of results."""

    def __init__(self, machine: Machine, results: ResultSource, say: Say) -> None:
        self._machine = machine
        self._results = Reader("results", _Writer(results).read, results.period, say)
        self._lock = threading.Lock()
        self._of_machine: tuple[tuple[int, ...], _Part] = (), _part(b"")

    def text(self, patience: float = PATIENCE, *, packed: bool = False) -> bytes:
        """The metrics now, `packed` by gzip or not. Readings that are due are waited for, all
        together for at most `patience` seconds; what takes longer is shown as it was."""
        readers = self._readers(time.monotonic() + patience)
        results = self._results.taken()
        readings: dict[str, Taken[Any]] = {"results": results}
        readings |= {reader.name: reader.taken() for reader in readers}
        of_machine = [readings[reader.name] for reader in readers]
        written = results.value or _NOTHING
        own = _own_text(written.results, readings)
        with self._lock:
            kept = written.part, self._kept_machine(of_machine)
        if packed:
            return b"".join([*(part.packed for part in kept), _part(own).packed])
        return b"".join([*(part.plain for part in kept), own])

    def _kept_machine(self, readings: list[Taken[Seen]]) -> _Part:
        versions = tuple(one.version for one in readings)
        if self._of_machine[0] != versions:
            machine = self._machine
            found = [one.value for one in readings if one.value is not None]
            text = live_text(machine.host, machine.simulated, found)
            self._of_machine = versions, _part(text)
        return self._of_machine[1]

    def _readers(self, until: float) -> list[Reader[Seen]]:
        """The machine's readers, once all have been asked and waited for."""
        asked: list[Reader[Seen]] = []
        self._results.ask()
        while len(found := self._machine.readers()) > len(asked):  # the first may open others
            for reader in found:
                reader.ask()
            for reader in found:
                reader.wait(until)
            asked = found
        self._results.wait(until)
        return asked


def _own_text(results: Results, readings: Mapping[str, Taken[Any]]) -> bytes:
    families = Families()
    families.gauge("exporter_info", "Always 1.", ("version",))
    families.add("exporter_info", 1.0, linkgauge.__version__)
    families.gauge("source_age_seconds", "Time since a source was last read.", ("source",))
    families.gauge("source_stale", "Whether a source fails, or hangs: what is shown of it is old.",
                   ("source",))  # fmt: skip
    for name, one in readings.items():
        families.add("source_age_seconds", one.age, name)
        families.add("source_stale", float(one.stale), name)
    add_ages(families, results, time.time())
    return families.text()
