"""Chooses the buffer sizes and the time of a quick first run on a host without accelerators."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from linkgauge.model.hardware.machine import Machine, Node
from linkgauge.model.settings import Settings

from .profiles import PROFILES
from .rounds import ARRAY, SHARE, TIMES, part_of_cache

BUDGET = 25.0
"""The seconds that the whole run may take, if the user gave no budget."""
MAX_TIME, RATE_TIME = 1.5, 1.5
"""The most seconds for samples of one cell. The quick profile has other values, but a first run has
few cells, and each cell needs several repetitions for its range."""
_MI = 1 << 20


class Ends(NamedTuple):
    """The node whose CPUs read a buffer, and the smallest and largest buffer to try, in bytes."""

    node: Node
    least: int
    most: int


def ends_of(machine: Machine) -> Ends | None:
    """Returns the node with the most CPUs and the sizes to try: `TIMES` its share of the last-level
    cache to `TIMES` a node's whole cache, as memory allows. Returns None without CPUs."""
    nodes = [node for node in machine.host.nodes if node.cpus]
    if not nodes:
        return None
    node = max(nodes, key=lambda one: len(one.cpus))
    free = [one.memory_available for one in nodes if one.memory_available is not None]
    whole = TIMES * max(one.last_level_cache or 0 for one in nodes)
    room = max(min(free, default=SHARE * max(whole, ARRAY)) // SHARE // _MI, 1) * _MI
    least = min(-(-max(TIMES * part_of_cache(machine, node), ARRAY) // _MI) * _MI, room)
    return Ends(node, least, max(least, min(whole, room)))


def settings_of(settings: Settings) -> Settings:
    quick = PROFILES["quick"]
    if settings.max_time != quick.max_time:
        return settings
    return replace(settings, max_time=MAX_TIME, rate_time=RATE_TIME)
