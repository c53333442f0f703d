"""Finds cells of a simulated machine that differ only in the names of the parts that they use."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from typing import NamedTuple

from linkgauge.model.grouped import Numbers, sharing_first
from linkgauge.model.hardware.map import Resource
from linkgauge.model.transfer import Transfer

from .resources import Demand


class Way(NamedTuple):
    """How a transfer moves. `form` is equal for transfers that differ only in names; `names` are
    the parts and resources, by first use. Kernels of the device `queue` run one after another."""

    form: bytes
    names: tuple[Hashable, ...]
    queue: str | None


def way_of(transfer: Transfer, demand: Demand, capacity: Mapping[Resource, float]) -> Way:
    """Returns the transfer's way, whose form has numbers for names. `capacity` is in bytes/s."""
    number = Numbers()
    form = (
        transfer.engine.kind,
        transfer.engine.count,
        transfer.scale,
        transfer.both_ways,
        transfer.load,
        *((one.space, one.kind, number(one.place)) for one in transfer.named),
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
    return Way(_digest(form), tuple(number.known), demand.queue)


# Thousands of transfers have the same few.
@lru_cache(maxsize=1 << 12)
def _digest(form: Hashable) -> bytes:
    return blake2b(repr(form).encode(), digest_size=8).digest()


class Likeness(NamedTuple):
    """`key` is equal for cells that differ only in names. `order` lists the indices of a cell's
    transfers so that the i-th transfers of two equivalent cells correspond."""

    key: Hashable
    order: tuple[int, ...]


def likeness_of(ways: Sequence[Way]) -> Likeness:
    """Orders transfers that share parts next to each other. If a device runs several kernels, their
    order matters, so the order of `ways` stays."""
    if len(ways) == 1:
        return Likeness(ways[0].form, (0,))
    order = list(range(len(ways)))
    queues = [way.queue for way in ways if way.queue is not None]
    if len(queues) == len(set(queues)):
        order = sharing_first([way.names for way in ways])
    pattern = tuple(Numbers().each(chain.from_iterable([ways[at].names for at in order])))
    return Likeness((tuple([ways[at].form for at in order]), pattern), tuple(order))
