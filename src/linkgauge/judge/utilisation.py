"""How much of the theoretical figure was reached."""

from __future__ import annotations

from linkgauge.model.result import Result


def utilisation(result: Result) -> dict[tuple[str, str], float]:
    """Figure ÷ theoretical of each cell of a judged result, by row and column; cells where either
    is unknown are left out."""
    return {
        cell.place: share
        for cell in result.cells
        if cell.expected is not None and (share := cell.share(cell.expected.theoretical))
    }
