"""What the ranks of a collective send each other: the flows of its algorithm, in phases.

The algorithms are the simplest that move as few bytes as can be: a ring in the order of the ranks
(P. Patarasu and X. Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations,
Journal of Parallel and Distributed Computing 69 (2009)), all pairs at once, a star around the root,
and partners whose numbers differ in a bit. A library may choose others: trees for few bytes,
reductions within a switch.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from .collective import Collective, no_hypercube


class Exchange(msgspec.Struct, frozen=True):
    """What rank `source` sends rank `target` of its group: a number of `bytes`."""

    source: int
    target: int
    bytes: float


class Phase(msgspec.Struct, frozen=True):
    """Exchanges that run at the same time, in so many `steps` that wait for each other."""

    steps: int
    exchanges: tuple[Exchange, ...]


def phases(work: Collective, size: int, ranks: int) -> tuple[Phase, ...]:
    """The phases of one call of `size` bytes, one after another; none of a single rank. Raises
    ValueError for a hypercube of a number of ranks that is no power of two."""
    if ranks < 2:
        return ()
    share = work.counts(size, ranks).count * work.number.bytes
    root = work.root or 0
    match work.collective:
        case "all_reduce":
            return (_ring(2 * (ranks - 1), ranks, work.bytes_on_bus(size, ranks)),)
        case "all_gather" | "reduce_scatter":
            return (_ring(ranks - 1, ranks, work.bytes_on_bus(size, ranks)),)
        case "broadcast":
            return (_chain(root, ranks, share),)
        case "reduce":
            return (_chain(root + 1, ranks, share),)
        case "sendrecv":
            return (_ring(1, ranks, share),)
        case "hypercube":
            return tuple(_by_bits(ranks, share))
        case "alltoall":
            pairs = [(one, other) for one in range(ranks) for other in range(ranks)]
        case "gather":
            pairs = [(rank, root) for rank in range(ranks)]
        case _:
            pairs = [(root, rank) for rank in range(ranks)]
    return (Phase(1, tuple(Exchange(*pair, share) for pair in pairs if pair[0] != pair[1])),)


def pairs_of(work: Collective, ranks: int) -> tuple[tuple[int, int], ...]:
    """All ranks of a call that send each other something, each once."""
    return tuple(
        dict.fromkeys(
            (group[each.source], group[each.target])
            for group in work.groups(ranks)
            if no_hypercube(work.collective, len(group)) is None
            for phase in phases(work, 0, len(group))
            for each in phase.exchanges
        )
    )


def _ring(steps: int, ranks: int, size: float) -> Phase:
    """Each rank sends to the next one."""
    return Phase(steps, tuple(Exchange(rank, (rank + 1) % ranks, size) for rank in range(ranks)))


def _chain(first: int, ranks: int, size: float) -> Phase:
    """Each rank from `first` on sends to the next one, except the last."""
    ring = (Exchange((first + n) % ranks, (first + n + 1) % ranks, size) for n in range(ranks - 1))
    return Phase(ranks - 1, tuple(ring))


def _by_bits(ranks: int, share: float) -> Iterator[Phase]:
    """Partners exchange what they have so far, which doubles."""
    if (why := no_hypercube("hypercube", ranks)) is not None:
        raise ValueError(why)
    distance = 1
    while distance < ranks:
        size = share * distance
        yield Phase(1, tuple(Exchange(rank, rank ^ distance, size) for rank in range(ranks)))
        distance *= 2
