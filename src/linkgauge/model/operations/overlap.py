"""How much of copies' time a kernel that computes hides, from three times of the same work."""

from __future__ import annotations

ALL = 1.0
"""The share of a time that is hidden whole."""


def hidden(computing: float, copying: float, together: float) -> float:
    """The share of the shorter of both times, each alone, that passes while the other one runs: 0
    where one follows the other, 1 where both take no longer than the longer one. Below 0, they
    hold each other up; above 1 is scatter, because the three times are measured one after
    another."""
    return (computing + copying - together) / min(computing, copying)


def time_together(computing: float, copying: float, share: float) -> float:
    """The time of both at once, of which `hidden` makes this share."""
    return computing + copying - share * min(computing, copying)
