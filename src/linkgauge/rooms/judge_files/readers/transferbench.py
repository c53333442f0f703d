"""Reads AMD's TransferBench: the matrices of its presets p2p and a2a, and the tests of a file, line
by line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

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
_RULES = re.compile("[┌┬┐├┼┤└┴┘│─|+-]+")
_TIMED = re.compile(r"\s*Aggregate bandwidth \(CPU Timed\): +(\d{1,9}\.\d{1,9}) GB/s")
_IN_GRID = re.compile(r"=*$|\[\d+ bytes per|SRC.DST|RTotal|CPU Timed|Average|Aggregate")
_COPIES = "[1 Read(s) 1 Write(s)]"
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
        elif title := _ALL.match(line):
            said = " ".join(lines[max(number - 30, 0) : number + 4])
            way = "read" if "Using DST as executor" in said else "write"
            name = f"all_to_all_{way}_{_KIND[title[1]]}" if _COPIES in said else ""
            size = next((int(m[2]) for m in _SIZE.finditer(said) if m[2]), size)
            found, taken = _all_to_all(lines, number, name, size)
            figures += found
            used |= taken
        elif match := _ONE.match(line.replace("│", " ").replace("|", " ")):
            figures += _single(match)
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
                yield _told(f"device_to_host_memcpy_{kind}", 0, down, rate, size)
        elif down == across:
            if not both and kind == "ce":
                yield _told("device_local_copy", 0, across, rate, size)
        elif both:
            yield _told(_BOTH[kind].name, down, across, rate, size, _BOTH[kind])
        else:
            yield _told(f"device_to_device_memcpy_write_{kind}", down, across, rate, size)


def _told(
    name: str, down: int, across: int, rate: float, size: int, of: Row | None = None
) -> ToldFigure:
    return ToldFigure(name, str(down), str(across), rate * 1e9, size, of=of)


def _all_to_all(
    lines: Sequence[str], start: int, name: str, size: int
) -> tuple[list[ToldFigure], set[int]]:
    """The rate of each pair while all copy, and what all carry together by the CPU's clock. None of
    them if some are missing, or copies within devices run, too (no `name`)."""
    used, rates, total = {start}, list[float](), 0.0
    count = 0
    for number in range(start + 1, min(start + 200, len(lines))):
        line, words = lines[number], words_of(lines[number])
        if words[:1] == ["GPU"]:
            count += 1
            rates += [rate for word in words[2:-2] if (rate := number_of(word))]
        elif match := _TIMED.match(line):
            total = float(match[1])
        elif not _IN_GRID.match(_RULES.sub("", line).strip()):
            break
        used.add(number)
    if not name or not total or len(rates) != count * (count - 1):
        return [], used
    whole = _told(name, 0, 0, total, size)._replace(ranks=count)
    figures = [whole]
    pairs = [(one, other) for one in range(count) for other in range(count) if one != other]
    for (source, destination), rate in zip(pairs, rates, strict=True):
        own, other = (destination, source) if "read" in name else (source, destination)
        # The row's transfers go round from each device: to the next one first.
        part = own * (count - 1) + (other - own - 1) % count
        figures.append(whole._replace(figure=rate * 1e9, part=part))
    return figures, used


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
            name = f"device_to_device_memcpy_{way}_{kind}"
            yield _told(name, int(places[0]), int(places[1]), rate, size)
    elif source[0] in "CBN" and destination[0] == "G" and executor[1:] == destination[1:]:
        yield _told(f"host_to_device_memcpy_{kind}", 0, int(match[8]), rate, size)
    elif source[0] == "G" and destination[0] in "CBN" and executor[1:] == source[1:]:
        yield _told(f"device_to_host_memcpy_{kind}", 0, int(match[4]), rate, size)
