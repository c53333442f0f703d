"""Reads the text and the JSON of nvbandwidth 0.2 to 0.10, and of sailbandwidth, which derives from
it.

A test is `Running NAME.`, a heading, a line of column numbers, rows, and `SUM NAME VALUE`; a pasted
text may lack the first or the last. The size of buffers is not printed; the tool's default of 512
MiB is assumed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from linkgauge.benchmarks.copies import NVBANDWIDTH
from linkgauge.benchmarks.table import Layout
from linkgauge.model.transfer import Report
from linkgauge.model.units import unit_of

from ..lines import PrintedGrid, grid_at, number_of
from ..told import MIB, Facts, Found, Log, ToldFigure, ToldGpu

SIZE = 512 * MIB
_VERSION = re.compile(r"\s*(nvbandwidth|sailbandwidth) Version: (\S{1,40})")
_RUNNING = re.compile(r"\s*(?:Running|Waived:?)\s+([a-z][a-z0-9_]{5,80})[.:]?")
_SUM = re.compile(
    r"\s*(?:(?:SUM|MIN|MAX|AVG|COEFFICIENT_OF_VARIATION)|&&&& PERF)\s+([a-z][a-z0-9_]{5,80})\s"
)
_HEADING = re.compile(r"(?:memcpy|latency|multicast|bandwidth|BW).{0,80}\((?:GB/s|ns)\)|Bisect")
_DEVICE = re.compile(r"\s*(?:Process\s+\d+[^:]{0,80}: device |Device )(\d{1,4}): (.{1,120})")
_ADDRESS = re.compile(r"\(([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\)")
_ROWS = {row.name: row for row in NVBANDWIDTH}


def read(lines: Sequence[str]) -> Found | None:
    text = _read_text(lines)
    return text if text is not None else _read_json(lines)


def _read_text(lines: Sequence[str]) -> Found | None:
    versions = [(n, match) for n, line in enumerate(lines) if (match := _VERSION.match(line))]
    is_any = any(_RUNNING.match(one) or _SUM.match(one) for one in lines)
    if not versions and not is_any:
        return None
    known = {number for number, _ in versions}
    gpus = dict[int, ToldGpu]()
    for number, line in enumerate(lines):
        if match := _DEVICE.match(line):
            gpus.setdefault(int(match[1]), gpu_of(match[2]))
            known.add(number)
    figures, used, failed = _tests(lines)
    tool, version = (versions[0][1][1], versions[0][1][2]) if versions else ("nvbandwidth", None)
    if not figures and not versions:
        return None
    log = Log(tool, tuple(figures), version, failed=tuple(failed))
    return Found((log,), Facts(gpus=gpus), frozenset(known | used))


def _tests(lines: Sequence[str]) -> tuple[list[ToldFigure], set[int], list[str]]:
    figures, used, failed = list[ToldFigure](), set[int](), list[str]()
    name, waiting = "", list[tuple[str, PrintedGrid]]()
    grid: PrintedGrid | None
    number = 0
    while number < len(lines):
        line = lines[number]
        if match := _RUNNING.match(line):
            name, waiting = match[1], []
            used.add(number)
        elif match := _SUM.match(line):
            used.add(number)
            for heading, grid in waiting:
                figures += _figures(_base(match[1]), heading, grid)
            waiting = []
        elif _HEADING.search(line) and (grid := grid_at(lines, number + 1)) is not None:
            used |= grid.lines | {number}
            if name:
                figures += _figures(name, line, grid)
            else:
                waiting.append((line, grid))
            number = max(grid.lines)
        elif match := re.match(r"\s*(?:Waiving (\w{4,80})\.|Waived[:.]?\s*$)", line):
            what = match[1] or name
            failed.append(f"{what} was waived: GPUs reach no peers, or the test needs more of them")
            used.add(number)
        elif name and re.match(r"\s*(?:Error|ERROR|ASSERT|Invalid value|Failed)\b", line):
            failed.append(f"{name}: {line.strip()[:160]}")
            used.add(number)
        number += 1
    return figures, used, failed


_PART = re.compile(r"_(?:read1|read2|write1|write2|total)$")


def _base(key: str) -> str:
    """Returns the test's name from the name of its sum."""
    return _PART.sub("", key)


def _figures(name: str, heading: str, grid: PrintedGrid) -> Iterator[ToldFigure]:
    part = re.search(r"\b(?:Read|Write)([12])\b", heading)
    yield from told(name, grid.figures, int(part[1]) - 1 if part else None)


def told(
    name: str, figures: Mapping[tuple[int, int], float | None], part: int | None = None
) -> Iterator[ToldFigure]:
    """Yields the figures of a test's matrix, or none for an unknown test."""
    row = _ROWS.get(name)
    if row is None:
        return
    scale = unit_of(row.unit.symbol).scale
    size = row.size or SIZE
    for (down, across), figure in figures.items():
        if figure is not None:
            place = "0" if row.layout is not Layout.PAIRS else str(down), str(across)
            yield ToldFigure(name, *place, figure * scale, size, part=part, of=row)


def gpu_of(text: str) -> ToldGpu:
    """Returns the GPU in a text such as `NVIDIA H200 (00000000:1b:00)`. The address and the host
    may be missing."""
    match = _ADDRESS.search(text)
    model = text.partition(" (0")[0].strip() if match else text.strip()
    pci = f"{match[1][-4:].lower()}:{match[2].lower()}:{match[3].lower()}.0" if match else None
    return ToldGpu(model=model or None, pci=pci)


# JSON, which may stand among other lines.


def documents(lines: Sequence[str], key: str) -> Iterator[tuple[dict[str, Any], frozenset[int]]]:
    """Returns the JSON objects in a text with this key near their beginning, and the numbers of
    their lines."""
    if not any(f'"{key}"' in line for line in lines):
        return
    text = "\n".join(lines)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    decoder, end = json.JSONDecoder(), 0
    for number, line in enumerate(lines):
        begin = starts[number] + len(line) - len(line.lstrip())
        if not line.lstrip().startswith("{") or begin < end:
            continue
        if f'"{key}"' not in text[begin : begin + 4000]:
            continue
        try:
            value, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and key in value:
            used = (n for n in range(number, len(lines)) if starts[n] < end)
            yield value, frozenset(used)


def _read_json(lines: Sequence[str]) -> Found | None:
    for tool in ("nvbandwidth", "sailbandwidth"):
        for document, used in documents(lines, tool):
            body = document[tool]
            if isinstance(body, dict):
                return _found(tool, body, used)
    return None


def _found(tool: str, body: Mapping[str, Any], used: frozenset[int]) -> Found:
    figures, failed = list[ToldFigure](), list[str]()
    tests = body.get("testcases")
    for test in tests if isinstance(tests, list) else ():
        if not isinstance(test, dict) or not isinstance(name := test.get("name"), str):
            continue
        figures += _of_test(name, test.get("bandwidth_matrix"))
        if test.get("status") not in ("Passed", "Waived"):
            failed.append(f"{name}: {test.get('error', test.get('status'))}"[:160])
    listed = body.get("GPU Device list")
    gpus = dict[int, ToldGpu]()
    for text in listed if isinstance(listed, list) else ():
        index, _, name = str(text).partition(": ")
        if index.isdecimal() and len(index) < 5:
            gpus[int(index)] = gpu_of(name)
    version = body.get("version")
    log = Log(
        tool, tuple(figures), version if isinstance(version, str) else None, failed=tuple(failed)
    )
    return Found((log,), Facts(gpus=gpus), used)


def _of_test(name: str, matrix: object) -> Iterator[ToldFigure]:
    """Yields the figures of a test. A test with parts prints the matrix of each part, then the
    total."""
    rows = [row for row in matrix if isinstance(row, list)] if isinstance(matrix, list) else []
    row = _ROWS.get(name)
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
        yield from told(name, figures, number if count > 1 and number < 2 else None)
