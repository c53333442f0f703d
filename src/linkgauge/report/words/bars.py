"""Draws samples as bars of text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇█"
BINS = 24


def histogram(samples: Sequence[float], bins: int = BINS) -> str:
    """Draws a histogram of positive samples on a logarithmic axis. The highest bar is full."""
    least, most = min(samples), max(samples)
    width = math.log(most / least) / bins
    counts = Counter(
        min(bins - 1, int(math.log(sample / least) / width)) if width > 0 else 0
        for sample in samples
    )
    tallest = max(counts.values())
    bars = (-(-counts[at] * len(BARS) // tallest) for at in range(bins))
    return "".join(BARS[bar - 1] if bar else " " for bar in bars).rstrip()
