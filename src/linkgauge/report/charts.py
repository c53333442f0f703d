"""Defines the report's charts, also for notebooks. Each function takes rows (a list of dicts, a
data frame, or altair's named data) and returns an altair chart.

Rows of curves have `x`, `y`, `series` and optionally `says`, a remark on a point. Bandwidth is in
GB/s, times in the unit that the title names, sizes in bytes.

    from linkgauge.report import charts
    charts.on_paper()
    charts.cdf([{"x": 1.2, "y": 0.5, "series": "0 -> 1"}], "time (µs)")"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from linkgauge.machine.extras import needed

if TYPE_CHECKING:
    import altair as alt

EXTRA = "report"
WIDTH, HEIGHT = 640, 260
COLOURS = ("#3b78d8", "#d9730d", "#1a9a8a", "#9a5fd6", "#d64545", "#9c6b4e", "#cf5c9c", "#7d8f1f")
"""The colours of curves. Each has a contrast of at least 3:1 with white and with black."""
SIZES = (
    "datum.value >= 1073741824 ? datum.value / 1073741824 + ' GiB' : datum.value >= 1048576 ? "
    "datum.value / 1048576 + ' MiB' : datum.value >= 1024 ? datum.value / 1024 + ' KiB' : "
    "datum.value + ' B'"
)
"""The expression with which a chart's axis shows bytes."""
_GREY = "#808080"


def _look(font: str, text: str) -> dict[str, Any]:
    return {
        "background": None,
        "font": font,
        "padding": 6,
        "view": {"stroke": None},
        "axis": {
            "labelColor": text, "titleColor": text, "titleFontWeight": 500, "titlePadding": 10,
            "labelFontSize": 12, "titleFontSize": 12, "gridColor": _GREY, "gridOpacity": 0.22,
            "domainColor": _GREY, "tickColor": _GREY,
        },
        "legend": {"labelColor": text, "labelFontSize": 12, "titleColor": text, "columns": 4},
        "line": {"strokeWidth": 2},
        "text": {"color": text},
    }  # fmt: skip


LOOK = _look("system-ui, sans-serif", "currentColor")
"""The look of a chart inside a page, with the page's own text colour, light or dark."""
PAPER = {**_look("Liberation Sans, Arial, sans-serif", "#22262c"), "background": "white"}
"""The look of a chart that stands alone. vl-convert brings the font, so that it looks the same
everywhere."""

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
    alt = _altair()
    axis = alt.Axis(
        title="size", labelExpr=SIZES, labelOverlap=True, values=list(marks) or alt.Undefined
    )
    x = alt.X("x:Q", scale=alt.Scale(type="log", base=2, nice=False), axis=axis)
    return _curves(rows, x, _y(y, log=log))


def counts(rows: Rows, x: str, y: str) -> alt.LayerChart:
    """Makes a chart of `y` against the number of copies, threads or devices that work at the same
    time."""
    alt = _altair()
    across = alt.X(
        "x:Q", title=x, axis=alt.Axis(tickMinStep=1, format="d"), scale=alt.Scale(nice=False)
    )
    return _curves(rows, across, _y(y, zero=True))


def cdf(rows: Rows, x: str) -> alt.LayerChart:
    """Makes a chart of a cumulative distribution: the share of samples (`y`, 0 to 1) that take at
    most the time `x`."""
    alt = _altair()
    across = alt.X("x:Q", title=x, scale=alt.Scale(type="log", nice=False, zero=False),
                   axis=alt.Axis(labelOverlap=True, tickCount=8))  # fmt: skip
    up = alt.Y(
        "y:Q",
        title="samples up to there",
        axis=alt.Axis(format="%"),
        scale=alt.Scale(domain=[0, 1]),
    )
    return _curves(rows, across, up, interpolate="step-after")


def over_time(
    rows: Rows, y: str, x: str = "seconds of sampling, in the order of the benchmarks"
) -> alt.LayerChart:
    """Makes a chart of `y` over seconds of sampling, or over another quantity that `x` names."""
    alt = _altair()
    across = alt.X("x:Q", title=x, scale=alt.Scale(nice=False))
    return _curves(rows, across, _y(y), interpolate="step-after", strokeWidth=1.5)


def levels(rows: Rows, plateaus: Rows, y: str, *, marks: Sequence[float] = ()) -> alt.LayerChart:
    """Makes a chart of latency against size. Each plateau is a line from `x` to `x2` at `y`."""
    curve = sizes(rows, y, log=True, marks=marks)
    flat = (
        _chart(plateaus)
        .mark_rule(strokeWidth=7, opacity=0.3, strokeCap="round")
        .encode(x="x:Q", x2="x2:Q", y="y:Q", color=_colour(), description="says:N")
    )
    return _layer(flat, curve)


def scaling(rows: Rows, knee: Rows) -> alt.LayerChart:
    """Makes a chart of bus bandwidth against the number of devices, with a line where the curve
    bends."""
    alt = _altair()
    curve = counts(rows, "devices", "bus bandwidth (GB/s)")
    rule = (
        _chart(knee).mark_rule(strokeDash=[5, 4], color=COLOURS[4], strokeWidth=2).encode(x="x:Q")
    )
    word = (
        _chart(knee)
        .mark_text(align="right", dx=-6, baseline="top", color=COLOURS[4], fontWeight="bold")
        .encode(x="x:Q", y=alt.value(4), text="says:N")
    )
    return _layer(curve, rule, word)


def bars(rows: Rows, x: str) -> alt.LayerChart:
    """Makes a bar chart. Each `series` has a bar from 0 to `x`, and its interval from `low` to
    `high`. A bar is grey if it differs from the first bar only by noise. A bar without an interval
    is pale."""
    alt = _altair()
    y = alt.Y("series:N", sort=None, title=None, axis=alt.Axis(labelLimit=220))
    legend = alt.Legend(title=None, orient="bottom", columns=5)
    colour = alt.Color("kind:N", legend=legend, scale=alt.Scale(
        domain=["baseline", "better", "worse", "noise", "not proven"],
        range=[COLOURS[0], COLOURS[2], COLOURS[4], "#8a8f98", "#c9b98a"]))  # fmt: skip
    base = _chart(rows).properties(height=alt.Step(26)).encode(y=y)
    bar = base.mark_bar(size=16, opacity=0.85).encode(
        x=alt.X("x:Q", title=x, scale=alt.Scale(zero=True)), color=colour, description="says:N"
    )
    interval = base.mark_rule(strokeWidth=2, color="currentColor").encode(x="low:Q", x2="high:Q")
    return _layer(bar, interval)


def _altair() -> Any:
    return needed("altair", EXTRA)


def _layer(*charts: Any) -> alt.LayerChart:
    made: alt.LayerChart = _altair().layer(*charts)
    return made


def _chart(rows: Rows) -> Any:
    alt = _altair()
    data = alt.Data(values=list(rows)) if isinstance(rows, (list, tuple)) else rows
    return alt.Chart(data).properties(width=WIDTH, height=HEIGHT)


def _curves(rows: Rows, x: Any, y: Any, **line: object) -> alt.LayerChart:
    """Makes a chart with a line for each series, and a point wherever a row has a remark."""
    base = _chart(rows).encode(x=x, y=y, color=_colour())
    shape = _altair().Shape("series:N", sort=None, legend=None)
    points = base.transform_filter("isValid(datum.says)").mark_point(
        filled=True, size=42, opacity=1
    )
    says = _altair().Description("says:N")
    return _layer(base.mark_line(**line), points.encode(shape=shape, description=says))


def _colour() -> Any:
    alt = _altair()
    legend = alt.Legend(title=None, orient="bottom", columnPadding=28, rowPadding=4,
                        labelLimit=WIDTH // 2, symbolOpacity=1, symbolType="circle")  # fmt: skip
    return alt.Color("series:N", sort=None, legend=legend, scale=alt.Scale(range=list(COLOURS)))


def _y(title: str, *, log: bool = False, zero: bool = False) -> Any:
    alt = _altair()
    scale = alt.Scale(type="log") if log else alt.Scale(zero=zero)
    return alt.Y("y:Q", title=title, scale=scale, axis=alt.Axis(tickCount=6, labelOverlap=True))
