"""What a transfer crosses: segments, as far as the machine's readers found them.

A segment is one direction of a link, or a memory. Nothing here is measured or guessed: a path that
nothing tells raises `Unknown`, and what makes only the achievable figure unknown is a doubt.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import astuple


class Unknown(Exception):
    """Why the path of a transfer is not known, in words."""


class Segment(msgspec.Struct, frozen=True):
    """`rate` is bytes/s after line coding; `shown` says in words where it comes from, `measured`
    that it comes from this run's figures. `way` tells the two directions of a PCIe link apart: down
    is away from the host."""

    link: str
    rate: float
    shown: str
    way: str = ""
    measured: bool = False

    @property
    def name(self) -> tuple[str, str]:
        return self.link, self.way


class Use(msgspec.Struct, frozen=True):
    """What a byte of a transfer's payload takes of a segment: `least` at best (0: nothing but
    requests or what is no theoretical bound), `cost` with all that the protocol adds, for the
    reason `why`. `payload` tells it from requests that go the other way."""

    segment: Segment
    least: float
    cost: float
    why: str
    payload: bool = True


class Meeting(msgspec.Struct, frozen=True):
    """A host node whose memory a device reaches, and by what."""

    node: int
    by: Literal["PCIe", "fabric"]


class ExpectedPath(msgspec.Struct, frozen=True):
    """All that a transfer uses. With `doubts` only a theoretical figure is known; with `loose` what
    healthy hardware achieves varies much, for these reasons."""

    uses: tuple[Use, ...] = ()
    doubts: tuple[str, ...] = ()
    loose: tuple[str, ...] = ()
    meets: tuple[Meeting, ...] = ()

    def __add__(self, other: ExpectedPath) -> ExpectedPath:
        fields = zip(astuple(self), astuple(other), strict=True)
        return ExpectedPath(*(mine + others for mine, others in fields))


def figure(rate: float) -> str:
    """A rate as it stands in a line of arithmetic: four digits, in GB/s."""
    return f"{rate / 1e9:.4g} GB/s"
