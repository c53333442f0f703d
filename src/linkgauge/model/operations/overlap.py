"""Computes the share of the copies' time that a kernel hides, from three times of the same work."""

from __future__ import annotations

ALL = 1.0
"""The share that is hidden if all of the time is hidden."""


def hidden(computing: float, copying: float, together: float) -> float:
    """Returns the share of the shorter of two works that is hidden behind the longer one.
    `computing` and `copying` are the time of each work alone, `together` the time of both. The
    result is 0 if one work runs after the other. It is 1 if both together take no longer than the
    longer work, and below 0 if they slow each other down. A result above 1 is measurement noise."""
    return (computing + copying - together) / min(computing, copying)


def time_together(computing: float, copying: float, share: float) -> float:
    """Returns the time of both works together if `share` of the shorter work is hidden."""
    return computing + copying - share * min(computing, copying)
