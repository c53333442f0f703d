"""Reads text and JSON of nvbandwidth 0.2 to 0.10 and of sailbandwidth. The text has `Running
NAME.`, a heading, column numbers, rows and `SUM NAME VALUE`; the first or the last may be missing.
Buffers have the default size unless the text shows the command."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from linkgauge.benchmarks.copies import NVBANDWIDTH
from linkgauge.benchmarks.processes import MULTINODE
from linkgauge.benchmarks.table import Layout
from linkgauge.model.transfer import Report
from linkgauge.model.units import unit_of

from ..facts import MIB, ReportedFigure, ReportedGpu
from ..failures import meaning_of
from ..lines import address_of, at, index_of, number_of
from ..scan import Grid, TextScan

SIZE = 512 * MIB
_PART = re.compile(r"_(?:read1|read2|write1|write2|total)$")
_ROWS = {
    row.name: row for row in (*NVBANDWIDTH, *(replace(o, across_ranks=False) for o in MULTINODE))
}
"""The tests. Processes of one that several share are GPUs of one NVLink domain, often of hosts."""
_IN_EACH, _FIRST_JSON = re.compile("Read|Write|Total"), "v0.5"
"""What titles of copies both ways say since 0.6, and the only version before with JSON: until then,
their only matrix is of one of the two copies by copy engines, or of both by kernels."""

_NAMED = re.compile(r"\s*(Running|SUM|&&&& PERF) ")
_TITLED = {
    f"memcpy {engine.upper()} {title}": f"{name}_{engine}"
    for engine in ("ce", "sm")
    for title, name in (
        ("CPU(row) -> GPU(column)", "host_to_device_memcpy"),
        ("CPU(row) <- GPU(column)", "device_to_host_memcpy"),
        ("CPU(row) <-> GPU(column)", "host_to_device_bidirectional_memcpy"),
        ("GPU(row) -> GPU(column)", "device_to_device_memcpy_read"),
        ("GPU(row) <- GPU(column)", "device_to_device_memcpy_write"),
    )
}
"""The tests by their headings, where a text has no names of tests. Later tests of nvbandwidth have
the same headings again, so that only a heading's first matrix is sure."""


def _read_text(seen: TextScan) -> None:
    tool, name, waiting = "", "", list[tuple[Grid, int | None, bool]]()
    size, summed, is_named, left = SIZE, set[str](), bool(seen.first(_NAMED)), dict(_TITLED)
    for number, own, _ in seen.marks(
        r"\s*(?P<tool>nvbandwidth|sailbandwidth) Version: (?P<version>\S{1,40})",
        r"\s*(?:Running|Waived:?)\s+(?P<running>[a-z][a-z0-9_]{5,80})[.:]?",
        r"\s*(?:(?:SUM|MIN|MAX|AVG|COEFFICIENT_OF_VARIATION)|&&&& PERF)\s+"
        r"(?P<sum>[a-z][a-z0-9_]{5,80})\s",
        r"(?P<head>.*?(?:memcpy|[Ll]atency|multicast|bandwidth|BW).{0,80}\((?:GB/s|ns)\)|.*?Bisect)",
        r"\s*(?:Process\s+(?P<rank>\d{1,4})[^:]{0,80}: device \d{1,4}|Device (?P<device>\d{1,4}))"
        r": (?P<card>.{1,120})",
        r"\s*(?:Waiv(?:ing (?P<waived>\w{4,80})\.|ed[:.]?(?P<all>\s*)$)|(?P<error>(?:Error|ERROR"
        r"|ASSERT|Invalid value|Failed|NVML_ERROR|\[CUDA_ERROR_\w{1,60}\])\b.*|\[CUDA_ERROR.*))",
        r".*?bandwidth\b.*?\s(?:-b|--bufferSize)[ =]?(?P<buffer>\d{1,7})\b",  # in MiB
    ):
        tool = tool or own.get("tool", "")
        size = int(own["buffer"]) * MIB if "buffer" in own else size
        if "running" in own:
            name, waiting = own["running"], []
        elif "head" in own:
            if not is_named:
                name, waiting = left.pop(own["head"].partition(" bandwidth")[0], ""), []
            part = re.search(r"\b(?:Read|Write)([12])\b", seen.lines[number])
            is_first = not _IN_EACH.search(seen.lines[number])
            waiting.append((seen.grid_below(number), int(part[1]) - 1 if part else None, is_first))
        elif "card" in own:
            seen.found(number, int(own.get("rank") or own["device"]), gpu_of(own["card"]))
        elif not own.keys().isdisjoint(("waived", "all", "error")):
            _failed(seen, own.get("waived", name), own.get("error", ""))
        test = _PART.sub("", own.get("sum", name))
        summed |= {test} & _ROWS.keys() if "sum" in own else set()
        while test and waiting:
            seen.figures += _figures(test, size, *waiting.pop(0))
    if summed and not seen.figures:
        seen.remarks.append("only sums of matrices are there: give each pair's figures, too")
    if seen.figures or tool or summed:
        seen.log(tool or "nvbandwidth", sure=True)


_WAIVED = "was waived: GPUs reach no peers, or the test needs more of them"


def _failed(seen: TextScan, test: str, error: str) -> None:
    """Records an error or waiver of a test, but only wrong bytes once the test has figures."""
    said = error or _WAIVED
    seen.remarks += [] if error else [f"{test} {_WAIVED}"]
    is_over = any(one.benchmark == test for one in seen.figures)
    if test and not (is_over and meaning_of(said).kind != "wrong-bytes"):
        seen.fail(said, test)


def _figures(
    name: str, size: int, figures: Grid, part: int | None = None, is_first: bool = False
) -> Iterator[ReportedFigure]:
    row = _ROWS.get(name)
    if row is None:
        return
    if is_first and row.report is Report.SUM and name.endswith("_ce"):
        row = replace(row, report=Report.FIRST, parts=())
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
    is_first = at(body, str, "version") == _FIRST_JSON
    for test in at(body, list, "testcases"):
        name, status = at(test, str, "name"), at(test, object, "status")
        seen.figures += _of_test(name, at(test, list, "bandwidth_matrix"), is_first)
        if status == "Waived":
            seen.fail(str(test.get("reason") or f"{name} {_WAIVED}"), name)
        elif name and status not in ("Passed", None):
            seen.fail(str(test.get("error") or body.get("error") or f"status {status}"), name)
    for text in at(body, list, "GPU Device list"):
        index, _, name = str(text).partition(": ")
        if (number := index_of(index)) is not None:
            seen.gpus[number] = gpu_of(name)
    seen.log(tool, at(body, str, "version"), sure=True)


def _of_test(name: str, matrix: list[Any], is_first: bool) -> Iterator[ReportedFigure]:
    rows, row = [row for row in matrix if isinstance(row, list)], _ROWS.get(name)
    if row is None or not rows:
        return
    count = 3 if row.report is Report.SUM and len(rows) % 3 == 0 and not is_first else 1
    height = len(rows) // count
    for number in range(count):
        own = rows[number * height : (number + 1) * height]
        figures = {
            (down, across): number_of(str(figure))
            for down, line in enumerate(own)
            for across, figure in enumerate(line)
        }
        part = number if count > 1 and number < 2 else None
        yield from _figures(name, SIZE, figures, part, is_first)


READERS = {
    _read_text: ("bandwidth Version", "(GB/s)", "(ns)", "Bisect", "SUM "),
    _read_json: ('"nvbandwidth"', '"sailbandwidth"'),
}
