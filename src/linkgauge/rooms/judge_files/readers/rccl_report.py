"""Reads the file that rccl-tests writes with `-Z csv` or `-Z json`. A row is one side of a line of
its table."""

from __future__ import annotations

import re
from collections.abc import Sequence

from linkgauge.model.operations.collective import COLLECTIVE_NAMES

from ..told import Found, TextScan
from .nccl_tests import TableRow, called, number_type, reduction_of

_NEXT = r', ?(?:"\w{1,16}":)?'
_ROW = re.compile(
    r'\{?(?:"numCycle":)?\d{1,9}' + _NEXT + r'"(\w{1,20})"((?:' + _NEXT + r"\d{1,16}){2,5})"
    + _NEXT + r'"(\w{1,12})"' + _NEXT + r'"(\w{0,12})"' + _NEXT + "([01])"
    + _NEXT + r"(\d{1,14}\.\d{1,9})" + (_NEXT + r"[\d.]{1,24}") * 2 + _NEXT + r'"(\d{1,18}|N/A)"'
)  # fmt: skip
_HEAD = re.compile(r"numCycle,collective,|\s*[\[\]]\s*$")
_IN_PARTS = ("reduce_scatter", "scatter")
"""Collectives of which a row has the bytes that one rank receives, and a line of the table all."""
_NAMES = {name.replace("_", ""): name for name in COLLECTIVE_NAMES}


def read(lines: Sequence[str]) -> Found | None:
    seen, failed = TextScan(lines), list[str]()
    for _, match in seen.each(_ROW, _HEAD):
        name = _NAMES.get(match[1].lower()) if match.re is _ROW else None
        kind = number_type(match[3]) if name else None
        if name is None or kind is None:
            continue
        *places, size = (int(number) for number in re.findall(r"\d+(?=[,\s]|$)", match[2]))
        ranks = places[1] if len(places) > 1 else places[0]
        size, seconds = size * (ranks if name in _IN_PARTS else 1), float(match[6]) / 1e6
        sides = (None, seconds) if match[5] == "1" else (seconds, None)
        line = TableRow(size, kind, reduction_of(match[4]), 0, sides)
        seen.figures += called(name, line, ranks)
        if match[7] not in ("0", "N/A"):
            failed.append(f"{name}: wrong elements")
    return seen.log("rccl-tests", failed=tuple(dict.fromkeys(failed))) if seen.figures else None
