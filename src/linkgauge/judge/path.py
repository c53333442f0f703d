"""What a transfer crosses: segments, as far as the machine's readers found them.

A segment is one direction of a link, or a memory. Nothing here is measured or guessed: an unknown
path raises `Unknown`; a doubt is a reason why only the achievable figure is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec.structs import astuple

from linkgauge.model.map import Flow


class Unknown(Exception):
    """Raised if the path of a transfer is unknown; its text is the reason."""


class Use(msgspec.Struct, frozen=True):
    """A segment, and what a byte of a transfer's payload takes of it.

    link: The link, or the memory.
    rate: Its rate in bytes/s after line coding.
    shown: Where the rate comes from.
    least: What a byte takes at best; 0 for requests and for what sets no theoretical bound.
    cost: What it takes with all protocol overhead.
    why: The reason for the cost.
    direction: "up" or "down" of a PCIe link: down is away from the host.
    payload: False for requests, which go in the opposite direction.
    measured: Whether the rate is one of this run's figures.
    """

    link: str
    rate: float
    shown: str
    least: float
    cost: float
    why: str
    direction: str = ""
    payload: bool = True
    measured: bool = False

    @property
    def segment(self) -> tuple[str, str]:
        return self.link, self.direction


class ExpectedPath(msgspec.Struct, frozen=True):
    """All that a transfer uses. `doubts` are reasons why only a theoretical figure is known,
    `loose` reasons why healthy hardware achieves widely varying figures; `meets` are the host's
    nodes whose memory a device reaches, and over which kind of link."""

    uses: tuple[Use, ...] = ()
    doubts: tuple[str, ...] = ()
    loose: tuple[str, ...] = ()
    meets: tuple[tuple[int, Literal["PCIe", "fabric"]], ...] = ()

    def __add__(self, other: ExpectedPath) -> ExpectedPath:
        fields = zip(astuple(self), astuple(other), strict=True)
        return ExpectedPath(*(mine + others for mine, others in fields))

    def flow(self, *, cost: bool) -> Flow:
        """What it takes of each segment: its cost, or the least."""
        taken: dict[tuple[str, str], float] = {}
        for use in self.uses:
            part = use.cost if cost else use.least
            taken[use.segment] = taken.get(use.segment, 0.0) + part
        return Flow(tuple((segment, part) for segment, part in taken.items() if part))


def capacity(paths: Iterable[ExpectedPath]) -> dict[tuple[str, str], float]:
    """The rate of each segment that these use."""
    return {use.segment: use.rate for path in paths for use in path.uses}


def figure(rate: float) -> str:
    """A rate as shown in a line of arithmetic: four digits, in GB/s."""
    return f"{rate / 1e9:.4g} GB/s"
