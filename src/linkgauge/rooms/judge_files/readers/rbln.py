"""Reads rblnBandwidthLatencyTest: the devices with their switches, and the matrix of bandwidths
from each row to each column, the host first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..lines import number_of
from ..told import MIB, Bridge, Facts, Found, Log, ToldFigure, ToldGpu

_TOOL = "rblnBandwidthLatencyTest"
_DEVICE = re.compile(
    r"\s*([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) NODE \d+, rbln(\d{1,3}), "
    r"([^,(]{2,40}).*?NUMA: (\d{1,2})"
)
_BRIDGE = re.compile(r"\s*(?:\S{6,14}/)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) PCI bridge:")
_TITLE = re.compile(r"\s*Device (Write|Read) bandwidth \(GB/s\)")
_SIZE = re.compile(r"\s*\[Measure Buffer Size : 0x([0-9a-fA-F]{1,12})\]")


def read(lines: Sequence[str]) -> Found | None:
    if not any("rbln" in line or "RBLN_PERF" in line for line in lines):
        return None
    gpus, bridges, used = _devices(lines)
    figures, title, columns = list[ToldFigure](), "", list[int | None]()
    sizes = (int(match[1], 16) for line in lines if (match := _SIZE.match(line)))
    size = next(filter(None, sizes), 512 * MIB)
    for number, line in enumerate(lines):
        words = line.split()
        if match := _TITLE.match(line):
            title, columns = match[1], []
        elif words[:1] == ["S"] and "HOST" in words:
            columns = [_index(word) for word in words if word == "HOST" or word.startswith("rbln")]
        elif words and columns and (words[0] == "HOST" or words[0].startswith("rbln")):
            figures += _row(_index(words[0]), columns, words[1:], title == "Read", size)
        else:
            continue
        used.add(number)
    if not gpus and not figures:
        return None
    facts = Facts(gpus=gpus, bridges=bridges)
    return Found((Log(_TOOL, tuple(figures), space="rbln"),), facts, frozenset(used))


def _devices(lines: Sequence[str]) -> tuple[dict[int, ToldGpu], dict[str, Bridge], set[int]]:
    """The devices, which are listed below their switches; the switches; and the lines of both."""
    gpus, bridges, used, above = dict[int, ToldGpu](), dict[str, Bridge](), set[int](), ""
    for number, line in enumerate(lines):
        if match := _BRIDGE.match(line):
            above = f"0000:{match[1]}"
            bridges[above] = Bridge(is_switch=True)
            used.add(number)
        elif match := _DEVICE.match(line):
            over = (above,) if above else ()
            gpus[int(match[2])] = ToldGpu(match[3].strip(), match[1], int(match[4]), above=over)
            used.add(number)
    return gpus, bridges, used


def _index(word: str) -> int | None:
    """The number of a device such as `rbln3`; None for the host."""
    digits = word.removeprefix("rbln")
    return int(digits) if digits.isdecimal() and len(digits) < 4 else None


def _row(
    row: int | None, columns: Sequence[int | None], words: Sequence[str], reads: bool, size: int
) -> Iterator[ToldFigure]:
    for column, word in zip(columns, words, strict=False):
        rate = number_of(word)
        if not rate or row == column:
            continue
        if row is None:
            name, down, across = "host_to_device_memcpy_ce", 0, column
        elif column is None:
            name, down, across = "device_to_host_memcpy_ce", 0, row
        elif reads:  # the column's device pulls from the row's
            name, down, across = "device_to_device_memcpy_read_ce", column, row
        else:
            name, down, across = "device_to_device_memcpy_write_ce", row, column
        yield ToldFigure(name, str(down), str(across), rate * 1e9, size)
