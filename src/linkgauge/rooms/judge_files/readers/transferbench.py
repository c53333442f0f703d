"""Reads AMD's TransferBench: the matrices of its presets p2p and a2a, and the tests of a file, line
by line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from linkgauge.benchmarks.copies import NVBANDWIDTH
from linkgauge.benchmarks.table import Layout, Row
from linkgauge.model.transfer import Report

from ..lines import number_of, words_of
from ..told import MIB, Facts, Found, Log, ToldFigure

_VERSION = re.compile(r"\s*TransferBench v(\S{1,20})")
_TITLE = re.compile(
    r"\s*(Unidirectional|Bidirectional) copy peak bandwidth GB/s \[.{1,40}\]"
    r" \(GPU-Executor: (\w{1,8})\)"
)
_SIZE = re.compile(r"(?:Bytes Per Direction (\d{1,13})|\[(\d{1,13}) bytes per Transfer\])")
_ALL = re.compile(r"\s*GPU-(GFX|DMA) All-To-All benchmark")
_ONE = re.compile(
    r"\s*Transfer\s+\d+\s.*?(\d{1,14}(?:\.\d{0,9})?) GB/s"
    r".*?(\d{1,14}) bytes.*?\s([A-Z])(\d{1,3})\s*->\s*"
    r"([A-Z])(\d{1,3})(?:[.:]\S{1,12})?\s*->\s*([A-Z])(\d{1,3})\s*$"
)
_SAID = re.compile(
    r"=*$|\[[A-Z].{2,40}\]|[A-Z0-9_]{4,40}\s+=\s|Test \d+:|Executor|Aggregate|Transfer \d"
    r"|GPU->|CPU->|Averages|Average bandwidth|CPU Timed"
)
_RULES = re.compile("[┌┬┐├┼┤└┴┘│─|+-]+")
_ROWS = {row.name: row for row in NVBANDWIDTH}
_KIND = {"GFX": "sm", "DMA": "ce"}
_BOTH = {
    kind: Row(
        f"device_to_device_bidirectional_memcpy_total_{kind}",
        f"memcpy {kind.upper()} device(row) <-> device(column), both ways", Layout.PAIRS,
        f"r -> c by r.{kind} & c -> r by c.{kind}", Report.SUM,
    )
    for kind in _KIND.values()
}  # fmt: skip


def read(lines: Sequence[str]) -> Found | None:
    if not any(_VERSION.match(line) or _TITLE.match(line) or _ALL.match(line) for line in lines):
        return None
    figures, used, size = list[ToldFigure](), set[int](), 256 * MIB
    for number, line in enumerate(lines):
        if match := _SIZE.search(line):
            size = int(match[1] or match[2])
            used.add(number)
        if title := _TITLE.match(line):
            kind, both = _KIND.get(title[2], "sm"), title[1] == "Bidirectional"
            found, taken = _matrix(lines, number + 1, kind, size, both)
            figures += found
            used |= taken | {number}
        elif _ALL.match(line):
            used |= _grid_lines(lines, number)
        elif match := _ONE.match(line.replace("│", " ").replace("|", " ")):
            figures += _single(match)
            used.add(number)
        elif _SAID.match(_RULES.sub(" ", line).strip()) or _VERSION.match(line):
            used.add(number)
    version = next((match[1] for line in lines if (match := _VERSION.match(line))), None)
    return Found((Log("TransferBench", tuple(figures), version),), Facts(), frozenset(used))


def _matrix(
    lines: Sequence[str], start: int, kind: str, size: int, both: bool
) -> tuple[list[ToldFigure], set[int]]:
    """Reads a matrix of p2p. Its rows are `GPU 00 -> …`; both ways have also `<-` and `<->`, and
    the last one is the total."""
    figures, used, names = list[ToldFigure](), set[int](), list[str]()
    for number in range(start, min(start + 400, len(lines))):
        line = lines[number]
        if "\\DST" in line:
            names = re.findall(r"[CG]PU \d{1,3}", line)
        elif match := re.match(r"\s*([CG]PU \d{1,3})\s+(->|<-|<->)\s(.*)", line):
            if match[2] == ("<->" if both else "->"):
                rates = [number_of(word) for word in match[3].split()]
                figures += _of_row(match[1], names, rates, kind, size, both)
        elif line.strip() and not re.match(r"\s*(?:[CG]PU->|Averages)", line):
            break
        used.add(number)
    return figures, used


def _of_row(
    row: str, names: Sequence[str], rates: Sequence[float | None], kind: str, size: int, both: bool
) -> Iterator[ToldFigure]:
    for column, rate in zip(names, rates, strict=False):
        kinds, down, across = row[0] + column[0], int(row[4:]), int(column[4:])
        if rate is None or kinds == "CC" or (kinds != "GG" and (both or kinds == "CG")):
            continue
        if kinds == "GC":
            if across == 0:
                yield _told(_ROWS[f"device_to_host_memcpy_{kind}"], 0, down, rate, size)
        elif down == across:
            if not both and kind == "ce":
                yield _told(_ROWS["device_local_copy"], 0, across, rate, size)
        elif both:
            yield _told(_BOTH[kind], down, across, rate, size)
        else:
            yield _told(_ROWS[f"device_to_device_memcpy_write_{kind}"], down, across, rate, size)


def _told(row: Row, down: int, across: int, rate: float, size: int) -> ToldFigure:
    return ToldFigure(row.name, str(down), str(across), rate * 1e9, size, of=row)


def _grid_lines(lines: Sequence[str], start: int) -> set[int]:
    """The lines of a matrix of all pairs at once. Its figures are left out, because no cell of
    linkgauge shares links in this way."""
    used = {start}
    for number in range(start + 1, min(start + 200, len(lines))):
        words = words_of(lines[number])
        is_row = words[:1] in (["GPU"], ["RTotal"], ["SRC\\DST"], ["STotal"])
        is_rule = not _RULES.sub("", lines[number]).strip("= ") or "bytes per" in lines[number]
        if not (is_row or is_rule):
            break
        used.add(number)
    return used


def _single(match: re.Match[str]) -> Iterator[ToldFigure]:
    """The transfer of a test: from one memory by an executor to another."""
    rate, size = float(match[1]), int(match[2])
    source, executor, destination = match[3] + match[4], match[5] + match[6], match[7] + match[8]
    kind = {"G": "sm", "D": "ce"}.get(match[5])
    if kind is None or not size:
        return
    owner = match[6]
    if source[0] == destination[0] == "G" and source != destination:
        reads = destination[1:] == owner
        way = "read" if reads else "write"
        places = (match[8], match[4]) if reads else (match[4], match[8])
        if owner in places:
            row = _ROWS[f"device_to_device_memcpy_{way}_{kind}"]
            yield _told(row, int(places[0]), int(places[1]), rate, size)
    elif source[0] in "CBN" and destination[0] == "G" and executor[1:] == destination[1:]:
        yield _told(_ROWS[f"host_to_device_memcpy_{kind}"], 0, int(match[8]), rate, size)
    elif source[0] == "G" and destination[0] in "CBN" and executor[1:] == source[1:]:
        yield _told(_ROWS[f"device_to_host_memcpy_{kind}"], 0, int(match[4]), rate, size)
