"""Accepted defects of a machine, as values that runs record."""

from __future__ import annotations

import msgspec

from .shareable import FileName, FreeText


class Waiver(msgspec.Struct, frozen=True):
    """A finding, or the figures of cells, that a person accepts up to a value.

    check: The id of the accepted check; empty for cells.
    cell: The pattern of the accepted cells, `benchmark [row, column]`; empty for a check.
    accept: The value up to which it is accepted, such as `>= 8 lanes`, or a severity.
    owner: Who accepts it.
    reason: Why it is accepted.
    until: The last day on which it is accepted (ISO 8601).
    part: The pattern of the parts that the waiver covers.
    host: The pattern of the hosts that the waiver covers.
    where: The file and the line that state the waiver."""

    check: FreeText
    cell: FreeText
    accept: FreeText
    owner: FreeText
    reason: FreeText
    until: FreeText
    part: FreeText = "*"
    host: FreeText = "*"
    where: FileName = ""

    def __str__(self) -> str:
        return f"until {self.until}, by {self.owner}: {self.reason} ({self.where})"
