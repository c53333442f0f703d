"""Which copies between ranks only NCCL carries out, because an engine does not reach memory of
another machine, and the tokens by which ranks found communicators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from linkgauge.backends.member import SharedCopy
from linkgauge.model.errors import LinkgaugeError, Unsupported
from linkgauge.model.memory import Memory
from linkgauge.model.transfer import Engine, EngineKind, Operation, Transfer

from .links import Links
from .messages import Reach, Token

Group = tuple[int, ...]
"""Ranks that found a communicator."""
_CCL: EngineKind = "ccl"


class Tokens:
    """What groups of ranks found their communicators by, once for the run: members keep them."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._of: dict[Group, bytes] = {}

    def of(self, groups: Sequence[Group]) -> tuple[bytes, ...]:
        """One for each group, of its first rank."""
        for group in groups:
            if group not in self._of:
                self._of[group] = self._links.one(group[0], Token(), bytes)
        return tuple(self._of[group] for group in groups)

    @contextmanager
    def founding(self, groups: Sequence[Group]) -> Iterator[tuple[bytes, ...]]:
        """Their tokens, which are forgotten if its body fails: what they founded may be broken."""
        try:
            yield self.of(groups)
        except Unsupported:
            raise
        except LinkgaugeError:
            for group in groups:
                self._of.pop(group, None)
            raise


class Passages:
    """Finds out, of each pair of ranks once, whether the engine of the one reaches the memory of
    the other. `refusal` says why a rank's part of a collective cannot be carried out."""

    def __init__(
        self, links: Links, refusal: Callable[[Transfer], str | Unsupported | None]
    ) -> None:
        self._links = links
        self._refusal = refusal
        self._apart: dict[tuple[int, int], str] = {}
        """Why the engines of a rank do not reach the memory of another one."""

    def crosses(self, memory: Memory, engine: Engine) -> bool:
        """Whether they are on different machines."""
        ranks = self._links.ranks
        return ranks[memory.rank or 0].host != ranks[engine.owner.rank or 0].host

    def found(self, copies: Sequence[SharedCopy], operation: Operation) -> dict[int, Group]:
        """The source's and the destination's rank of those copies that NCCL carries out, by their
        places. Raises Unsupported, with the reasons, for what nothing carries out."""
        self._ask(copies)
        found = {}
        for place, copy in enumerate(copies):
            reasons = (self._apart.get(pair) for pair in _pairs(copy.transfer))
            reason = next(filter(None, reasons), None)
            if reason is not None:
                self._check(copy.transfer, operation, reason)
                ends = (copy.transfer.source, copy.transfer.destination)
                found[place] = tuple(memory.rank or 0 for memory in ends)
        return found

    def _ask(self, copies: Sequence[SharedCopy]) -> None:
        """Asks who carries copies between machines out whether it can."""
        asked: dict[int, list[SharedCopy]] = {}
        for copy in copies:
            transfer = copy.transfer
            across = any(self.crosses(memory, transfer.engine) for memory in transfer.memories)
            if across and not any(pair in self._apart for pair in _pairs(transfer)):
                asked.setdefault(transfer.engine.owner.rank or 0, []).append(copy)
        commands = {rank: Reach(tuple(own)) for rank, own in asked.items()}
        answers = self._links.ask_each(commands, tuple[str | None, ...]) if commands else {}
        for rank, reasons in answers.items():
            for copy, reason in zip(asked[rank], reasons, strict=True):
                if reason is not None:
                    self._apart |= dict.fromkeys(_pairs(copy.transfer), reason)

    def _check(self, transfer: Transfer, operation: Operation, reason: str) -> None:
        """Raises Unsupported for what NCCL does not carry out, either."""
        ends = (transfer.source, transfer.destination)
        ranks = {memory.rank for memory in ends}
        is_one = operation == "copy" and not transfer.both_ways and len(ranks) == len(ends)
        if not is_one or transfer.engine.owner.rank not in ranks:
            raise Unsupported(reason)
        for memory in ends:
            refused = self._refusal(Transfer(memory, memory, Engine(memory, _CCL)))
            if refused is not None:
                raise Unsupported(f"{reason}; {refused}")


def _pairs(transfer: Transfer) -> Iterator[tuple[int, int]]:
    """The rank that carries it out, with each other one whose memory it takes."""
    owner = transfer.engine.owner.rank or 0
    for memory in transfer.memories:
        if (memory.rank or 0) != owner:
            yield owner, memory.rank or 0
