"""Draws charts as SVG, by vl-convert in a separate process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import Self

import msgspec

from linkgauge.machine.processes.process import Process, ProcessLost
from linkgauge.model.errors import LinkgaugeError
from linkgauge.model.printable import all_printable
from linkgauge.report import chart_specs
from linkgauge.report.blocks import ChartFigure
from linkgauge.report.chart_specs import Spec

PACKAGE = "vl_convert"
DEADLINE_SECONDS = 60.0
"""Seconds for all pictures of a report together."""
_LETTER, _GAP = 6.4, 44


class Drawer:
    """Draws charts. `draw` returns None for a chart that it cannot draw; `missing` then says why.
    Loads the libraries (half a second) at once if `early` is true, else when it first draws."""

    def __init__(self, *, early: bool = True) -> None:
        self.missing: str | None = None
        self._process: Process | None = None
        if find_spec(PACKAGE) is None:
            self.missing = (
                "Tables stand in place of charts: vl-convert is not installed (the extra `report`)."
            )
        elif early:
            self._start()

    def _start(self) -> None:
        self._process = Process(f"{__package__}.svg_process", session=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self._process.kill()

    def draw(self, figures: Sequence[ChartFigure]) -> list[str | None]:
        if figures and self._process is None and self.missing is None:
            self._start()
        deadline = time.monotonic() + DEADLINE_SECONDS
        found: list[str | None] = []
        specs = map(_written, figures if self._process is not None else ())
        spec = next(specs, None)
        with suppress(ProcessLost):
            while self._process is not None and spec is not None:
                self._process.ask(spec)
                spec = next(specs, None)
                found.append(self._answer(self._process, figures[len(found)].says, deadline))
        if self._process is not None and len(found) < len(figures):
            self.missing = "Tables stand in place of charts: vl-convert ended early."
        return found + [None] * (len(figures) - len(found))

    def _answer(self, process: Process, says: str, deadline: float) -> str | None:
        from .svg import cleaned

        try:
            return cleaned(process.answer(str, lambda: deadline - time.monotonic()), says)
        except ProcessLost:
            raise
        except LinkgaugeError:
            return None


def _written(figure: ChartFigure) -> str:
    return msgspec.json.encode(all_printable(spec_of(figure))).decode()


def _columns(figure: ChartFigure) -> int:
    widest = max((len(str(row.get("series", ""))) for row in figure.rows), default=0)
    return max(1, min(4, int(chart_specs.WIDTH / (_LETTER * widest + _GAP))))


def spec_of(figure: ChartFigure) -> Spec:
    legend = {**chart_specs.LOOK["legend"], "columns": _columns(figure)}
    look = {**chart_specs.LOOK, "legend": legend}
    return {**figure.spec, "config": look, "data": {"values": figure.rows}}
