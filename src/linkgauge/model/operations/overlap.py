"""Computes the share of the copies' time that a kernel hides, from three times of the same work."""

from __future__ import annotations

ALL = 1.0
"""The share that is hidden if all of the time is hidden."""


def hidden(computing: float, copying: float, together: float) -> float:
    """Returns the share of the shorter of two works that passes while the other work runs. The
    arguments are the time of each work alone, and of both together. 0: one runs after the other. 1:
    both together take no longer than the longer work. Below 0: they slow each other down. Above 1
    is scatter, because the three times are measured one after another."""
    return (computing + copying - together) / min(computing, copying)


def time_together(computing: float, copying: float, share: float) -> float:
    """Returns the time of both works together for which `hidden` would return this share."""
    return computing + copying - share * min(computing, copying)
