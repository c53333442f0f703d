"""The first look at a host that has nothing else to measure: the sizes of its buffers, and the time
of its cells."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from linkgauge.model.hardware.cpu_families import family_of
from linkgauge.model.hardware.machine import Machine, Node
from linkgauge.model.settings import Settings

from .profiles import PROFILES
from .rounds import ARRAY, SHARE, TIMES

BUDGET = 25.0
"""The seconds that the whole run may take, if the user gave no budget."""
MAX_TIME, RATE_TIME = 1.5, 1.5
"""The most seconds of sampling of a cell, instead of the quick profile's: there are few cells, and
each needs several visits for its range."""
_MI = 1 << 20
_UNLISTED = 16 * _MI
"""The part of a last-level cache that is assumed for a core of an unknown processor in a virtual
machine, which shows the whole cache. Measuring enlarges buffers for which it is too little."""


class Ends(NamedTuple):
    """The node whose CPUs read a buffer, and the least and the largest size to try, in bytes."""

    node: Node
    least: int
    most: int


def ends_of(machine: Machine) -> Ends | None:
    """Returns the sizes between which buffers are beyond the caches. The least size is several
    times the part of the caches that belongs to the node's CPUs, and the largest several times the
    whole. Returns None without CPUs."""
    nodes = [node for node in machine.host.nodes if node.cpus]
    if not nodes:
        return None
    node = max(nodes, key=lambda one: len(one.cpus))
    free = [one.memory_available for one in nodes if one.memory_available is not None]
    whole = TIMES * max(one.last_level_cache or 0 for one in nodes)
    room = max(min(free, default=SHARE * max(whole, ARRAY)) // SHARE // _MI, 1) * _MI
    least = min(-(-max(TIMES * part_of_cache(machine, node), ARRAY) // _MI) * _MI, room)
    return Ends(node, least, max(least, min(whole, room)))


def part_of_cache(machine: Machine, node: Node) -> int:
    """Returns the bytes of the last-level cache that belong to the node's CPUs on their product:
    the cache, divided by the CPUs that share it there, times these CPUs. A virtual machine does not
    show how many share it there, so the family of the processor says what a core has."""
    whole = node.last_level_cache or 0
    details = machine.known.host
    last = max(details.caches, key=lambda one: (one.level, one.shared_by), default=None)
    part = whole
    if last is not None:
        part = min(whole, last.size * len(node.cpus) // max(last.shared_by, 1))
    if machine.is_virtual:
        family = family_of(details.cpu_code)
        of_core = family.cache_per_core if family is not None else None
        part = min(part, (of_core or _UNLISTED) * len(node.cpus))
    return part


def settings_of(settings: Settings) -> Settings:
    """Returns the settings of a first look. Times that the user chose stay."""
    quick = PROFILES["quick"]
    if settings.max_time != quick.max_time:
        return settings
    return replace(settings, max_time=MAX_TIME, rate_time=RATE_TIME)
