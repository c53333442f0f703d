"""Runs a process that draws charts: altair defines a chart, and vl-convert draws it as SVG.

Both take most of a second and 100 MB to load, so the process starts while the run is judged and
kept. If the process crashes, the report is still written."""

from __future__ import annotations

from typing import Any

import msgspec

from linkgauge.machine.processes.channel import Channel, carry_out, decoder
from linkgauge.model.errors import LinkgaugeError
from linkgauge.registry import loaded

from .. import charts

_FIRST = {"mark": "point", "data": {"values": [{"a": 1}]}, "encoding": {}}
_ROWS = "rows"
_LETTER, _GAP = 6.4, 44
"""The pixels of a letter in a legend, and between two names."""


class ChartRequest(msgspec.Struct, frozen=True):
    """A chart to draw: the `MODULE:NAME` of a function as in `charts`, what it is given, and the
    rows."""

    function: str
    given: dict[str, Any]
    rows: list[dict[str, Any]]


def serve(channel: Channel) -> None:
    """Draws each chart that is asked for, until the channel is closed."""
    import altair as alt  # noqa: F401
    import vl_convert

    nothing: list[str] = []  # no chart may fetch anything
    vl_convert.vegalite_to_svg(_FIRST, allowed_base_urls=nothing)

    def draw(asked: ChartRequest) -> str:
        try:
            drawn: str = vl_convert.vegalite_to_svg(spec_of(asked), allowed_base_urls=nothing)
        except ValueError as error:
            raise LinkgaugeError(str(error)) from error
        return drawn

    decode = decoder(ChartRequest)
    while True:
        carry_out(decode(channel.receive()), draw, channel.send)


def spec_of(asked: ChartRequest) -> dict[str, Any]:
    """Returns the chart as a Vega-Lite specification. The rows are added last, because altair would
    otherwise check each row."""
    import altair as alt

    chart = loaded(asked.function)(alt.NamedData(name=_ROWS), **asked.given)
    spec: dict[str, Any] = chart.to_dict(validate=False)
    legend = {**charts.LOOK["legend"], "columns": _columns(asked.rows)}
    spec["config"] = {**charts.LOOK, "legend": legend}
    spec.setdefault("datasets", {})[_ROWS] = asked.rows
    return spec


def _columns(rows: list[dict[str, Any]]) -> int:
    """Returns how many names of series fit in one line of the legend."""
    widest = max((len(str(row.get("series", ""))) for row in rows), default=0)
    return max(1, min(4, int(charts.WIDTH / (_LETTER * widest + _GAP))))
