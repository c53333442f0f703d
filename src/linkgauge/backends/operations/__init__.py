"""Operations as backends carry them out. Each operation has a file here, written once with the
primitives that a backend offers (`backends.offering`). `model.operations.operation` has the other
properties of operations.

Each file has a function `prepare(on, copies, does) -> Group`, where `on` is the backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module

from linkgauge.backends.offering import Offering
from linkgauge.backends.protocol import Copy, Group
from linkgauge.backends.rules import check_exchanges, check_work, lacking
from linkgauge.model.operations.operation import ARRAYS, HAND_OVERS, PRODUCTS, Operation

_FILES: Mapping[object, str] = {
    "copy": "copies",
    "timed-copy": "timed_copies",
    "copy-ping-pong": "copy_ping_pong",
    "flag-ping-pong": "flags",
    "ping-pong": "ping_pong",
    "chase": "chase",
    "enqueue": "enqueue",
    "overlap": "overlap",
    "touch": "touch",
    "primes": "primes",
    **dict.fromkeys(ARRAYS, "arrays"),
    **dict.fromkeys(PRODUCTS, "products"),
    **dict.fromkeys(HAND_OVERS, "hand_overs"),
}
"""The file of each operation that a backend may carry out, without collectives."""


def check(on: Offering, copies: Sequence[Copy], does: Operation) -> None:
    """Raises Unsupported if the backend lacks the operation, or if the copies do not suit the
    operation."""
    if not on.carries(does):
        raise lacking(on.name, does.name)
    if does.collective is None:
        check_exchanges(copies, does)
        check_work(copies, does)


def prepare(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    """Returns a group of the operation. Raises Unsupported as `check` does, and for copies that the
    backend cannot carry out."""
    check(on, copies, does)
    on.begin(copies, does)
    if does.collective is not None:
        return on.collecting(copies, does.collective)
    made: Group = import_module(f"{__name__}.{_FILES[does.name]}").prepare(on, copies, does)
    return made
