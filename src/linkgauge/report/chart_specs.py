"""Defines the report's charts in Vega-Lite, without altair, which takes long to load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

WIDTH, HEIGHT = 640, 260
COLOURS = ("#3b78d8", "#d9730d", "#1a9a8a", "#9a5fd6", "#d64545", "#9c6b4e", "#cf5c9c", "#7d8f1f")
"""Each has a contrast of at least 3:1 with white and with black."""
SIZES = (
    "datum.value >= 1073741824 ? datum.value / 1073741824 + ' GiB' : datum.value >= 1048576 ? "
    "datum.value / 1048576 + ' MiB' : datum.value >= 1024 ? datum.value / 1024 + ' KiB' : "
    "datum.value + ' B'"
)
OVER_TIME = "seconds of sampling, in the order of the benchmarks"
_GREY = "#808080"
Spec = dict[str, Any]
Marks = Sequence[Mapping[str, object]]


def _look(font: str, text: str) -> Spec:
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
"""In the page's own text colour, light or dark."""
PAPER = {**_look("Liberation Sans, Arial, sans-serif", "#22262c"), "background": "white"}
"""vl-convert brings the font, so that it looks the same everywhere."""


def sizes(y: str, *, log: bool = False, marks: Sequence[float] = ()) -> Spec:
    axis = {"title": "size", "labelExpr": SIZES, "labelOverlap": True}
    scale = {"type": "log", "base": 2, "nice": False}
    x = _numbers("x", axis={**axis, "values": list(marks)} if marks else axis, scale=scale)
    return _sized(_curves(x, _y(y, log=log)))


def counts(x: str, y: str) -> Spec:
    axis = {"tickMinStep": 1, "format": "d"}
    across = _numbers("x", title=x, axis=axis, scale={"nice": False})
    return _sized(_curves(across, _y(y, zero=True)))


def cdf(x: str) -> Spec:
    scale = {"type": "log", "nice": False, "zero": False}
    across = _numbers("x", title=x, scale=scale, axis={"labelOverlap": True, "tickCount": 8})
    up = _numbers("y", title="samples up to there", axis={"format": "%"}, scale={"domain": [0, 1]})
    return _sized(_curves(across, up, interpolate="step-after"))


def over_time(y: str, x: str = OVER_TIME) -> Spec:
    across = _numbers("x", title=x, scale={"nice": False})
    return _sized(_curves(across, _y(y), interpolate="step-after", strokeWidth=1.5))


def levels(plateaus: Marks, y: str, *, marks: Sequence[float] = ()) -> Spec:
    ends = {"x": _numbers("x"), "x2": {"field": "x2"}, "y": _numbers("y")}
    flat = {
        "data": {"values": plateaus},
        "mark": {"type": "rule", "strokeWidth": 7, "opacity": 0.3, "strokeCap": "round"},
        "encoding": {**ends, "color": _colour(), "description": _names("says")},
    }
    return _sized({"layer": [flat, *sizes(y, log=True, marks=marks)["layer"]]})


def scaling(knee: Marks) -> Spec:
    curve = counts("devices", "bus bandwidth (GB/s)")["layer"]
    rule = {"type": "rule", "strokeDash": [5, 4], "color": COLOURS[4], "strokeWidth": 2}
    word = {"type": "text", "align": "right", "dx": -6, "baseline": "top", "color": COLOURS[4]}
    at, data = {"x": _numbers("x")}, {"values": knee}
    says = {"mark": {**word, "fontWeight": "bold"}, "data": data}
    says["encoding"] = {**at, "y": {"value": 4}, "text": _names("says")}
    return _sized({"layer": [*curve, {"mark": rule, "data": data, "encoding": at}, says]})


def bars(x: str) -> Spec:
    kinds = ["baseline", "better", "worse", "noise", "not proven"]
    shown = [COLOURS[0], COLOURS[2], COLOURS[4], "#8a8f98", "#c9b98a"]
    legend = {"title": None, "orient": "bottom", "columns": 5}
    colour = _names("kind", legend=legend, scale={"domain": kinds, "range": shown})
    y = _names("series", sort=None, title=None, axis={"labelLimit": 220})
    end = _numbers("x", title=x, scale={"zero": True})
    bar = {
        "mark": {"type": "bar", "size": 16, "opacity": 0.85},
        "encoding": {"x": end, "y": y, "color": colour, "description": _names("says")},
    }
    interval = {
        "mark": {"type": "rule", "strokeWidth": 2, "color": "currentColor"},
        "encoding": {"x": _numbers("low"), "x2": {"field": "high"}, "y": y},
    }
    return _sized({"layer": [bar, interval]}, {"step": 26})


def _sized(spec: Spec, height: object = HEIGHT) -> Spec:
    return {**spec, "width": WIDTH, "height": height}


def _numbers(field: str, **how: object) -> Spec:
    return {"field": field, "type": "quantitative", **how}


def _names(field: str, **how: object) -> Spec:
    return {"field": field, "type": "nominal", **how}


def _curves(x: Spec, y: Spec, **line: object) -> Spec:
    ends = {"x": x, "y": y, "color": _colour()}
    shape, says = _names("series", sort=None, legend=None), _names("says")
    points = {
        "transform": [{"filter": "isValid(datum.says)"}],
        "mark": {"type": "point", "filled": True, "size": 42, "opacity": 1},
        "encoding": {**ends, "shape": shape, "description": says},
    }
    return {"layer": [{"mark": {"type": "line", **line}, "encoding": ends}, points]}


def _colour() -> Spec:
    legend = {
        "title": None, "orient": "bottom", "columnPadding": 28, "rowPadding": 4,
        "labelLimit": WIDTH // 2, "symbolOpacity": 1, "symbolType": "circle",
    }  # fmt: skip
    return _names("series", sort=None, legend=legend, scale={"range": list(COLOURS)})


def _y(title: str, *, log: bool = False, zero: bool = False) -> Spec:
    scale = {"type": "log"} if log else {"zero": zero}
    return _numbers("y", title=title, scale=scale, axis={"tickCount": 6, "labelOverlap": True})
