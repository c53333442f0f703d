"""Computes which share of the shorter of two times is hidden if a copy and a kernel overlap."""

from __future__ import annotations

ALL = 1.0
"""The share that is hidden if all of the time is hidden."""


def hidden(computing: float, copying: float, together: float) -> float:
    """Returns the share of the shorter time (of copy or kernel) that is hidden. It is 0 if copy and
    kernel run one after the other, and below 0 if they slow each other down."""
    return (computing + copying - together) / min(computing, copying)


def time_together(computing: float, copying: float, share: float) -> float:
    return computing + copying - share * min(computing, copying)
