"""How much of what the hardware could do at best was reached."""

from __future__ import annotations

from linkgauge.model.result import Result


def utilisation(result: Result) -> dict[tuple[str, str], float]:
    """Figure ÷ theoretical of each cell, by row and column; cells where either is unknown have
    none. Of a judged result."""
    return {
        cell.place: cell.summary.median / cell.expected.theoretical
        for cell in result.cells
        if cell.summary is not None and cell.expected is not None and cell.expected.theoretical
    }
