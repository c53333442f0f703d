"""Reads the file that rccl-tests writes with `-Z csv` or `-Z json`."""

from __future__ import annotations

import re

from ..scan import TextScan
from .nccl import NAMES, Call, note, number_type, reduction_of

_NEXT = r', ?(?:"\w{1,16}":)?'
_REPORT_ROW = re.compile(
    r'\{?(?:"numCycle":)?\d{1,9}' + _NEXT + r'"(\w{1,20})"((?:' + _NEXT + r"\d{1,16}){2,5})"
    + _NEXT + r'"(\w{1,12})"' + _NEXT + r'"(\w{0,12})"' + _NEXT + "([01])"
    + _NEXT + r"(\d{1,14}\.\d{1,9})" + (_NEXT + r"[\d.]{1,24}") * 2 + _NEXT + r'"(\d{1,18}|N/A)"'
)  # fmt: skip
_REPORT_HEAD = re.compile(r"numCycle,collective,|\s*[\[\]]\s*$")
_IN_PARTS = ("reduce_scatter", "scatter")


def _read_report(seen: TextScan) -> None:
    """A row is one side of a line of the table. That of `_IN_PARTS` has the bytes of one rank."""
    for _, match in seen.each(_REPORT_ROW, _REPORT_HEAD):
        name = NAMES.get(match[1].lower()) if match.re is _REPORT_ROW else None
        kind = number_type(match[3]) if name else None
        if name is None or kind is None:
            continue
        *places, size = (int(number) for number in re.findall(r"\d+(?=[,\s]|$)", match[2]))
        ranks = places[1] if len(places) > 1 else places[0]
        size = size * (ranks if name in _IN_PARTS else 1)
        wrong = "" if match[7] in ("0", "N/A") else match[7]
        about = size, kind, reduction_of(match[4]), 0, float(match[6]) / 1e6, match[5] == "1"
        note(seen, name, [Call(*about, wrong)], ranks)
    seen.log("rccl-tests", vendor="amd")


READERS = {_read_report: ('","', '", "')}
