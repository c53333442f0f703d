"""Facts of a machine that could not be read, with the reasons."""

from __future__ import annotations

NEEDS_ROOT = "run as root"
"""The end of a reason for values that root could read."""


class Gap(str):
    """Fields that could not be read (none: all of them), with the reason. Files and messages show
    it as `FIELD, FIELD: WHY`, by the hooks of `notation`; equal texts are equal gaps."""

    fields: tuple[str, ...]
    why: str

    def __new__(cls, why: str, *fields: str) -> Gap:
        gap = super().__new__(cls, f"{', '.join(fields)}: {why}" if fields else why)
        gap.fields, gap.why = fields, why
        return gap


def read_gap(text: str) -> Gap:
    """Reads a gap from its text in files and messages."""
    fields, _, why = text.partition(": ")
    return Gap(why, *fields.split(", ")) if why else Gap(text)
