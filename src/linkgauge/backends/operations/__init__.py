"""Prepares operations for measurement. An operation uses only the primitives of
`backends.offering`, so it works with any backend. `model.operations.operation` lists the properties
of operations.

An operation is a function `(on, copies, does) -> Group` in transfers.py, or `prepare` in a file of
its own. `on` is the backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

from linkgauge.backends.offering import Offering
from linkgauge.backends.protocol import Copy, Group
from linkgauge.backends.rules import check_exchanges, check_work, lacking
from linkgauge.model.operations.operation import ARRAYS, HAND_OVERS, PRIMES, PRODUCTS, Operation

from . import transfers

_TRANSFERS: Mapping[object, Callable[[Offering, Sequence[Copy], Operation], Group]] = {
    "copy": transfers.copies,
    "bulk-copy": transfers.copies,
    "timed-copy": transfers.timed_copy,
    "copy-ping-pong": transfers.copy_ping_pong,
    "flag-ping-pong": transfers.flag_ping_pong,
    "ping-pong": transfers.ping_pong,
    "chase": transfers.chase,
    "bulk-chase": transfers.chase,
    "enqueue": transfers.enqueue,
    **dict.fromkeys(ARRAYS, transfers.arrays),
    **dict.fromkeys(HAND_OVERS, transfers.hand_over),
}
"""The functions of operations that only need a backend's primitives."""
_FILES: Mapping[object, str] = {
    "overlap": "overlap",
    "touch": "touch",
    **dict.fromkeys(PRIMES, "primes"),
    **dict.fromkeys(PRODUCTS, "products"),
}
"""The file of each other operation, without collectives."""


def check(on: Offering, copies: Sequence[Copy], does: Operation) -> None:
    """Raises Unsupported if the backend does not have the operation, or if the copies do not suit
    it."""
    if not on.carries(does):
        raise lacking(on.name, does.name)
    if does.collective is None:
        check_exchanges(copies, does)
        check_work(copies, does)


def prepare(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    """Returns a group that carries out the operation. Raises Unsupported in the same cases as
    `check`, and if the backend refuses these copies."""
    check(on, copies, does)
    on.begin(copies, does)
    if does.collective is not None:
        return on.collecting(copies, does.collective)
    makes = _TRANSFERS.get(does.name)
    if makes is None:
        makes = import_module(f"{__name__}.{_FILES[does.name]}").prepare
    return makes(on, copies, does)
