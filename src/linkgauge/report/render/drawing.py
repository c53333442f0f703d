"""Pictures of charts: altair defines them here, vl-convert draws them in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from threading import Thread
from typing import IO, Any, Self, cast

from linkgauge.model.printable import all_printable
from linkgauge.report import charts
from linkgauge.report.blocks import Figure

from .svg import cleaned

PACKAGES = ("altair", "vl_convert")
PATIENCE = 60.0
"""Seconds that pictures of a report may take together."""
_ROWS = "rows"
_LETTER, _GAP = 6.4, 44
"""Pixels of a letter in a legend, and of what stands between two names."""


class Drawer:
    """Draws charts as long as it is entered; what cannot be drawn is None, with the reason in
    `missing`. Begins to load what it needs as it is made."""

    def __init__(self) -> None:
        lacking = [name.replace("_", "-") for name in PACKAGES if find_spec(name) is None]
        self.missing: str | None = None
        self._process: subprocess.Popen[str] | None = None
        if lacking:
            has = "is" if len(lacking) == 1 else "are"
            self.missing = (
                f"Tables stand in place of charts: {' and '.join(lacking)} {has} not installed "
                "(the extra `report`)."
            )
            return
        self._process = subprocess.Popen(  # noqa: S603  # this Python, and a module of linkgauge
            [sys.executable, "-P", "-m", f"{__package__}.svg_process"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, encoding="utf-8", errors="replace", start_new_session=True,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is None:
            return
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                cast("IO[str]", pipe).close()
        self._process.wait()

    def draw(self, figures: Sequence[Figure]) -> list[str | None]:
        """A picture of each."""
        if self._process is None or not figures:
            return [None] * len(figures)
        pipes = cast("tuple[IO[str], IO[str]]", (self._process.stdin, self._process.stdout))
        read: list[str] = []
        reader = Thread(target=lambda: read.extend(pipes[1]), daemon=True)
        reader.start()  # else both could wait for each other with full pipes
        with suppress(OSError):
            for figure in figures:
                pipes[0].write(json.dumps(all_printable(spec_of(figure))) + "\n")
                pipes[0].flush()
            pipes[0].close()
        reader.join(PATIENCE)
        answers = [json.loads(line) for line in read[: len(figures)]]
        if len(answers) < len(figures):
            self.missing = "Tables stand in place of charts: vl-convert ended early."
            answers += [{}] * (len(figures) - len(answers))
        found = zip(figures, answers, strict=True)
        return [cleaned(one["svg"], figure.says) if "svg" in one else None for figure, one in found]


def _columns(figure: Figure) -> int:
    """As many names of series as the chart is wide for stand side by side below it."""
    widest = max((len(str(row.get("series", ""))) for row in figure.rows), default=0)
    return max(1, min(4, int(charts.WIDTH / (_LETTER * widest + _GAP))))


def spec_of(figure: Figure) -> dict[str, Any]:
    """The chart in Vega-Lite. Its rows are added last: altair would look at each of them."""
    import altair as alt

    chart = figure.draw(alt.NamedData(name=_ROWS))
    spec = chart.to_dict(validate=False)
    legend = {**charts.LOOK["legend"], "columns": _columns(figure)}
    spec["config"] = {**charts.LOOK, "legend": legend}
    spec.setdefault("datasets", {})[_ROWS] = [dict(row) for row in figure.rows]
    return spec
