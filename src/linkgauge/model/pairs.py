"""A random sample of the pairs of devices: what is asked for, and the result."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

Seed = Annotated[int, Meta(ge=0, lt=1 << 32, description="0 to 4294967295")]


class PairSample(msgspec.Struct, frozen=True):
    """The request for a random sample of all pairs of devices.

    count: The number of pairs to draw; all pairs if there are fewer.
    seed: The seed of the random numbers, 0 to 4294967295."""

    count: int
    seed: Seed = 1


class SampledPairs(msgspec.Struct, frozen=True):
    """The result of drawing a random sample of pairs.

    pairs: The number of pairs that were sampled.
    all: The number of all pairs.
    seed: The seed of the random numbers."""

    pairs: int
    all: int
    seed: int
