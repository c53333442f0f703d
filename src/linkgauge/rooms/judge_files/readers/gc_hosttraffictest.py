"""Reads gc-hosttraffictest: an IPU and host threads access a staging buffer, in 10^9 bits/s."""

from __future__ import annotations

import re
from collections.abc import Iterator

from linkgauge.model.transfer import Report

from ..facts import MIB, HostFigure, ReportedFigure
from ..scan import TextScan

_TOOL = "gc-hosttraffictest"
_TEST = r"(?P<test>(?:host (?P<host><-|->) )?buffer(?: (?P<tile><-|->) tile)?)"
_RATE = r"(\d{1,9}(?:\.\d{1,20})?)"
_RATES = re.compile(rf"{_RATE} Gbps (?:RDMA )?(host|tile) (?:read|write)")
_LINE = re.compile(rf"\s*{_TEST}:\s+{_RATE} Gbps .{{1,100}}, for {_RATE} seconds\.")
_HEAD = re.compile(rf'\s*"description": "{_TEST}"')
_SPEED = re.compile(rf'\s*"(host|tile)_transfer_speed_gbps": "{_RATE}"')
_ERROR = re.compile(r'\s*"error": "(.{1,200}?)"')
_DEVICE = re.compile(rf".*?{_TOOL}\b.*?(?:-d|--device(?:-id)?)[ =](\d{{1,3}})\b")
_BUFFER = 16 * MIB
"""The staging buffer: the host's bytes in the manual page's examples are multiples of it."""
_STAGING = "host:0/staging"
_WORK = {
    ("tile", "->"): f"{_STAGING} -> {{d}} by {{d}}.sm",
    ("tile", "<-"): f"{{d}} -> {_STAGING} by {{d}}.sm",
    ("host", "<-"): f"{_STAGING} -> null by host:0.cpu",
    ("host", "->"): f"null -> {_STAGING} by host:0.cpu",
}


def _read(seen: TextScan) -> None:
    device = int(seen.first(_DEVICE, "0"))
    for _, line in seen.each(_LINE, _HEAD, _SPEED, _ERROR):
        if line.re is _LINE:
            rates = {side: float(rate) for rate, side in _RATES.findall(line[0])}
            seen.figures += _figures(line, rates, device)
    for start, head, end in seen.sections(_HEAD):
        first, fields = len(seen.figures), seen.lines[start:end]
        rates = {one[1]: float(one[2]) for one in map(_SPEED.match, fields) if one}
        seen.figures += _figures(head, rates, device)
        for error in filter(None, map(_ERROR.match, fields)):
            seen.fail(error[1], head["test"], first)
    seen.log(_TOOL, vendor="graphcore")


def _figures(test: re.Match[str], rates: dict[str, float], device: int) -> Iterator[ReportedFigure]:
    sides = [side for side in ("tile", "host") if test[side]]
    if not sides or rates.keys() != {*sides}:
        return
    together, memory, row = len(sides) > 1, f"ipu:{device}", test["test"].replace("tile", "device")
    alone = f"host_traffic_{'device' if test['tile'] else 'host'}_alone"
    work = " & ".join(_WORK[side, test[side]] for side in sides).format(d=memory)
    report, parts = (Report.SUM, ("device", "host")) if together else (Report.FIRST, ())
    what = HostFigure(work, report=report, parts=parts, with_device=True)
    for number, side in enumerate(sides):
        name, part = ("host_traffic", number) if together else (alone, None)
        figure = rates[side] / 8e-9
        yield ReportedFigure(name, row, memory, figure, _BUFFER, part=part, host=what)


READERS = {_read: ("Gbps", "_gbps", '"description"')}
