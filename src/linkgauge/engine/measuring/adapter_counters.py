"""Reads network counters before and after each cell that may use the network."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from linkgauge.machine.interfaces import read_interfaces
from linkgauge.machine.network_counters import CounterReader
from linkgauge.model.hardware.inventory import Interface
from linkgauge.model.hardware.network import CounterRise, NetworkCounters, rises
from linkgauge.model.ranks import nic_ends
from linkgauge.model.transfer import Cell, Transfer

HOLDS = 0.05
"""The seconds for which the reading after one cell also serves as the one before the next."""
_Taken = tuple[CounterReader, float, tuple[NetworkCounters, ...]]
"""A reader, the time of its last reading, and the counters that it read."""


class AdapterCounters:
    """Finds network counters that rose on the machine of `rank`. `hosts` names each rank's host."""

    def __init__(self, rank: int, hosts: Sequence[str], nics: Sequence[Interface]) -> None:
        self._rank, self._hosts, self._nics = rank, hosts, nics
        self._readers: dict[tuple[Interface, ...], CounterReader] = {}
        self._began: _Taken | None = None
        self._last: _Taken | None = None

    def begin(self, cells: Iterable[Cell]) -> None:
        self._began = None
        used = self._used([one for cell in cells for one in cell.transfers])
        if used:
            if used not in self._readers:
                self._readers[used] = CounterReader(used)
            reader, now = self._readers[used], time.monotonic()
            self._began = self._last
            if self._last is None or self._last[0] is not reader or now > self._last[1] + HOLDS:
                self._began = reader, now, reader.read()

    def end(self, connections: dict[str, int]) -> tuple[CounterRise, ...]:
        """Returns the counters that rose since `begin`, or () if the cells use no network.
        `connections` has the counts of the cells' own TCP connections."""
        if self._began is None:
            return ()
        reader, begin, before = self._began
        after = reader.read()
        self._last = reader, time.monotonic(), after
        seconds = self._last[1] - begin
        own = (CounterRise(self._rank, "connection", "", seconds, connections),)
        return (*rises(before, after, seconds, self._rank), *(own if connections else ()))

    def _used(self, transfers: Sequence[Transfer]) -> tuple[Interface, ...]:
        """Returns the interfaces that transfers name or else, between hosts, all that are up."""
        named = [end for one in transfers if one.engine.owner.is_nic for end in nic_ends(one)]
        if named:
            own = {end.nic for end in named if end.rank == self._rank}
            return tuple(nic for number, nic in enumerate(self._nics) if number in own)
        ranks = {memory.rank or 0 for one in transfers for memory in one.memories}
        if len({self._hosts[rank] for rank in ranks}) < 2:
            return ()
        if not self._nics:
            self._nics = read_interfaces()
        return tuple(nic for nic in self._nics if nic.up and not nic.is_loopback)
