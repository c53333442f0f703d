"""CSV that no spreadsheet takes for formulas."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable

from linkgauge.model.printable import printable

SIMULATED = "SIMULATED"

_GUARDED = ("=", "+", "-", "@", "|", "%", "'", "＝", "＋", "－", "＠")
"""Text that begins so would be a formula to some spreadsheet, or have lost its quote when read
back."""
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Each row on a line. Text that begins like a formula gets a `'` in front, which spreadsheets
    do not show; so does text that begins with one: whoever reads it back removes one `'`. What is
    simulated is marked as SIMULATED."""
    lines = _Lines()
    csv.writer(lines).writerows([_guarded(field) for field in row] for row in rows)
    return "".join(lines)


class _Lines(list[str]):
    """Lines that end as on Unix. The writer has to end them otherwise, or it would not quote a
    carriage return (before Python 3.13)."""

    def write(self, line: str) -> None:
        self.append(line.removesuffix("\r\n") + "\n")


def _guarded(field: object) -> object:
    if isinstance(field, bool):
        return SIMULATED if field else ""
    if not isinstance(field, str):
        return field
    text = printable(field)
    is_formula = text.lstrip().startswith(_GUARDED) and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text
