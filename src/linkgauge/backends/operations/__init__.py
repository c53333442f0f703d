"""Prepares operations for measurement. There is one file for each operation. An operation uses only
the primitives of `backends.offering`, so it works with any backend. `model.operations.operation`
lists the properties of operations.

Each file has a function `prepare(on, copies, does) -> Group`. `on` is the backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module

from linkgauge.backends.offering import Offering
from linkgauge.backends.protocol import Copy, Group
from linkgauge.backends.rules import check_exchanges, check_work, lacking
from linkgauge.model.operations.operation import ARRAYS, HAND_OVERS, PRIMES, PRODUCTS, Operation

_FILES: Mapping[object, str] = {
    "copy": "copies",
    "bulk-copy": "copies",
    "timed-copy": "timed_copies",
    "copy-ping-pong": "copy_ping_pong",
    "flag-ping-pong": "flags",
    "ping-pong": "ping_pong",
    "chase": "chase",
    "bulk-chase": "chase",
    "enqueue": "enqueue",
    "overlap": "overlap",
    "touch": "touch",
    **dict.fromkeys(PRIMES, "primes"),
    **dict.fromkeys(ARRAYS, "arrays"),
    **dict.fromkeys(PRODUCTS, "products"),
    **dict.fromkeys(HAND_OVERS, "hand_overs"),
}
"""The file of each operation, without collectives."""


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
    made: Group = import_module(f"{__name__}.{_FILES[does.name]}").prepare(on, copies, does)
    return made
