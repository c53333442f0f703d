"""Turns runs of several ranks into runs of one process, so that they can be judged in the same
way."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from linkgauge.model.documents.result import CellResult, Result, Run


def as_one(run: Run) -> Run:
    """Returns the run without its ranks if all ranks are on one machine and each has its own
    device. Any other run is returned unchanged."""
    machine = run.machine.alone
    if machine is run.machine:
        return run
    results = tuple(map(_result, run.results))
    return replace(run, machine=machine, results=results)


def with_ranks(judged: Sequence[Result], measured: Sequence[Result]) -> tuple[Result, ...]:
    """Returns the judged results with the transfers as they were measured by ranks."""
    return tuple(
        replace(
            result,
            cells=tuple(
                replace(cell, transfers=own.transfers)
                for cell, own in zip(result.cells, before.cells, strict=True)
            ),
        )
        for result, before in zip(judged, measured, strict=True)
    )


def _result(result: Result) -> Result:
    return replace(result, cells=tuple(map(_cell, result.cells)))


def _cell(cell: CellResult) -> CellResult:
    alone = (transfer.placed(lambda memory: memory.unranked) for transfer in cell.transfers)
    return replace(cell, transfers=tuple(alone))
