"""Reads AMD's rocm-bandwidth-test: matrices over CPUs and GPUs, which it numbers together, the CPUs
first. Its bidirectional figure is the rate of both ways together. Within a device it counts the
bytes read and written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ..lines import Grid
from ..told import MIB, Found, TextScan, ToldFigure, ToldGpu, copied

SIZE = 128 * MIB
_VERSION = re.compile(r"\s*RocmBandwidthTest Version: (\S{1,40})")
_DEVICE = re.compile(
    r"\s*Device: (\d{1,3}),\s+([^,]{1,100}?)(?:,\s+(?:\S{4,60},\s+)?"
    r"([0-9a-f]{1,4}:[0-9a-f]{1,2}(?:\.[0-9a-f])?))?\s*$"
)
_TITLE = re.compile(r"\s*(Unidirectional|Bi?directional) copy peak bandwidth GB/s\s*$")
_OTHER = re.compile(
    r"\s*(?:(?:Inter-)?Device (?:Access|Numa Distance)|Launch Command|\.{4,}"
    r"|Data (?:path|verification))"
)


def read(lines: Sequence[str]) -> Found | None:
    seen, names, titles = TextScan(lines), dict[int, str](), dict[int, bool]()
    for number, match in seen.each(_VERSION, _TITLE, _DEVICE, _OTHER):
        if match.re is _TITLE:
            titles[number] = match[1].startswith("B")
        elif match.re is _DEVICE:
            names[int(match[1])] = match[2].strip()
            if match[3]:
                seen.gpus[int(match[1])] = ToldGpu(match[2].strip(), _address(match[3]))
        elif match.re is _OTHER:
            seen.grid(number + 1)
            seen.used.add(number)
    version = seen.first(_VERSION)
    if not version and not titles:
        return None
    place = {index: at for at, index in enumerate(sorted(seen.gpus))}
    for number, both in titles.items():
        seen.figures += _figures(seen.grid(number + 1), place, both)
    cpu = next((name for index, name in names.items() if index not in place), None)
    seen.gpus = {place[index]: gpu for index, gpu in seen.gpus.items()}
    return seen.log("rocm-bandwidth-test", version, cpu_model=cpu)


def _address(text: str) -> str:
    """Returns the PCI address for a text such as `0c:0.0`: bus, device and function."""
    bus, _, rest = text.partition(":")
    device, _, function = rest.rpartition(".") if "." in rest else (rest, "", "0")
    return (
        f"0000:{int(bus, 16) & 255:02x}:{int(device or '0', 16) & 31:02x}.{int(function, 16) & 7}"
    )


def _figures(grid: Grid, place: Mapping[int, int], both: bool) -> Iterator[ToldFigure]:
    """Yields the figures of pairs of GPUs, and the best figure of each GPU with a CPU. The matrix
    does not say which CPU is near."""
    best = dict[tuple[int | None, int | None], float]()
    for (down, across), figure in grid.items():
        source, destination = place.get(down), place.get(across)
        is_twice = both and (source == destination or destination is None)
        if figure is not None and not is_twice and (source, destination) != (None, None):
            best[source, destination] = max(best.get((source, destination), 0.0), figure)
    for ends, figure in best.items():
        yield copied(*ends, figure / (2 if len({*ends}) == 1 else 1), SIZE, both=both)
