"""The data that ranks send in a collective, and which of these data each rank must receive."""

from __future__ import annotations

import msgspec

from .collective import REDUCTIONS, Collective, Counts


class Content(msgspec.Struct, frozen=True):
    """The data that ranks send. `share` ranks send numbers up to `largest`, the other ranks send 0
    (or 1, if the operation is a product). So all results except averages are exact."""

    share: int
    largest: int


def content_of(collective: Collective, ranks: int) -> Content:
    number, reduction = collective.number, collective.reduction
    if reduction in (None, "max", "min"):
        return Content(ranks, number.whole)
    if reduction == "prod":
        return Content(min(ranks, number.exponent), 2)
    most = number.whole // 2 if reduction == "mulsum" else number.whole
    share = min(ranks, most)
    return Content(share, most // share)


def tolerance(collective: Collective, ranks: int) -> float:
    """Returns the largest relative error of a correct result, which is 0 except for averages."""
    return 2 * ranks * collective.number.rounding if collective.reduction == "avg" else 0.0


def content_fields(
    collective: Collective, ranks: int, seed: int
) -> tuple[int, int, int, int, int, float]:
    content, reduction = content_of(collective, ranks), collective.reduction
    code = -1 if reduction is None else REDUCTIONS.index(reduction)
    return seed, ranks, content.share, content.largest, code, tolerance(collective, ranks)


class ElementOrigin(msgspec.Struct, frozen=True):
    """The origin of received elements: element i comes from element `base + i % chunk` of rank
    `first + i // chunk` or, in a reduction, from element `base + i % chunk` of all ranks."""

    first: int = 0
    chunk: int = 1 << 62
    base: int = 0


def origin_of(
    collective: Collective, counts: Counts, rank: int, ranks: int
) -> ElementOrigin | None:
    root = collective.root or 0
    match collective.collective:
        case "all_reduce":
            return ElementOrigin()
        case "reduce":
            return ElementOrigin() if rank == root else None
        case "reduce_scatter":
            return ElementOrigin(base=rank * counts.count)
        case "broadcast":
            return ElementOrigin(root)
        case "scatter":
            return ElementOrigin(root, base=rank * counts.count)
        case "alltoall":
            return ElementOrigin(0, counts.count, rank * counts.count)
        case "sendrecv":
            return ElementOrigin((rank - 1) % ranks)
        case "gather":
            return ElementOrigin(0, counts.count) if rank == root else None
        case _:
            return ElementOrigin(0, counts.count)
