"""The mark of a simulated machine as text."""

from __future__ import annotations

from rich.text import Text

from linkgauge.model.result import Sheet
from linkgauge.model.units import format_size


def simulated() -> Text:
    """The mark beside every figure of a simulated machine."""
    return Text("SIMULATED", "bold magenta")


def where(sheet: Sheet, sizes: str | None = None) -> str:
    """Backend and size of a heading, and how many pairs if they are a sample; work that is in no
    memory has no size."""
    ends = sizes if sizes is not None else format_size(sheet.size) if sheet.size else ""
    size = f"  {ends}" if ends else ""
    drawn = sheet.drawn
    sample = f"  {drawn.pairs} of {drawn.all} pairs, drawn with seed {drawn.seed}" if drawn else ""
    return f"  {sheet.backend}{size}{sample}"
