"""What a run would measure, hold and take, without measuring."""

from __future__ import annotations

import sys

from rich.text import Text

from linkgauge.engine.plan import Plan, most_seconds, peak_memory
from linkgauge.model.result import Settings
from linkgauge.model.units import approximate_size, format_size

from .files import json_document
from .terminal import make_console, simulated


def print_plan(plan: Plan, settings: Settings, *, as_json: bool) -> int:
    """Each sheet and its cells, the most memory any cell holds and the time at most."""
    memory, seconds = peak_memory(plan), most_seconds(plan, settings)
    if as_json:
        document = {"plan": plan, "peak_memory": memory, "most_seconds": seconds}
        sys.stdout.write(json_document(document))
        return 0
    console = make_console()
    if any(sheet.simulated for sheet in plan):
        console.print(simulated())
    for sheet in plan:
        where = f"  {sheet.backend}  {format_size(sheet.size)}"
        head = Text.assemble((sheet.benchmark, "bold"), where)
        if sheet.reason is not None:
            head.append(f"  skip: {sheet.reason}", "yellow")
        console.print(head)
        for cell in sheet.cells:
            line = Text(f"  ({cell.row}, {cell.column})  {cell}")
            if cell.reason is not None:
                line.append(f"  skip: {cell.reason}", "yellow")
            console.print(line)
    cells = sum(1 for sheet in plan for cell in sheet.cells if cell.reason is None)
    held = ", ".join(f"{name} {approximate_size(size)}" for name, size in memory.items())
    time = "time as the samples take" if seconds is None else f"at most about {seconds:.0f} s"
    console.print(f"{cells} cells; at once at most {held or 'nothing'}; {time}")
    return 0
