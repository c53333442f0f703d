"""Finds cells of a simulated machine that differ only in the names of the parts they use."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from linkgauge.model.hardware.map import Resource
from linkgauge.model.transfer import Transfer

from .resources import Demand


class Way(NamedTuple):
    """Everything that determines the time of a transfer. `form` is equal for transfers that differ
    only in names. `names` are the parts and resources that the transfer uses, each once, in the
    order of their first use."""

    form: bytes
    names: tuple[Hashable, ...]


def way_of(transfer: Transfer, demand: Demand, capacity: Mapping[Resource, float]) -> Way:
    """Returns the way of a transfer. Its form has numbers instead of names. `capacity` is the limit
    of each resource in bytes/s."""
    numbers: dict[Hashable, int] = {}

    def number(name: Hashable) -> int:
        return numbers.setdefault(name, len(numbers))

    form = (
        transfer.engine.kind,
        transfer.engine.count,
        transfer.scale,
        transfer.both_ways,
        transfer.load,
        *(
            (memory.space, memory.kind, number(memory.place))
            for memory in (transfer.source, transfer.destination, transfer.engine.owner)
        ),
        tuple((number(name), weight, capacity[name]) for name, weight in demand.flow.usage),
        # A link's limit for one access counts while another transfer makes the opposite access.
        tuple(
            (number(name[0]), name[1:], weight, capacity[name]) for name, weight in demand.opposed
        ),
        demand.flow.cap,
        demand.startup,
        demand.queue and number(demand.queue),
        demand.jitter,
    )
    return Way(blake2b(repr(form).encode(), digest_size=8).digest(), tuple(numbers))


def alike(ways: Sequence[Way]) -> Hashable:
    """Returns a key that is equal for transfers that run together and differ only in names."""
    forms = tuple([way.form for way in ways])
    if len(ways) == 1:
        return forms
    numbers: dict[Hashable, int] = {}
    return forms, tuple(
        [numbers.setdefault(name, len(numbers)) for way in ways for name in way.names]
    )
