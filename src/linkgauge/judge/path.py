"""What a transfer crosses: segments, as far as the machine's readers found them.

A segment is one direction of a link, or a memory. Nothing here is measured or guessed: an unknown
path raises `Unknown`; a doubt is a reason why only the achievable figure is unknown.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import astuple


class Unknown(Exception):
    """Raised if the path of a transfer is unknown; its text is the reason."""


class Segment(msgspec.Struct, frozen=True):
    """`rate` is bytes/s after line coding; `shown` describes its source; `measured`: the source is
    this run's figures. `direction` is "up" or "down" for a PCIe link: down is away from the
    host."""

    link: str
    rate: float
    shown: str
    direction: str = ""
    measured: bool = False

    @property
    def name(self) -> tuple[str, str]:
        return self.link, self.direction


class Use(msgspec.Struct, frozen=True):
    """What a byte of a transfer's payload takes of a segment: `least` at best (0 for requests and
    for what sets no theoretical bound), `cost` with all protocol overhead, for the reason `why`.
    `payload` is false for requests, which go in the opposite direction."""

    segment: Segment
    least: float
    cost: float
    why: str
    payload: bool = True


class Meeting(msgspec.Struct, frozen=True):
    """A host node whose memory a device reaches, and over which kind of link."""

    node: int
    by: Literal["PCIe", "fabric"]


class ExpectedPath(msgspec.Struct, frozen=True):
    """All that a transfer uses. `doubts` are reasons why only a theoretical figure is known,
    `loose` reasons why healthy hardware achieves widely varying figures."""

    uses: tuple[Use, ...] = ()
    doubts: tuple[str, ...] = ()
    loose: tuple[str, ...] = ()
    meets: tuple[Meeting, ...] = ()

    def __add__(self, other: ExpectedPath) -> ExpectedPath:
        fields = zip(astuple(self), astuple(other), strict=True)
        return ExpectedPath(*(mine + others for mine, others in fields))


def figure(rate: float) -> str:
    """A rate as shown in a line of arithmetic: four digits, in GB/s."""
    return f"{rate / 1e9:.4g} GB/s"
