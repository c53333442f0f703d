"""Reads rblnBandwidthLatencyTest: devices, switches, and matrices in which the host is first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from linkgauge.machine.tree import ADDRESS

from ..facts import MIB, Bridge, ReportedFigure, copied
from ..lines import index_of, number_of
from ..scan import TextScan

_TOOL = "rblnBandwidthLatencyTest"


def _read(seen: TextScan) -> None:
    names, first, size = list[str](), 0, 512 * MIB
    bridges, above = dict[str, Bridge](), tuple[str, ...]()
    for _, own, said in seen.marks(
        r"\s*\[Measure Buffer Size : 0x(?P<size>[0-9a-fA-F]{1,12})\]",
        r"\s*(?:\S{6,14}/)?(?P<bridge>[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) PCI bridge:",
        rf"\s*(?P<pci>{ADDRESS}) NODE \d+, rbln(?P<gpu>\d{{1,3}}), (?P<model>[^,(]{{2,40}})"
        r".*?NUMA: (?P<node>\d{1,2})",
        r"\s*Device (?:(?P<way>Write|Read) bandwidth \(GB/s\)|\S.*\(us\))",
        r"\s*S\s.*?(?P<names>(?:(?:HOST|rbln\S{0,9})(?:\s+|$))+)",
        r"\s*(?P<row>(?:HOST|rbln\d).*)",
        r"\s*\[ +(?P<result>Run|PASS|FAIL) +\] : (?P<test>RBLN_\w{1,60})", way="",
    ):  # fmt: skip
        if "size" in own:
            size = int(own["size"], 16) or size
        elif "bridge" in own:
            above = (f"0000:{own['bridge']}",)
            bridges[above[0]] = Bridge(is_switch=True)
        elif "gpu" in own:
            index = int(own["gpu"])
            seen.gpus[index] = replace(seen.gpus[index], node=int(own["node"]), above=above)
        elif "result" in own:
            if own["result"] == "FAIL":
                seen.fail(f"{own['test']}: FAIL", own["test"], first)
            first = len(seen.figures)
        elif "row" not in own:
            names = own.get("names", "").split()
        else:  # the name of a row may touch its first figure
            name = max((one for one in names if own["row"].startswith(one)), key=len, default="")
            words = own["row"].removeprefix(name).split()
            if name and len(words) <= len(names):
                seen.figures += _figures(name, names, words, size, reads=said["way"] == "Read")
    seen.log(_TOOL, vendor="rebellions", sure=seen.gpus, bridges=bridges)


def _figures(
    name: str, names: Sequence[str], words: Sequence[str], size: int, *, reads: bool
) -> Iterator[ReportedFigure]:
    """Yields a row's figures. If `reads`, the column's device pulls from the row's."""
    row, *columns = (index_of(one.removeprefix("rbln")) for one in (name, *names))
    for column, word in zip(columns, words, strict=False):
        if column != row and (rate := number_of(word)):
            yield copied(row, column, rate, size, reads=reads)


READERS = {_read: ("rbln", "RBLN")}
