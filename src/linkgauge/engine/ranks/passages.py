"""Which copies between ranks only NCCL carries out, because an engine does not reach memory of
another machine, and the tokens by which ranks found communicators."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from linkgauge.backends.protocol import Copy
from linkgauge.backends.rank import RankBackend, crosses
from linkgauge.model.errors import Unsupported
from linkgauge.model.operations.operation import OperationName, named
from linkgauge.model.transfer import Engine, EngineKind, Transfer

FOUNDED = ("cuda", "torch")
"""Backends whose ranks found a group of ranks by a token of its first one."""
PASSING = ("cuda",)
"""Those whose ranks pass on copies to other machines, too."""
Group = tuple[int, ...]
"""Ranks that found a communicator."""
_CCL: EngineKind = "ccl"
SHARE = "ranks share a GPU: NCCL needs one for each"


class Tokens:
    """What groups, of which this rank is the first, found their communicators by, once for the run:
    backends keep them."""

    def __init__(self, own: RankBackend) -> None:
        self._own = own
        self._of: dict[Group, bytes] = {}

    def of(self, groups: Iterable[Group], rank: int) -> dict[str, bytes]:
        """By the group in words."""
        own = [group for group in groups if group[0] == rank]
        for group in own:
            if group not in self._of:
                self._of[group] = self._own.token()
        return {str(group): self._of[group] for group in own}

    def forget(self, groups: Iterable[Group]) -> None:
        for group in groups:
            self._of.pop(group, None)


class EngineReach(msgspec.Struct, frozen=True):
    """Of each copy that a rank carries out from or to another machine, why its engine does not
    reach both memories, by its place; and of each copy from or to the rank's own memory, why NCCL
    does not pass it on."""

    apart: Mapping[int, str]
    refused: Mapping[int, str]


def reached(
    backend: RankBackend,
    copies: Sequence[Copy],
    rank: int,
    hosts: Sequence[str],
    shared: Collection[str],
) -> EngineReach:
    """What is to be known of one rank; memories in `shared` are of devices that several have."""
    own = {
        place: copy
        for place, copy in enumerate(copies)
        if copy.transfer.engine.owner.rank == rank and leaves(copy.transfer, hosts)
    }
    reasons = zip(own, backend.apart(tuple(own.values())), strict=True)
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
    """The source's and the destination's rank of those copies that NCCL carries out, by their
    places. Raises Unsupported, with the reasons, for what nothing carries out."""
    known = list(found)
    apart = {
        pair: why
        for one in known
        for place, why in one.apart.items()
        for pair in _pairs(copies[place].transfer)
    }
    groups = {}
    for place, copy in enumerate(copies):
        reason = next(filter(None, map(apart.get, _pairs(copy.transfer))), None)
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
    """Whether it reaches memory of another machine than its engine's."""
    return any(crosses(hosts, memory, transfer.engine) for memory in transfer.memories)


def _pairs(transfer: Transfer) -> Iterator[tuple[int, int]]:
    """The rank that carries it out, with each other one whose memory it takes."""
    owner = transfer.engine.owner.rank or 0
    for memory in transfer.memories:
        if (memory.rank or 0) != owner:
            yield owner, memory.rank or 0
