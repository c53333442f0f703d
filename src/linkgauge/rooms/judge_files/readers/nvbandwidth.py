"""Reads text and JSON of nvbandwidth 0.2 to 0.10 and of sailbandwidth. The text has `Running
NAME.`, a heading, column numbers, rows and `SUM NAME VALUE`; the first or the last may be missing.
Buffers have the default size unless the text shows the command."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from linkgauge.benchmarks.copies import NVBANDWIDTH
from linkgauge.benchmarks.table import Layout
from linkgauge.model.transfer import Report
from linkgauge.model.units import unit_of

from ..facts import MIB, ReportedFigure, ReportedGpu
from ..failures import meaning_of
from ..lines import Grid, address_of, at, index_of, number_of
from ..scan import TextScan

SIZE = 512 * MIB
_VERSION = re.compile(r"\s*(nvbandwidth|sailbandwidth) Version: (\S{1,40})")
_RUNNING = re.compile(r"\s*(?:Running|Waived:?)\s+([a-z][a-z0-9_]{5,80})[.:]?")
_SUM = re.compile(
    r"\s*(?:(?:SUM|MIN|MAX|AVG|COEFFICIENT_OF_VARIATION)|&&&& PERF)\s+([a-z][a-z0-9_]{5,80})\s"
)
_HEADING = re.compile(
    r".*?(?:memcpy|[Ll]atency|multicast|bandwidth|BW).{0,80}\((?:GB/s|ns)\)|.*?Bisect"
)
_DEVICE = re.compile(r"\s*(?:Process\s+\d+[^:]{0,80}: device |Device )(\d{1,4}): (.{1,120})")
_FAILED = re.compile(
    r"\s*(?:Waiv(?:ing (\w{4,80})\.|ed[:.]?\s*$)"
    r"|((?:Error|ERROR|ASSERT|Invalid value|Failed|NVML_ERROR|\[CUDA_ERROR_\w{1,60}\])\b.*"
    r"|\[CUDA_ERROR.*))"
)
_GIVEN = re.compile(r".*?bandwidth\b.*?\s(?:-b|--bufferSize)[ =]?(\d{1,7})\b")
"""The command, with the buffer size in MiB."""
_PART = re.compile(r"_(?:read1|read2|write1|write2|total)$")
_ROWS = {row.name: row for row in NVBANDWIDTH}


def _read_text(seen: TextScan) -> None:
    tool, version, name, waiting = "", None, "", list[tuple[Grid, int | None]]()
    size = SIZE
    for number, match in seen.each(_VERSION, _RUNNING, _SUM, _HEADING, _DEVICE, _FAILED, _GIVEN):
        if match.re is _VERSION:
            tool, version = tool or match[1], version or match[2]
        elif match.re is _GIVEN:
            size = int(match[1]) * MIB
        elif match.re is _RUNNING:
            name, waiting = match[1], []
        elif match.re is _HEADING and (grid := seen.grid(number + 1)):
            part = re.search(r"\b(?:Read|Write)([12])\b", seen.lines[number])
            waiting.append((grid, int(part[1]) - 1 if part else None))
        elif match.re is _DEVICE:
            seen.gpus.setdefault(int(match[1]), gpu_of(match[2]))
        elif match.re is _FAILED:
            _failed(seen, name, match)
        test = _PART.sub("", match[1]) if match.re is _SUM else name
        while test and waiting:
            seen.figures += _figures(test, size, *waiting.pop(0))
    if seen.figures or tool:
        seen.log(tool or "nvbandwidth", version, sure=True)


_WAIVED = "was waived: GPUs reach no peers, or the test needs more of them"


def _failed(seen: TextScan, name: str, failed: re.Match[str]) -> None:
    """Notes a test's failure. After its figures, only words about wrong data still count."""
    said, test = failed[2] or _WAIVED, failed[1] or name
    seen.remarks += [] if failed[2] else [f"{test} {_WAIVED}"]
    is_over = any(one.benchmark == test for one in seen.figures)
    if test and not (is_over and meaning_of(said).kind != "wrong-bytes"):
        seen.fail(said, test)


def _figures(
    name: str, size: int, figures: Grid, part: int | None = None
) -> Iterator[ReportedFigure]:
    row = _ROWS.get(name)
    if row is None:
        return
    scale = unit_of(row.unit.symbol).scale
    size = row.size or size
    for (down, across), figure in figures.items():
        if figure is not None:
            place = "0" if row.layout is not Layout.PAIRS else str(down), str(across)
            yield ReportedFigure(name, *place, figure * scale, size, part=part, of=row)


def gpu_of(text: str) -> ReportedGpu:
    pci = address_of(text)
    model = text.partition(" (0")[0].strip() if pci else text.strip()
    return ReportedGpu(model=model or None, pci=pci)


def _read_json(seen: TextScan) -> None:
    for tool in ("nvbandwidth", "sailbandwidth"):
        for document in seen.documents(tool):
            if isinstance(body := document[tool], dict) and not seen.logs:
                _read_document(seen, tool, body)


def _read_document(seen: TextScan, tool: str, body: Mapping[str, Any]) -> None:
    for test in at(body, list, "testcases"):
        name, status = at(test, str, "name"), at(test, object, "status")
        seen.figures += _of_test(name, at(test, list, "bandwidth_matrix"))
        if status == "Waived":
            seen.fail(str(test.get("reason") or f"{name} {_WAIVED}"), name)
        elif name and status not in ("Passed", None):
            seen.fail(str(test.get("error") or body.get("error") or f"status {status}"), name)
    for text in at(body, list, "GPU Device list"):
        index, _, name = str(text).partition(": ")
        if (number := index_of(index)) is not None:
            seen.gpus[number] = gpu_of(name)
    seen.log(tool, at(body, str, "version"), sure=True)


def _of_test(name: str, matrix: list[Any]) -> Iterator[ReportedFigure]:
    rows, row = [row for row in matrix if isinstance(row, list)], _ROWS.get(name)
    if row is None or not rows:
        return
    count = 3 if row.report is Report.SUM and len(rows) % 3 == 0 else 1
    height = len(rows) // count
    for number in range(count):
        own = rows[number * height : (number + 1) * height]
        figures = {
            (down, across): number_of(str(figure))
            for down, line in enumerate(own)
            for across, figure in enumerate(line)
        }
        yield from _figures(name, SIZE, figures, number if count > 1 and number < 2 else None)


READERS = {
    _read_text: ("bandwidth Version", "(GB/s)", "(ns)", "Bisect"),
    _read_json: ('"nvbandwidth"', '"sailbandwidth"'),
}
