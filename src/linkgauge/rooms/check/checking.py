"""What a process that measures for a health check runs."""

from __future__ import annotations

from linkgauge.judge.outcome import doubtful
from linkgauge.machine.channel import Channel

from .bounded import serve_once


def serve(channel: Channel) -> None:
    """Serves who waits: cells that would be low are measured once more."""
    serve_once(channel, doubtful)
