"""How a collective can be carried out, and the data that ranks exchange in each phase: by rings (P.
Patarasu, X. Yuan, J. Parallel and Distributed Computing 69, 2009), by two trees (P. Sanders et al.,
Parallel Computing 35, 2009), or by the switch (B. Klenk et al., ISCA 2020)."""

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
    source: int
    target: int
    bytes: float


class Phase(msgspec.Struct, frozen=True):
    """Exchanges that run at the same time, divided into `steps` steps that follow one another."""

    steps: int
    exchanges: tuple[Exchange, ...]


class Way(NamedTuple):
    algorithm: Algorithm = "ring"
    orders: tuple[Order, ...] = ()


def ways(
    work: Collective,
    ranks: int,
    links: Callable[[int, int], int],
    reduces: Callable[[], bool],
    hosts: Sequence[Hashable] = (),
) -> Iterator[Way]:
    """Yields the ways to do `work`. `links` returns the number of links between two ranks."""
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
    """Returns a call's phases. Raises ValueError for a hypercube unless `ranks` is 2^n."""
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
    """Returns up to `rings` orders of the ranks, in which no rank has the same successor twice."""
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
    """Finds up to `most` rings that share no link. `links[a][b]` counts links from a to b."""
    limit = min(map(sum, (*links, *zip(*links, strict=True))))
    tried = (_separate(links, many) for many in range(min(limit, most or limit), 0, -1))
    return tuple(next((found for found in tried if found), ()))


def rings_by_rail(hosts: Sequence[Hashable]) -> tuple[Order, ...]:
    """Returns a ring for each rail (a rank's position on its host). Returns () if a host is None,
    if there are fewer than two hosts, or unless all have equally many ranks, at least two."""
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
    """Returns `rings` rings that use separate links, or [] if it finds fewer."""
    # If every two ranks have a link, there are up to ranks - 1 rings, except for 4 and 6 ranks
    # (T. Tillson, J. Combinatorial Theory B 29, 1980).
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
    each = size / len(orders)
    pairs = (pair for one in orders for pair in zip(one, (*one[1:], one[0]), strict=True))
    return Phase(steps, tuple(Exchange(*pair, each) for pair in pairs))


def _chains(to_root: bool, root: int, orders: Sequence[Sequence[int]], size: float) -> Phase:
    each, sent = size / len(orders), []
    for order in orders:
        first = order.index(root) + to_root
        line = [*order[first:], *order[:first]]
        sent += [Exchange(*pair, each) for pair in pairwise(line)]
    return Phase(len(orders[0]) - 1, tuple(sent))


def _two_trees(ranks: int, size: float) -> Phase:
    edges = list(_tree(0, ranks))
    sent = []
    for shift in (0, 1):
        for below, above in edges:
            one, other = (below + shift) % ranks, (above + shift) % ranks
            sent += [Exchange(one, other, size / 2), Exchange(other, one, size / 2)]
    return Phase(2 * (ranks - 1).bit_length(), tuple(sent))


def _tree(low: int, high: int) -> Iterator[tuple[int, int]]:
    root = _root(low, high)
    for part in ((low, root), (root + 1, high)):
        if part[0] < part[1]:
            yield _root(*part), root
            yield from _tree(*part)


def _root(low: int, high: int) -> int:
    middle = (low + high) // 2
    return middle if middle % 2 or middle == low else middle - 1


def _in_switch(ranks: int, size: float) -> Phase:
    moved = size + size / ranks
    sent = [Exchange(rank, SWITCH, moved) for rank in range(ranks)]
    return Phase(2, (*sent, *(Exchange(SWITCH, rank, moved) for rank in range(ranks))))


def _by_bits(ranks: int, share: float) -> Iterator[Phase]:
    if (why := no_hypercube("hypercube", ranks)) is not None:
        raise ValueError(why)
    distance = 1
    while distance < ranks:
        size = share * distance
        yield Phase(1, tuple(Exchange(rank, rank ^ distance, size) for rank in range(ranks)))
        distance *= 2
