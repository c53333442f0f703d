"""What a process that measures for a health check runs."""

from __future__ import annotations

from linkgauge.engine.bounded import serve

from .outcome import doubtful


def main(parent: int) -> None:
    """Serves the process `parent`: cells that would be low are measured once more."""
    serve(parent, doubtful)
