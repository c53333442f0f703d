"""What could not be read of a machine, and why."""

from __future__ import annotations

NEEDS_ROOT = "run as root"
"""Ends a reason if root could read the value."""


class Gap(str):
    """Fields that could not be read (none: all of them), and why. In files and messages it is the
    text `FIELD, FIELD: WHY`, by the hooks of `notation`; the text identifies it."""

    fields: tuple[str, ...]
    why: str

    def __new__(cls, why: str, *fields: str) -> Gap:
        gap = super().__new__(cls, f"{', '.join(fields)}: {why}" if fields else why)
        gap.fields, gap.why = fields, why
        return gap


def read_gap(text: str) -> Gap:
    """The gap that files and messages write so."""
    fields, _, why = text.partition(": ")
    return Gap(why, *fields.split(", ")) if why else Gap(text)
