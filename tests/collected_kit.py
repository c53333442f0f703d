"""Collectives as values: what backends would measure, with times that a test sets."""

from __future__ import annotations

from linkgauge.model.documents.result import CellResult, RankTimes
from linkgauge.model.stats.summary import summarize

LATENCY, RATE = 12e-6, 320e9


def model_seconds(work, size, ranks):
    """Seconds of one collective."""
    return LATENCY + work.bytes_on_bus(size, ranks) / RATE


def collected(seconds=model_seconds, change=lambda cell, result: result):
    """Results for compat_kit.MadeUp: `seconds(work, size, ranks)` is what a collective takes;
    `change(cell, result)` is what comes of it."""

    def result(cell, settings, _):
        if cell.reason is not None:
            return unmeasured(cell, "skip", cell.reason)
        work, size = cell.operation, cell.transfers[0].bytes_moved(1)
        group = len(work.groups(len(cell.transfers))[0])
        time = seconds(work, size, group)
        single = [[time * (1 + 0.1 * (n % 3) - 0.01 * rank) for n in range(8)]
                  for rank in range(len(cell.transfers))]  # fmt: skip
        found = CellResult(
            cell.row, cell.column, cell.transfers, cell.report, "pass",
            bytes=work.bytes_counted(size, group), loops=20, stopped="samples",
            verified=True if settings.verify and work.is_checked else None,
            samples=(time,), summary=summarize([time]), operation=work,
            wrong=0 if settings.verify and work.is_checked else None,
            iterations=tuple(
                RankTimes(rank, tuple(own), summarize(own)) for rank, own in enumerate(single)
            ),
        )  # fmt: skip
        return change(cell, found)

    return result


def unmeasured(cell, status, reason, kind="call"):
    return CellResult(
        cell.row, cell.column, cell.transfers, cell.report, status, reason, kind=kind,
        operation=cell.operation,
    )  # fmt: skip
