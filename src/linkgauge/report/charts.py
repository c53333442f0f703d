"""Draws the report's charts in notebooks, with altair. Functions take rows (dicts, a data frame, or
other data that altair accepts) with `x`, `y`, `series` and, for remarks on points, `says`.
Bandwidth is in GB/s, time in the unit that the title names, size in bytes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from linkgauge.machine.extras import needed

from . import chart_specs
from .chart_specs import PAPER, Spec

if TYPE_CHECKING:
    import altair as alt

EXTRA = "report"
Rows = Any
"""A sequence of dicts, a data frame, or anything else that altair takes."""


def on_paper() -> None:
    """Makes charts appear as SVG on white, without scripts. Raises MissingPackage."""
    alt = _altair()
    needed("vl_convert", EXTRA)
    alt.theme.register("linkgauge", enable=True)(lambda: alt.theme.ThemeConfig(config=PAPER))
    alt.renderers.enable("svg")


def titled(chart: alt.LayerChart, title: str, *, simulated: bool) -> alt.LayerChart:
    under = {"subtitle": "SIMULATED"} if simulated else {}
    made: alt.LayerChart = chart.properties(
        title=_altair().TitleParams(title, anchor="start", subtitleColor="#a0379e", **under)
    )
    return made


def _drawn(define: Callable[..., Spec]) -> Callable[..., alt.LayerChart]:
    @wraps(define)
    def chart(rows: Rows, *of: Any, **how: Any) -> alt.LayerChart:
        altair, spec = _altair(), define(*of, **how)
        layers = [altair.Chart.from_dict(layer, validate=False) for layer in spec["layer"]]
        for layer, own in zip(layers, spec["layer"], strict=True):
            if "data" in own:
                layer.data = _data(own["data"]["values"])
        made: alt.LayerChart = altair.layer(*layers, data=_data(rows))
        made.width, made.height = spec["width"], spec["height"]
        return made

    return chart


def _data(rows: Rows) -> Any:
    return _altair().Data(values=list(rows)) if isinstance(rows, (list, tuple)) else rows


_ALL: tuple[Callable[..., Spec], ...] = (
    chart_specs.sizes, chart_specs.counts, chart_specs.cdf, chart_specs.over_time,
    chart_specs.levels, chart_specs.scaling, chart_specs.bars,
)  # fmt: skip
sizes, counts, cdf, over_time, levels, scaling, bars = map(_drawn, _ALL)
"""Each takes the rows first, and then what the chart of that name takes in `chart_specs`."""


def _altair() -> Any:
    return needed("altair", "analysis")
