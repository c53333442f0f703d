"""Makes readers of tools that print one rate per line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from .facts import HostFigure, ReportedFigure
from .lines import number_of, scale_of
from .scan import Reader, TextScan


def rates(
    tool: str,
    name: str,
    column: str,
    cell: Callable[[Mapping[str, str]], HostFigure],
    *patterns: str,
    rate: str = "rate",
    row: str = "all",
    **usual: str,
) -> Reader:
    """Returns a reader of matching lines. `name` and `column` may hold named groups in braces. A
    rate is in `unit` (`Mi`: 2^20 bytes/s), a size in `element` bytes times `prefix`."""

    def read(seen: TextScan) -> None:
        of, said = Counter[str](), dict[str, str]()
        for said in seen.rows(*patterns, **{"unit": "", "prefix": "", "element": "1", **usual}):
            figure, own = number_of(said.get(rate, "")), name.format(**said).lower()
            size = int(int(said["size"]) * scale_of(said["prefix"])) * int(said["element"])
            if figure is not None and size:
                place = row, column.format(**said, number=of[own])
                figure *= scale_of(said["unit"])
                seen.figures.append(ReportedFigure(own, *place, figure, size, host=cell(said)))
                of[own] += 1
        seen.log(tool, said.get("version"))

    return read
