"""Finds copies between ranks that only NCCL can carry out, and creates tokens for NCCL groups."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from linkgauge.backends.protocol import Copy
from linkgauge.backends.rank import RankBackend, crosses
from linkgauge.model.errors import Unsupported
from linkgauge.model.operations.operation import OperationName, named
from linkgauge.model.transfer import Engine, EngineKind, Transfer

FOUNDED = ("cuda", "torch")
"""The backends whose ranks form a group with a token that the first rank creates."""
PASSING = ("cuda",)
"""The backends whose ranks can also pass on copies to other machines."""
Group = tuple[int, ...]
"""The ranks that form a communicator."""
_CCL: EngineKind = "ccl"
SHARE = "ranks share a GPU: NCCL needs one for each"


class Tokens:
    """Tokens with which NCCL forms groups. The first rank of a group creates its token."""

    def __init__(self, own: RankBackend) -> None:
        self._own = own
        self._of: dict[Group, bytes] = {}

    def of(self, groups: Iterable[Group], rank: int) -> dict[str, bytes]:
        """Returns a token for each group whose first member is `rank`. Keys are groups as text."""
        own = [group for group in groups if group[0] == rank]
        for group in own:
            if group not in self._of:
                self._of[group] = self._own.token()
        return {str(group): self._of[group] for group in own}

    def forget(self, groups: Iterable[Group]) -> None:
        for group in groups:
            self._of.pop(group, None)


class EngineReach(msgspec.Struct, frozen=True):
    """What one rank knows about copies between machines, by the copies' indices: why the engine
    cannot access both memories (`separate`), and why NCCL cannot carry out the copy (`refused`)."""

    separate: Mapping[int, str]
    refused: Mapping[int, str]


def reached(
    backend: RankBackend,
    copies: Sequence[Copy],
    rank: int,
    hosts: Sequence[str],
    shared: Collection[str],
) -> EngineReach:
    """Returns why this rank's engines cannot access both memories of copies between machines, and
    why NCCL cannot carry out copies. `shared` names device memories that several ranks use."""
    own = {
        place: copy
        for place, copy in enumerate(copies)
        if copy.transfer.engine.owner.rank == rank and leaves(copy.transfer, hosts)
    }
    reasons = zip(own, backend.separate(tuple(own.values())), strict=True)
    refused: dict[int, str] = {}
    for place, copy in enumerate(copies):
        for memory in (copy.transfer.source, copy.transfer.destination):
            if memory.rank == rank and leaves(copy.transfer, hosts):
                part = Transfer(memory, memory, Engine(memory, _CCL))
                why = SHARE if str(memory) in shared else backend.refusal(part)
                refused |= {} if why is None else {place: str(why)}
    return EngineReach({place: why for place, why in reasons if why is not None}, refused)


def passed(
    copies: Sequence[Copy], operation: OperationName, found: Iterable[EngineReach]
) -> dict[int, Group]:
    """Returns the ranks of source and destination of each copy that NCCL carries out; the keys are
    the indices of the copies. Raises Unsupported if a copy cannot be carried out at all."""
    known = list(found)
    separate = {
        pair: why
        for one in known
        for place, why in one.separate.items()
        for pair in _pairs(copies[place].transfer)
    }
    groups = {}
    for place, copy in enumerate(copies):
        reason = next(filter(None, map(separate.get, _pairs(copy.transfer))), None)
        if reason is None:
            continue
        transfer = copy.transfer
        ranks = tuple(memory.rank or 0 for memory in (transfer.source, transfer.destination))
        is_one = (
            named(operation).is_copy and not transfer.both_ways and len(set(ranks)) == len(ranks)
        )
        if not is_one or transfer.engine.owner.rank not in ranks:
            raise Unsupported(reason)
        if refused := [one.refused[place] for one in known if place in one.refused]:
            raise Unsupported(f"{reason}; {refused[0]}")
        groups[place] = ranks
    return groups


def leaves(transfer: Transfer, hosts: Sequence[str]) -> bool:
    """Whether a transfer uses memory of another machine than its engine's."""
    return any(crosses(hosts, memory, transfer.engine) for memory in transfer.memories)


def _pairs(transfer: Transfer) -> Iterator[tuple[int, int]]:
    owner = transfer.engine.owner.rank or 0
    for memory in transfer.memories:
        if (memory.rank or 0) != owner:
            yield owner, memory.rank or 0
