"""Shows returned values in a notebook, as the commands show them on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from linkgauge.judge.findings import Finding
from linkgauge.registry import loaded

_ROOMS = "linkgauge.rooms"
BLOCKS = {
    "linkgauge.model.hardware.machine:Machine": "linkgauge.report.sections.machine:machine_blocks",
    "linkgauge.judge.compare.run_comparison:RunComparison": f"{_ROOMS}.gate.sections:few_cells",
    "linkgauge.judge.compare.gate:GateDocument": f"{_ROOMS}.gate.sections:gate",
    "linkgauge.model.documents.variation:Variation": f"{_ROOMS}.vary.sections:blocks",
    "linkgauge.model.documents.scaling:Scaling": f"{_ROOMS}.scale.sections:blocks",
    f"{_ROOMS}.check.health:Health": f"{_ROOMS}.check.health:health_blocks",
}
"""The function that makes the blocks of a value, by the type of the value."""


class Findings(tuple[Finding, ...]):
    """Findings that a notebook shows as a page, each with severity, reason and remedy."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from linkgauge.report.sections.findings import blocks

        return framed_blocks(blocks, self)


def framed_blocks(blocks: Callable[[Any], Iterable[Any]], value: object) -> str:
    from linkgauge.report.blocks import Page, ShownSection
    from linkgauge.report.render.html import framed

    return framed(Page("linkgauge", (), (ShownSection("shown", "", tuple(blocks(value))),)))


def show_in_notebook() -> None:
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    formatters: Any = getattr(getattr(shell, "display_formatter", None), "formatters", {})
    if (html := formatters.get("text/html")) is not None:
        for kind, place in BLOCKS.items():
            html.for_type_by_name(*kind.split(":"), partial(_shown, place))


def _shown(place: str, value: object) -> str:
    return framed_blocks(loaded(place), value)
