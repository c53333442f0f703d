"""In what the machines and settings of configurations differ."""

from __future__ import annotations

from . import Section
from .configurations import facts

SECTION = Section("facts", "What differs", 75, of_runs=facts)
