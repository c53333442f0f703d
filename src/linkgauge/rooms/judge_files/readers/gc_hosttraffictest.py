"""Reads gc-hosttraffictest: an IPU and host threads access a staging buffer, in 10^9 bits/s."""

from __future__ import annotations

import re
from collections.abc import Iterator

from linkgauge.model.transfer import Report

from ..facts import MIB, HostFigure, ReportedFigure
from ..scan import TextScan

_TOOL, _SPACE = "gc-hosttraffictest", "ipu"
_TEST = r"(?P<test>(?:host (?:<-|->) )?buffer(?: (?:<-|->) tile)?)"
_RATE = r"(\d{1,9}(?:\.\d{1,20})?)"
_RATES = re.compile(rf"{_RATE} Gbps (RDMA host|tile) (?:read|write)")
_LINE = re.compile(rf"\s*{_TEST}:\s+{_RATE} Gbps .{{1,100}}, for {_RATE} seconds\.")
_HEAD = re.compile(rf'\s*"description": "{_TEST}"')
_SPEED = re.compile(rf'\s*"(host|tile)_transfer_speed_gbps": "{_RATE}"')
_ERROR = re.compile(r'\s*"error": "(.{1,200}?)"')
_DEVICE = re.compile(rf".*?{_TOOL}\b.*?(?:-d|--device(?:-id)?)[ =](\d{{1,3}})\b")
_BUFFER = 16 * MIB
"""The staging buffer: the host's bytes in the manual page's examples are multiples of it."""
_STAGING = "host:0/staging"
_DEVICES_WORK = {"->": f"{_STAGING} -> {{d}} by {{d}}.sm", "<-": f"{{d}} -> {_STAGING} by {{d}}.sm"}
_HOSTS_WORK = {"<-": f"{_STAGING} -> null by host:0.cpu", "->": f"null -> {_STAGING} by host:0.cpu"}


def _read(seen: TextScan) -> None:
    device = int(seen.first(_DEVICE, "0"))
    for _, line in seen.each(_LINE, _HEAD, _SPEED, _ERROR):
        if line.re is _LINE:
            rates = {side.split()[-1]: float(rate) for rate, side in _RATES.findall(line[0])}
            seen.figures += _figures(line["test"], rates, device)
    for start, head, end in seen.sections(_HEAD):
        first, fields = len(seen.figures), seen.lines[start:end]
        rates = {one[1]: float(one[2]) for one in map(_SPEED.match, fields) if one}
        seen.figures += _figures(head["test"], rates, device)
        for error in filter(None, map(_ERROR.match, fields)):
            seen.fail(error[1], head["test"], first)
    seen.log(_TOOL, vendor="graphcore")


def _figures(test: str, rates: dict[str, float], device: int) -> Iterator[ReportedFigure]:
    before, _, behind = test.partition("buffer")
    sides = {
        "tile": _DEVICES_WORK.get(behind.removesuffix("tile").strip()),
        "host": _HOSTS_WORK.get(before.removeprefix("host").strip()),
    }
    own = {side: work for side, work in sides.items() if work}
    if not own or rates.keys() != own.keys():
        return
    together, memory, row = len(own) > 1, f"{_SPACE}:{device}", test.replace("tile", "device")
    name = "host_traffic" if together else f"host_traffic_{_ALONE[next(iter(own))]}_alone"
    report, parts = (Report.SUM, ("device", "host")) if together else (Report.FIRST, ())
    work = " & ".join(own.values()).format(d=memory)
    what = HostFigure(work, report=report, parts=parts, with_device=True)
    for number, side in enumerate(own):
        part, figure = number if together else None, rates[side] / 8e-9
        yield ReportedFigure(name, row, memory, figure, _BUFFER, part=part, host=what)


_ALONE = {"tile": "device", "host": "host"}

READERS = {_read: ("Gbps", "_gbps", '"description"')}
