"""Reads AMD's TransferBench: the matrices of its presets p2p and a2a, and the tests of a file, line
by line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import permutations

from ..lines import DECIMAL, number_of, words_of
from ..told import MIB, Found, TextScan, ToldFigure, copied

_VERSION = re.compile(r"\s*TransferBench v(\S{1,20})")
_TITLE = re.compile(
    r"\s*(Unidirectional|Bidirectional) copy peak bandwidth GB/s \[.{1,40}\]"
    r" \(GPU-Executor: (\w{1,8})\)"
)
_SIZE = re.compile(r"(?:Bytes Per Direction (\d{1,13})|\[(\d{1,13}) bytes per Transfer\])")
_ALL = re.compile(r"\s*GPU-(GFX|DMA) All-To-All benchmark")
_ONE = re.compile(
    rf"\s*Transfer\s+\d+\s.*?({DECIMAL}) GB/s"
    r".*?(\d{1,14}) bytes.*?\s([A-Z])(\d{1,3})\s*->\s*"
    r"([A-Z])(\d{1,3})(?:[.:]\S{1,12})?\s*->\s*([A-Z])(\d{1,3})\s*$"
)
_RULES = re.compile("[┌┬┐├┼┤└┴┘│─|+-]+")
_TIMED = re.compile(r"\s*Aggregate bandwidth \(CPU Timed\): +(\d{1,9}\.\d{1,9}) GB/s")
_IN_GRID = re.compile(r"=*$|\[\d+ bytes per|SRC.DST|RTotal|CPU Timed|Average|Aggregate")
_COPIES = "[1 Read(s) 1 Write(s)]"
_KIND = {"GFX": "sm", "DMA": "ce"}


def read(lines: Sequence[str]) -> Found | None:
    if not any(_VERSION.match(line) or _TITLE.match(line) or _ALL.match(line) for line in lines):
        return None
    seen, size = TextScan(lines), 256 * MIB
    for number, line in enumerate(lines):
        if match := _SIZE.search(line):
            size = int(match[1] or match[2])
            seen.used.add(number)
        if title := _TITLE.match(line):
            kind, both = _KIND.get(title[2], "sm"), title[1] == "Bidirectional"
            seen.used.add(number)
            seen.figures += _matrix(seen, number + 1, kind, size, both)
        elif title := _ALL.match(line):
            said = " ".join(lines[max(number - 30, 0) : number + 4])
            way = "read" if "Using DST as executor" in said else "write"
            name = f"all_to_all_{way}_{_KIND[title[1]]}" if _COPIES in said else ""
            size = next((int(m[2]) for m in _SIZE.finditer(said) if m[2]), size)
            seen.used.add(number)
            seen.figures += _all_to_all(seen, number + 1, name, size)
        elif match := _ONE.match(line.replace("│", " ").replace("|", " ")):
            seen.figures += _single(match)
            seen.used.add(number)
    return seen.log("TransferBench", seen.first(_VERSION))


def _matrix(seen: TextScan, start: int, kind: str, size: int, both: bool) -> Iterator[ToldFigure]:
    """Reads a matrix of the preset p2p. Rows are `GPU 00 -> …`. Rows for both ways are also `<-`
    and `<->`; the last one is the total."""
    names = list[str]()
    for number, line in enumerate(seen.lines[start : start + 400], start):
        if "\\DST" in line:
            names = re.findall(r"[CG]PU \d{1,3}", line)
        elif match := re.match(r"\s*([CG]PU \d{1,3})\s+(->|<-|<->)\s(.*)", line):
            if match[2] == ("<->" if both else "->"):
                rates = [number_of(word) for word in match[3].split()]
                yield from _of_row(match[1], names, rates, kind, size, both)
        elif line.strip() and not re.match(r"\s*(?:[CG]PU->|Averages)", line):
            break
        seen.used.add(number)


def _of_row(
    row: str, names: Sequence[str], rates: Sequence[float | None], kind: str, size: int, both: bool
) -> Iterator[ToldFigure]:
    for column, rate in zip(names, rates, strict=False):
        ends = [int(name[4:]) if name[0] == "G" else None for name in (row, column)]
        source, destination = ends
        is_far = destination is None and (both or int(column[4:]) > 0)
        is_odd = source == destination and (both or kind != "ce")
        if rate is not None and source is not None and not is_far and not is_odd:
            yield copied(source, destination, rate, size, kind, both=both)


def _all_to_all(seen: TextScan, start: int, name: str, size: int) -> Iterator[ToldFigure]:
    """Yields the rate of each pair while all pairs copy, and the total rate by the CPU's clock.
    Yields nothing if figures are missing, or if copies within devices ran too (no `name`)."""
    rates, total, count = list[float](), 0.0, 0
    for number, line in enumerate(seen.lines[start : start + 199], start):
        words = words_of(line)
        if words[:1] == ["GPU"]:
            count += 1
            rates += [rate for word in words[2:-2] if (rate := number_of(word))]
        elif match := _TIMED.match(line):
            total = float(match[1])
        elif not _IN_GRID.match(_RULES.sub("", line).strip()):
            break
        seen.used.add(number)
    if not name or not total or len(rates) != count * (count - 1):
        return
    whole = ToldFigure(name, "0", "0", total * 1e9, size, ranks=count)
    yield whole
    for (source, destination), rate in zip(permutations(range(count), 2), rates, strict=True):
        own, other = (destination, source) if "read" in name else (source, destination)
        # The row's transfers go round from each device: to the next one first.
        part = own * (count - 1) + (other - own - 1) % count
        yield whole._replace(figure=rate * 1e9, part=part)


def _single(match: re.Match[str]) -> Iterator[ToldFigure]:
    """Returns the transfer of a test: from one memory by an executor to another memory."""
    kind, owner = {"G": "sm", "D": "ce"}.get(match[5]), int(match[6])
    source, destination = (int(match[n + 1]) if match[n] == "G" else None for n in (3, 7))
    is_known = {match[3], match[7]} <= {*"CBNG"} and owner in (source, destination)
    if kind and is_known and source != destination and (size := int(match[2])):
        reads = destination == owner
        yield copied(source, destination, float(match[1]), size, kind, reads=reads)
