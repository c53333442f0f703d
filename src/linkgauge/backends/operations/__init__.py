"""Prepares operations for any backend from its primitives (`backends.offering`). An operation is a
function `(on, copies, does) -> Group`, where `on` is the backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linkgauge.backends.offering import Offering
from linkgauge.backends.protocol import Copy, Group
from linkgauge.backends.rules import check_exchanges, check_work, lacking
from linkgauge.model.operations.operation import ARRAYS, HAND_OVERS, PRIMES, PRODUCTS, Operation
from linkgauge.registry import loaded

_PLACES: Mapping[object, str] = {
    "copy": "transfers:copies",
    "bulk-copy": "transfers:copies",
    "timed-copy": "transfers:timed_copy",
    "copy-ping-pong": "transfers:copy_ping_pong",
    "flag-ping-pong": "transfers:flag_ping_pong",
    "ping-pong": "transfers:ping_pong",
    "chase": "transfers:chase",
    "bulk-chase": "transfers:chase",
    "enqueue": "transfers:enqueue",
    "touch": "by_threads:touch",
    "overlap": "overlap:overlap",
    **dict.fromkeys(ARRAYS, "transfers:arrays"),
    **dict.fromkeys(HAND_OVERS, "transfers:hand_over"),
    **dict.fromkeys(PRIMES, "by_threads:primes"),
    **dict.fromkeys(PRODUCTS, "products:products"),
}
"""The file and the function of each operation, without collectives."""


def check(on: Offering, copies: Sequence[Copy], does: Operation) -> None:
    """Raises Unsupported if the backend lacks the operation, or if the copies do not suit it."""
    if not on.carries(does):
        raise lacking(on.name, does.name)
    if does.collective is None:
        check_exchanges(copies, does)
        check_work(copies, does)


def prepare(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    """Raises Unsupported as `check` does, or if the backend refuses these copies."""
    check(on, copies, does)
    on.begin(copies, does)
    if does.collective is not None:
        return on.collecting(copies, does.collective)
    group: Group = loaded(f"{__name__}.{_PLACES[does.name]}")(on, copies, does)
    return group
