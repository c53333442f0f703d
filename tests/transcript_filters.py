"""What differs from one execution of a command to the next, replaced by what stands for it: the
moment, the folder, this version of linkgauge and of Python. Lengths stay where columns hang on
them."""

from __future__ import annotations

import platform
import re
import time
from datetime import UTC, datetime
from pathlib import Path

import linkgauge

ROOT = Path(__file__).parent.parent
_ID = re.compile(r"\b(\d{8}T\d{6})Z(?:-\d+)?\b")
_MOMENT = re.compile(r"\b(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?)(\.\d+)?(Z|\+00:00)?")
_DAY = re.compile(r"\b\d{4}-\d\d-\d\d\b(?![ T]\d\d:)")
_SLACK = 90.0
"""Seconds: moments that are shown to the minute."""
_FIELDS = {
    "commit": r'"[^"]*"|null', "python": r'"[^"]*"', "hostname": r'"[^"]*"',
    "linkgauge": r'"[^"]*"', "kernel": r'"[^"]*"|null', "seconds": r"[-+.e\d]+",
    "elapsed": r"[-+.e\d]+", "busy": r"[-+.e\d]+", "duty": r"[-+.e\d]+", "duration": r"[-+.e\d]+",
    "pid": r"\d+",
}  # fmt: skip
"""Fields of documents that differ from machine to machine, or from moment to moment."""
_SUBSTITUTES = (
    (re.compile(r"(?m)^\| commit \| .*\n"), ""),  # of a checkout alone
    (re.compile(r"(?m)^(\| (?:linkgauge|Python) \| ).*$"), r"\1…"),
    (re.compile(r"(?m)^((?:\S+ .*), )[\d.]+ [KM]iB$"), r"\1…"),
    (re.compile(r"(devices busy for) .* of .* \([^)]*%\)"), r"\1 …"),
    (re.compile(r"(cells measured in) [\d.]+ s"), r"\1 … s"),
    (re.compile(r"(still\s+running after) [\d.]+ s"), r"\1 … s"),
    (re.compile(r"\bPid +\d+"), "Pid  …"),
    (re.compile(r'"PATH=[^"]*"'), '"PATH=…"'),
)
"""Rows of a report's bill of materials, the sizes of the files that it holds; this process."""
_FIELD = re.compile(
    r"(?P<shape>\.commit: \w+)|"
    + "|".join(rf'"(?P<{n}>{n})": ?(?:{value})' for n, value in _FIELDS.items())
)
_LONG = re.compile(r"(?<![\w.])\d+\.\d{5,}(?:e[-+]?\d+)?(?![\w.])")
"""Figures whose last digits are those of a library of mathematics."""


class Filters:
    """Those of a transcript whose commands are executed in this folder from now on."""

    def __init__(self, folder: Path) -> None:
        self._began = time.time() - _SLACK
        self._words = {
            str(folder): "FOLDER",
            str(ROOT): "REPOSITORY",
            f"linkgauge {linkgauge.__version__}": "linkgauge VERSION",
            f"linkgauge/{linkgauge.__version__}": "linkgauge/VERSION",
            f'version="{linkgauge.__version__}"': 'version="…"',
            f"Python {platform.python_version()}": "Python VERSION",
        }

    def __call__(self, text: str) -> str:
        for found, stands in self._words.items():
            text = re.sub(rf"(?<![\w.]){re.escape(found)}(?!\w)", lambda _, to=stands: to, text)
        text = _ID.sub(self._id, text)
        text = _MOMENT.sub(self._moment, text)
        text = _DAY.sub(self._day, text)
        text = _LONG.sub(lambda found: f"{float(found[0]):.10g}", text)
        for pattern, stands in _SUBSTITUTES:
            text = pattern.sub(stands, text)
        return _FIELD.sub(_field, text)

    def _is_now(self, moment: datetime) -> bool:
        return self._began <= moment.timestamp() <= time.time() + _SLACK

    def _id(self, found: re.Match[str]) -> str:
        moment = datetime.strptime(found[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
        return "YYYYMMDDThhmmssZ" if self._is_now(moment) else found[0]

    def _moment(self, found: re.Match[str]) -> str:
        text = found[1].replace(" ", "T")
        utc = datetime.fromisoformat(text).replace(tzinfo=UTC)
        local = datetime.fromisoformat(text).astimezone()
        if not self._is_now(utc) and not self._is_now(local):
            return found[0]
        return re.sub(r"\d", "0", found[1]) + ("Z" if found[3] else "")

    def _day(self, found: re.Match[str]) -> str:
        days = (datetime.now(UTC), datetime.now())
        return "0000-00-00" if found[0] in {f"{day:%Y-%m-%d}" for day in days} else found[0]


def _field(found: re.Match[str]) -> str:
    return ".commit: …" if found["shape"] else f'"{found.lastgroup}": …'
