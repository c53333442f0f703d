"""A worker's current state: reported as each phase of a cell begins, and as samples end."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from linkgauge.model.errors import Phase

SIGN_SECONDS = 0.1
"""Least interval between signs of life while samples are taken: each wakes the controller."""


class Standing(msgspec.Struct, frozen=True, tag=True):
    """A phase, when the cell began, and when the last sign of life came: a phase began or a sample
    ended (seconds of the monotonic clock, which all processes share). `warm_up` is the duration of
    the warm-up, `longest` that of the longest sample so far; 0 until known."""

    phase: Phase = "plan"
    begun: float = 0.0
    since: float = 0.0
    warm_up: float = 0.0
    longest: float = 0.0


class Signs:
    """Tracks a worker's state, and reports it through `send`."""

    def __init__(self, send: Callable[[Standing], None]) -> None:
        self._send = send
        self._sent = 0.0
        self._at = Standing()

    def enter(self, phase: Phase) -> None:
        """A phase begins; the first one begins a cell. "measure" is entered again after each
        sample."""
        now, at = time.monotonic(), self._at
        warm_up, longest, again = at.warm_up, at.longest, at.phase == phase == "measure"
        if phase == "allocate":
            self._at = Standing(phase, now, now)
        else:
            if at.phase == "warm up":
                warm_up = now - at.since
            elif again:
                longest = max(longest, now - at.since)
            self._at = Standing(phase, at.begun, now, warm_up, longest)
        if not again or now - self._sent >= SIGN_SECONDS:
            self._sent = now
            self._send(self._at)
