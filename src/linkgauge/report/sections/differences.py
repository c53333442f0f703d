"""Each figure of all configurations of an accelerator, as bars with intervals."""

from __future__ import annotations

from . import Section
from .configurations import bars

SECTION = Section("differences", "Differences", 25, of_runs=bars)
