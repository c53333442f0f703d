"""Makes the report's charts for notebooks. Each function takes rows (a list of dicts, a data frame,
or anything else that altair takes) and returns an altair chart.

Rows of curves have `x`, `y`, `series` and optionally `says`, a remark on a point. Bandwidth is in
GB/s, times in the unit that the title names, sizes in bytes.

    from linkgauge.report import charts
    charts.on_paper()
    charts.cdf([{"x": 1.2, "y": 0.5, "series": "0 -> 1"}], "time (µs)")"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from linkgauge.machine.extras import needed

from . import chart_specs
from .chart_specs import PAPER, Spec

if TYPE_CHECKING:
    import altair as alt

EXTRA = "report"
Rows = Any
"""The data of a chart: a sequence of dicts, a data frame, or anything else that altair takes."""


def on_paper() -> None:
    """Makes notebooks show charts as SVG on white, drawn by vl-convert. Such charts need no script,
    wherever the notebook is shown. Raises MissingPackage without altair or vl-convert."""
    alt = _altair()
    needed("vl_convert", EXTRA)
    alt.theme.register("linkgauge", enable=True)(lambda: alt.theme.ThemeConfig(config=PAPER))
    alt.renderers.enable("svg")


def titled(chart: alt.LayerChart, title: str, *, simulated: bool) -> alt.LayerChart:
    """Returns the chart with a title above. The title has the word SIMULATED if the figures are
    simulated."""
    under = {"subtitle": "SIMULATED"} if simulated else {}
    made: alt.LayerChart = chart.properties(
        title=_altair().TitleParams(title, anchor="start", subtitleColor="#a0379e", **under)
    )
    return made


def sizes(rows: Rows, y: str, *, log: bool = False, marks: Sequence[float] = ()) -> alt.LayerChart:
    """Makes a chart of `y` against the size in bytes, on a logarithmic axis with labels at
    `marks`."""
    return _chart(chart_specs.sizes(y, log=log, marks=marks), rows)


def counts(rows: Rows, x: str, y: str) -> alt.LayerChart:
    """Makes a chart of `y` against the number of copies, threads or devices that work at the same
    time."""
    return _chart(chart_specs.counts(x, y), rows)


def cdf(rows: Rows, x: str) -> alt.LayerChart:
    """Makes a chart of a cumulative distribution: the share of samples (`y`, 0 to 1) that take at
    most the time `x`."""
    return _chart(chart_specs.cdf(x), rows)


def over_time(rows: Rows, y: str, x: str = chart_specs.OVER_TIME) -> alt.LayerChart:
    """Makes a chart of `y` over seconds of sampling, or over another quantity that `x` names."""
    return _chart(chart_specs.over_time(y, x), rows)


def levels(rows: Rows, plateaus: Rows, y: str, *, marks: Sequence[float] = ()) -> alt.LayerChart:
    """Makes a chart of latency against size. Each plateau is a line from `x` to `x2` at `y`."""
    return _chart(chart_specs.levels((), y, marks=marks), rows, plateaus)


def scaling(rows: Rows, knee: Rows) -> alt.LayerChart:
    """Makes a chart of bus bandwidth against the number of devices, with a line where the curve
    bends."""
    return _chart(chart_specs.scaling(()), rows, knee)


def bars(rows: Rows, x: str) -> alt.LayerChart:
    """Makes a bar chart. Each `series` has a bar from 0 to `x`, and its interval from `low` to
    `high`. A bar is grey if it differs from the first bar only by noise. A bar without an interval
    is pale."""
    return _chart(chart_specs.bars(x), rows)


def _altair() -> Any:
    return needed("altair", "analysis")


def _chart(spec: Spec, rows: Rows, beside: Rows = ()) -> alt.LayerChart:
    """Returns the chart with its rows. `beside` are the rows of layers with rows of their own."""
    altair = _altair()
    layers = [altair.Chart.from_dict(layer, validate=False) for layer in spec["layer"]]
    for layer, of in zip(layers, spec["layer"], strict=True):
        if "data" in of:
            layer.data = _data(beside)
    made: alt.LayerChart = altair.layer(*layers, data=_data(rows))
    made.width, made.height = spec["width"], spec["height"]
    return made


def _data(rows: Rows) -> Any:
    return _altair().Data(values=list(rows)) if isinstance(rows, (list, tuple)) else rows
