"""Finds a launch's processes on this machine: ranks whose process has ended are not awaited."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from contextlib import suppress

from linkgauge.engine.workers.messages import Deadlines
from linkgauge.machine.processes.launch import (
    Launch,
    host_name,
    launched,
    parent_in,
    ranks_per_cpu,
    starter,
    status_of,
)
from linkgauge.machine.tree import ROOT, Root
from linkgauge.model.errors import InputError
from linkgauge.model.ranks import LostRank, Rank, lost_rank

LOOK_SECONDS = 1.0
"""Interval at which processes are looked for."""
STARTED_SECONDS = 2.0
"""The seconds after which a launcher has started all ranks of its machine; longer if they share
CPUs."""
JOINING = "joining"
_MARKS = (b"RANK", b"PROCID")
"""Every launcher's variable for a rank's number has one of these texts in its name."""


class Processes:
    def __init__(self, launch: Launch, root: Root = ROOT) -> None:
        self._launch = launch
        self._root = root
        self._seen: dict[int, int] = {}
        """A process that was seen for each rank."""
        self._absent: frozenset[int] = frozenset()
        """The missing ranks without a process at the last check."""
        self._next = time.monotonic()
        self._started = self._next + STARTED_SECONDS * Deadlines.shared(ranks_per_cpu(launch)).slow

    def ended(self, missing: Collection[int]) -> LostRank | None:
        """Returns a missing rank that has ended, or None. A rank has ended if two checks in a row
        find no process of it. Returns None if called again too soon."""
        if time.monotonic() < self._next:
            return None
        living = self.living()
        without = frozenset(missing) - living.keys()
        absent = without & self._seen.keys()
        unseen = without - absent
        if unseen and self._were_started() and self._fewer_than_started() >= len(unseen):
            absent = without
        # A rank may be absent once, because a launcher may run a script first.
        ended, self._absent = self._absent & absent, absent
        self._seen |= living
        self._next = time.monotonic() + LOOK_SECONDS
        if not ended:
            return None
        rank = min(ended)
        process = self._seen.get(rank)
        known = None if process is None else Rank(rank, host_name(), process)
        return lost_rank(rank, "ended", JOINING, known)

    def living(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for process in self._numbers():
            if (rank := self.rank_of(process)) is not None:
                found[rank] = process
        return found

    def rank_of(self, process: int) -> int | None:
        environment = self._root.content(f"proc/{process}/environ") or b""
        if not any(mark in environment for mark in _MARKS):
            return None
        words = (word.partition("=") for word in os.fsdecode(environment).split("\0"))
        parent = parent_in(status_of(self._root, process))
        with suppress(InputError):
            other = launched({name: value for name, _, value in words}, self._root, parent)
            if _anyone(other) == _anyone(self._launch):
                return other.rank
        return None

    def _numbers(self) -> Sequence[int]:
        return [int(name) for name in self._root.names("proc") if name.isdecimal()]

    def _were_started(self) -> bool:
        return self._launch.on_one_machine and time.monotonic() >= self._started

    def _fewer_than_started(self) -> int:
        """Returns how many of the launcher's children, one for each rank, have ended."""
        launcher = starter(self._root, parent_in(status_of(self._root, os.getpid())))
        if launcher is None:
            return 0
        statuses = (status_of(self._root, process) for process in self._numbers())
        living = [one for one in statuses if not one.get("State", "").startswith("Z")]
        return self._launch.size - sum(parent_in(one) == launcher for one in living)


def _anyone(launch: Launch) -> Launch:
    """Returns the launch with all rank numbers set to 0, so that ranks of one launch are equal."""
    return launch._replace(rank=0, local_rank=0)
