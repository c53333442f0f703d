"""A random sample of the pairs of devices: the request, and the drawn pairs."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

Seed = Annotated[int, Meta(ge=0, lt=1 << 32, description="0 to 4294967295")]


class PairSample(msgspec.Struct, frozen=True):
    """A random sample of all pairs of devices.

    count: The number of pairs; all pairs if there are fewer.
    seed: The seed of the sample, 0 to 4294967295."""

    count: int
    seed: Seed = 1


class DrawnPairs(msgspec.Struct, frozen=True):
    """A random sample of pairs.

    pairs: How many pairs were drawn.
    all: How many pairs there are.
    seed: The seed with which they were drawn."""

    pairs: int
    all: int
    seed: int
