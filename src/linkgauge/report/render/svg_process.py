"""Draws charts as SVG in a separate process. To start the process takes most of a second."""

from __future__ import annotations

import json

from linkgauge.machine.processes.channel import Channel, carry_out, decoder
from linkgauge.model.errors import LinkgaugeError

_FIRST = {"mark": "point", "data": {"values": [{"a": 1}]}, "encoding": {}}


def serve(channel: Channel) -> None:
    import vl_convert

    nothing: list[str] = []  # no chart may fetch anything
    if not channel.poll(0):  # else what waits is drawn as soon
        vl_convert.vegalite_to_svg(_FIRST, allowed_base_urls=nothing)

    def draw(chart: str) -> str:
        try:
            drawn: str = vl_convert.vegalite_to_svg(json.loads(chart), allowed_base_urls=nothing)
        except ValueError as error:
            raise LinkgaugeError(str(error)) from error
        return drawn

    decode = decoder(str)
    while True:
        carry_out(decode(channel.receive()), draw, channel.send)
