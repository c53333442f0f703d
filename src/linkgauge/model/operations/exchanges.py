"""The ways to carry out a collective, and the flows of data between ranks that each way causes, in
phases. Simulated machines and expectations both use them.

The default algorithms are the simplest that move as few bytes as possible. They are a ring in the
order of the ranks (P. Patarasu and X. Yuan, Bandwidth optimal all-reduce algorithms for clusters of
workstations, Journal of Parallel and Distributed Computing 69 (2009)), all pairs at once, a star
around the root, and partners whose numbers differ in a bit.

There are three other algorithms. Several rings run at once, each with a part of the bytes and over
separate links. Two trees each carry half of the bytes; a rank that passes data on in one tree is a
leaf of the other (P. Sanders, J. Speck and J. Larsson Träff, Two-tree algorithms for full bandwidth
broadcast, reduction and scan, Parallel Computing 35 (2009)). The switch itself reduces: it reads
the data of all ranks and stores the result to all ranks (B. Klenk et al., An in-network
architecture for accelerating shared-memory multiprocessor collectives, ISCA 2020)."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import msgspec

from linkgauge.model.grouped import grouped

from .collective import Algorithm, Collective, CollectiveName, no_hypercube

Order = tuple[int, ...]
"""The order of ranks in a ring. Each rank sends to the next rank."""
SWITCH = -1
"""The rank number that stands for the switch that joins all ranks."""
_RINGS: tuple[CollectiveName, ...] = (
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"
)  # fmt: skip
"""The collectives that libraries carry out in several rings at once."""
_SEARCHED = 16
"""The most ranks for which rings with separate links are searched."""
_STEPS = 100_000
"""The most steps of the search for rings. Seven rings of eight ranks are found after 1,152
steps."""


class Exchange(msgspec.Struct, frozen=True):
    """The `bytes` that rank `source` of a group sends to rank `target`. Either end may be the
    SWITCH."""

    source: int
    target: int
    bytes: float


class Phase(msgspec.Struct, frozen=True):
    """Exchanges that run at the same time. The phase repeats them in `steps` steps; each step waits
    for the step before."""

    steps: int
    exchanges: tuple[Exchange, ...]


class Way(NamedTuple):
    """A way to carry out a collective. `orders` are the orders of the ranks in rings that run at
    once; without any, there is one ring in the order of the ranks."""

    algorithm: Algorithm = "ring"
    orders: tuple[Order, ...] = ()


def ways(
    work: Collective,
    ranks: int,
    links: Callable[[int, int], int],
    reduces: Callable[[], bool],
    hosts: Sequence[Hashable] = (),
) -> Iterator[Way]:
    """Yields the ways from which libraries choose the fastest: one ring, as many rings as have
    separate links, a ring for each rail of several hosts, and reductions in a switch. `links`
    returns the number of links that lead directly from one rank to another. `reduces` says whether
    a switch joins all ranks and reduces. `hosts` has the host of each rank, if there are
    several."""
    yield Way()
    if work.collective in _RINGS and (orders := rings_by_rail(hosts)):
        yield Way("ring", orders)
    if work.collective in _RINGS and ranks <= _SEARCHED:
        numbers = range(ranks)
        joined = tuple(tuple(links(a, b) if a != b else 0 for b in numbers) for a in numbers)
        if orders := rings_over(joined):
            yield Way("ring", orders)
    if work.collective == "all_reduce" and reduces():
        yield Way("nvls")


def phases(work: Collective, size: int, ranks: int, way: Way = Way()) -> tuple[Phase, ...]:  # noqa: B008
    """Returns the phases of one call of `size` bytes, one after another; none for a single rank. A
    collective that cannot run by the way's algorithm takes its rings. Raises ValueError for a
    hypercube if the number of ranks is no power of two."""
    if ranks < 2:
        return ()
    orders = way.orders or ring_orders(ranks, 1)
    share = work.counts(size, ranks).count * work.number.bytes
    root = work.root or 0
    match work.collective, way.algorithm:
        case "all_reduce", "tree":
            return (_two_trees(ranks, share),)
        case "all_reduce", "nvls":
            return (_in_switch(ranks, share),)
        case (("all_reduce" | "all_gather" | "reduce_scatter"), _):
            steps = ranks - 1 if work.collective != "all_reduce" else 2 * (ranks - 1)
            return (_rings(steps, orders, work.bytes_on_bus(size, ranks)),)
        case (("broadcast" | "reduce"), _):
            return (_chains(work.collective == "reduce", root, orders, share),)
        case "sendrecv", _:
            return (_rings(1, ring_orders(ranks, 1), share),)
        case "hypercube", _:
            return tuple(_by_bits(ranks, share))
        case "alltoall", _:
            pairs = [(one, other) for one in range(ranks) for other in range(ranks)]
        case "gather", _:
            pairs = [(rank, root) for rank in range(ranks)]
        case _:
            pairs = [(root, rank) for rank in range(ranks)]
    return (Phase(1, tuple(Exchange(*pair, share) for pair in pairs if pair[0] != pair[1])),)


@lru_cache(maxsize=64)
def pairs_of(work: Collective, ranks: int) -> tuple[tuple[int, int], ...]:
    """Returns each pair of ranks, sender first, in which the sender sends data to the other in a
    call."""
    return tuple(
        dict.fromkeys(
            (group[each.source], group[each.target])
            for group in work.groups(ranks)
            if no_hypercube(work.collective, len(group)) is None
            for phase in phases(work, 0, len(group))
            for each in phase.exchanges
        )
    )


@lru_cache(maxsize=64)
def ring_orders(ranks: int, rings: int) -> tuple[Order, ...]:
    """Returns up to `rings` orders of the ranks. The first is 0, 1, 2 …. No rank has the same next
    rank in two orders."""
    first = tuple(range(ranks))
    if rings == 1:
        return (first,)
    if ranks > _SEARCHED:
        strides = [stride for stride in range(1, ranks) if math.gcd(stride, ranks) == 1]
        return tuple(tuple(by * place % ranks for place in first) for by in strides[:rings])
    each = tuple(tuple(int(one != other) for other in first) for one in first)
    return rings_over(each, rings)


@lru_cache(maxsize=64)
def rings_over(links: tuple[Order, ...], most: int | None = None) -> tuple[Order, ...]:
    """Returns as many rings as are found that use separate links, at most `most`. `links[a][b]` is
    the number of links from rank a to rank b. The result is empty if no ring joins all ranks."""
    limit = min(map(sum, (*links, *zip(*links, strict=True))))
    tried = (_separate(links, many) for many in range(min(limit, most or limit), 0, -1))
    return tuple(next((found for found in tried if found), ()))


def rings_by_rail(hosts: Sequence[Hashable]) -> tuple[Order, ...]:
    """Returns as many rings as a host has ranks, if several hosts have as many. Each ring passes
    all ranks of a host, and goes on to the next host from a rank to the one with the same number
    there (on its rail), another one for each ring."""
    by_host = grouped(zip(hosts, range(len(hosts)), strict=True))
    own = [*by_host.values()]
    if None in by_host or len(own) < 2 or len({*map(len, own)}) > 1 or len(own[0]) < 2:
        return ()
    count = len(own[0])
    return tuple(
        tuple(
            ranks[(first - place + step) % count]
            for place, ranks in enumerate(own)
            for step in range(count)
        )
        for first in range(count)
    )


def _separate(links: Sequence[Order], rings: int) -> list[Order]:
    """Returns `rings` rings without a common link, or an empty list if they are not found. On links
    between all ranks, the largest possible number, ranks - 1, exists except for 4 and 6 ranks (T.
    Tillson, A Hamiltonian decomposition of K*2m, Journal of Combinatorial Theory B 29 (1980))."""
    ranks, found = len(links), list[Order]()
    free = {(a, b): count for a, row in enumerate(links) for b, count in enumerate(row)}
    left = _STEPS

    def goes_on(path: Order) -> bool:
        nonlocal left
        left -= 1
        if len(path) == ranks:
            pairs = tuple(zip(path, (*path[1:], path[0]), strict=True))
            if not all(free[pair] for pair in pairs):
                return False
            free.update((pair, free[pair] - 1) for pair in pairs)
            found.append(path)
            if len(found) == rings or goes_on((0,)):
                return True
            found.pop()
            free.update((pair, free[pair] + 1) for pair in pairs)
            return False
        for step in range(ranks - 1):
            there = (path[-1] + (step + len(found)) % (ranks - 1) + 1) % ranks
            is_free = there not in path and free[path[-1], there]
            if left > 0 and is_free and goes_on((*path, there)):
                return True
        return False

    return found if goes_on((0,)) else []


def _rings(steps: int, orders: Sequence[Sequence[int]], size: float) -> Phase:
    """Returns a phase in which each rank sends to the next rank in each ring."""
    each = size / len(orders)
    pairs = (pair for one in orders for pair in zip(one, (*one[1:], one[0]), strict=True))
    return Phase(steps, tuple(Exchange(*pair, each) for pair in pairs))


def _chains(to_root: bool, root: int, orders: Sequence[Sequence[int]], size: float) -> Phase:
    """Returns a phase in which data pass along each chain of ranks, away from the root or towards
    the root."""
    each, sent = size / len(orders), []
    for order in orders:
        first = order.index(root) + to_root
        line = [*order[first:], *order[:first]]
        sent += [Exchange(*pair, each) for pair in pairwise(line)]
    return Phase(len(orders[0]) - 1, tuple(sent))


def _two_trees(ranks: int, size: float) -> Phase:
    """Returns a phase of two trees. In each tree, half of the bytes go up and down, in pieces that
    follow each other."""
    edges = list(_tree(0, ranks))
    sent = []
    for shift in (0, 1):
        for below, above in edges:
            one, other = (below + shift) % ranks, (above + shift) % ranks
            sent += [Exchange(one, other, size / 2), Exchange(other, one, size / 2)]
    return Phase(2 * (ranks - 1).bit_length(), tuple(sent))


def _tree(low: int, high: int) -> Iterator[tuple[int, int]]:
    """Yields each number of the range except the tree's root, with the number above it in the tree.
    Even numbers are leaves."""
    root = _root(low, high)
    for part in ((low, root), (root + 1, high)):
        if part[0] < part[1]:
            yield _root(*part), root
            yield from _tree(*part)


def _root(low: int, high: int) -> int:
    middle = (low + high) // 2
    return middle if middle % 2 or middle == low else middle - 1


def _in_switch(ranks: int, size: float) -> Phase:
    """Returns a phase in the switch. It reads each share from all ranks, and gives the sum to all
    ranks. A rank sends its data and its share of the sum, and receives as much."""
    moved = size + size / ranks
    sent = [Exchange(rank, SWITCH, moved) for rank in range(ranks)]
    return Phase(2, (*sent, *(Exchange(SWITCH, rank, moved) for rank in range(ranks))))


def _by_bits(ranks: int, share: float) -> Iterator[Phase]:
    """Yields phases in which pairs of ranks exchange all data that they have so far. The data
    double in each phase."""
    if (why := no_hypercube("hypercube", ranks)) is not None:
        raise ValueError(why)
    distance = 1
    while distance < ranks:
        size = share * distance
        yield Phase(1, tuple(Exchange(rank, rank ^ distance, size) for rank in range(ranks)))
        distance *= 2
