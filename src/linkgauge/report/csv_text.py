"""Writes CSV whose texts no spreadsheet takes for formulas."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from functools import cache
from io import StringIO

from linkgauge.model.printable import printable

SIMULATED = "SIMULATED"

_GUARDED = ("=", "+", "-", "@", "|", "%", "'", "＝", "＋", "－", "＠")
"""Some spreadsheet takes such texts for formulas, or a reader would remove the first quote."""
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Returns rows as CSV. A text that looks like a formula gets a `'` in front. A boolean says
    whether a figure is simulated: True becomes SIMULATED, False an empty text."""
    text = StringIO()
    writer, guarded = csv.writer(text, lineterminator="\n"), cache(_guarded)  # most are met again
    for row in rows:
        writer.writerow([guarded(one) if isinstance(one, (str, bool)) else one for one in row])
    return text.getvalue()


def _guarded(field: str | bool) -> str:
    if isinstance(field, bool):
        return SIMULATED if field else ""
    text = printable(field)
    is_formula = text.lstrip().startswith(_GUARDED) and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text
