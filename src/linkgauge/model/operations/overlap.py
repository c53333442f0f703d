"""The share of copies' time that a kernel hides, computed from three times of the same work."""

from __future__ import annotations

ALL = 1.0
"""The share of time that is hidden if all of it is."""


def hidden(computing: float, copying: float, together: float) -> float:
    """The share of the shorter of two times, each alone, that passes while the other work runs: 0
    if one follows the other, 1 if both take no longer than the longer one. Below 0 they slow each
    other down; above 1 is scatter, because the three times are measured one after another."""
    return (computing + copying - together) / min(computing, copying)


def time_together(computing: float, copying: float, share: float) -> float:
    """The time of both at once for which `hidden` would return this share."""
    return computing + copying - share * min(computing, copying)
