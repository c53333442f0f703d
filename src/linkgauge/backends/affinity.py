"""Where the thread that controls the devices runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

from linkgauge.model.machine import Node


def settle(nodes: Mapping[int, Node], near: int) -> None:
    """Moves the calling thread to this node's CPUs, if there are other nodes and it may."""
    node = nodes.get(near)
    if len(nodes) > 1 and node is not None and node.cpus:
        with suppress(OSError):  # a cpuset may exclude them
            os.sched_setaffinity(0, node.cpus)
