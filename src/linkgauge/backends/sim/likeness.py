"""Finds cells of a simulated machine that differ only in the names of the parts they use."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from linkgauge.model.hardware.map import Resource
from linkgauge.model.memory import Memory
from linkgauge.model.transfer import Transfer

from .resources import Demand


class Way(NamedTuple):
    """Everything that determines the time of a transfer. `form` is equal for transfers that differ
    only in names. `places` are its devices and nodes. `names` are the parts and resources that it
    uses, each once, in the order of their first use. `queue` is the device whose kernels run one
    after another."""

    form: bytes
    places: tuple[Memory, ...]
    names: tuple[Hashable, ...]
    queue: str | None


def way_of(transfer: Transfer, demand: Demand, capacity: Mapping[Resource, float]) -> Way:
    """Returns the way of a transfer. Its form has numbers instead of names. `capacity` is the limit
    of each resource in bytes/s."""
    numbers: dict[Hashable, int] = {}

    def number(name: Hashable) -> int:
        return numbers.setdefault(name, len(numbers))

    ends = transfer.source, transfer.destination, transfer.engine.owner
    places = tuple([memory.place for memory in ends])
    form = (
        transfer.engine.kind,
        transfer.engine.count,
        transfer.scale,
        transfer.both_ways,
        transfer.load,
        *((one.space, one.kind, number(place)) for one, place in zip(ends, places, strict=True)),
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
    digest = blake2b(repr(form).encode(), digest_size=8).digest()
    return Way(digest, places, tuple(numbers), demand.queue)


class Likeness(NamedTuple):
    """The likeness of a cell. `key` is equal for cells that differ only in names. `order` has the
    indices of its transfers, in the order in which they correspond to those of alike cells."""

    key: Hashable
    order: tuple[int, ...]


def likeness_of(ways: Sequence[Way]) -> Likeness:
    """Returns the likeness of transfers that run together. The first stays the first. Those that
    share parts with it come next, wherever they are listed, unless a device has several kernels,
    which run in the order of the list."""
    if len(ways) == 1:
        return Likeness(ways[0].form, (0,))
    order = tuple(range(len(ways)))
    queues = [way.queue for way in ways if way.queue is not None]
    if len(queues) == len(set(queues)):
        parts = set(ways[0].names)
        order = (0, *sorted(order[1:], key=lambda at: parts.isdisjoint(ways[at].names)))
    numbers: dict[Hashable, int] = {}
    names = (name for at in order for name in ways[at].names)
    pattern = tuple([numbers.setdefault(name, len(numbers)) for name in names])
    return Likeness((tuple([ways[at].form for at in order]), pattern), order)
