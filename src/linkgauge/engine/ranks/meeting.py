"""Exchanges values between the ranks of a cell: rank 0 collects all and sends them to all ranks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from linkgauge.machine.processes.channel import Done, Reason, Refused, encode, error_of, value_of
from linkgauge.model.errors import BackendError
from linkgauge.model.ranks import RankLost

from .clocks import Clocks
from .commands import Meet, Met, PartyLeft, Said, TakePart
from .member_links import Links

_T = TypeVar("_T")


class Meeting:
    """One rank's part in exchanges between the ranks of a cell (`parties`), through rank 0."""

    def __init__(
        self,
        rank: int,
        parties: tuple[int, ...],
        meet: Callable[[Meet], Met | PartyLeft] | None = None,
    ) -> None:
        self.rank, self.parties = rank, parties
        self._meet = meet
        self.at: float | None = None
        """The time at which all ranks are to start, by rank 0's clock; None if the meeting set no
        time."""
        self.ahead = 0.0
        """The seconds by which this rank's clock is ahead of rank 0's."""

    def share(
        self,
        found: object,
        reason: Reason | None,
        kind: type[_T],
        moved: int = 0,
        start: bool = False,
        late: bool = False,
    ) -> Mapping[int, _T]:
        """Sends `found` to all ranks. Returns the value of each rank, which has the type `kind`. If
        any rank has an error (`reason`), all ranks raise the first error. `moved` is the most bytes
        moved before the next meeting. If `start` is true, ranks agree on a start time. `late` is
        true if the last start was late. Raises BackendError if another rank has left the cell."""
        assert self._meet is not None  # noqa: S101
        answer = self._meet(Meet(Said(msgspec.Raw(encode(found)), reason), moved, start, late))
        if isinstance(answer, PartyLeft):
            raise BackendError("the ranks", answer.why)
        self.at, self.ahead = answer.at, answer.ahead
        for rank, said in sorted(answer.said.items()):
            if said.reason is not None:
                raise error_of(said.reason, f"rank {rank}")
        return {rank: value_of(said.value, kind) for rank, said in sorted(answer.said.items())}


class Meetings:
    """Rank 0's side of the exchanges between ranks."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._clocks = Clocks(links)

    def carry_out(
        self, part: TakePart, moved: int
    ) -> tuple[dict[int, Done | Refused], frozenset[int]]:
        """Makes the ranks of a cell measure their part. Returns the last answer of each rank, and
        the ranks that had to stop because another one left. Raises RankLost if a rank is gone."""
        answers: dict[int, Done | Refused] = {}
        parted: set[int] = set()
        commands: Mapping[int, object] = dict.fromkeys(part.parties, part)
        while commands:
            replies = self._links.round(commands, moved)
            met = {rank: reply for rank, reply in replies.items() if isinstance(reply, Meet)}
            left = {r: reply for r, reply in replies.items() if not isinstance(reply, Meet)}
            answers |= left
            moved = max((meet.moved for meet in met.values()), default=0)
            answered = self._answers(met) if len(met) == len(commands) else None
            if answered is None:
                there = self._links.there(met)
                parted |= there
                gone = sorted(set(part.parties) - there)
                answered = dict.fromkeys(there, PartyLeft(f"rank {gone[0]} has left the cell"))
            commands = answered
        self._links.check_there(part.parties)
        return answers, frozenset(parted)

    def _answers(self, met: Mapping[int, Meet]) -> Mapping[int, object] | None:
        """Returns the answer to each rank. Returns None if a rank is lost while its clock is read,
        but the run goes on without it. Raises RankLost if the loss ends the run."""
        said = {rank: meet.said for rank, meet in met.items()}
        if not any(meet.start for meet in met.values()):
            return dict.fromkeys(met, Met(said))
        self._clocks.started(late=any(meet.late for meet in met.values()))
        try:
            ahead = self._clocks.ahead(met)
        except RankLost:
            if self._links.lost is not None:
                raise
            return None
        at = time.monotonic() + self._clocks.lead
        return {rank: Met(said, at, ahead[rank]) for rank in met}
