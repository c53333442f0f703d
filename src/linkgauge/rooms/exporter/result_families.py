"""The last results as metrics."""

from __future__ import annotations

from typing import get_args

from linkgauge.model.result import Status, Verdict

from .families import Families
from .results import Results, ShownRun

FIGURES = {
    "B/s": ("bandwidth_bytes_per_second", "payload bytes a second"),
    "B/s (STREAM)": ("stream_bytes_per_second", "bytes a second as STREAM counts them"),
    "s": ("latency_seconds", "seconds of one access, exchange or copy"),
    "s (collective)": ("collective_seconds", "seconds of one collective"),
    "1/s": ("events_per_second", "events a second"),
    "FLOP/s": ("flops_per_second", "floating-point operations a second"),
    "1 (hidden)": ("hidden_ratio", "share of a time that is hidden, 0 to 1"),
    "tokens/s": ("tokens_per_second", "tokens a second of all sequences together"),
    "requests/s": ("requests_per_second", "requests a second that are answered"),
    "s (step)": ("step_seconds", "seconds of one training step of all devices"),
}
"""By the unit of a result: the end of a metric's name, and what it counts."""
STATUSES: tuple[Status, ...] = get_args(Status)
VERDICTS: dict[Verdict, float] = {"low": -1.0, "ok": 0.0, "high": 1.0}
RUN = ("host", "simulated", "label")
CELL = (*RUN, "benchmark", "backend", "size", "row", "column", "repeat")
_KINDS = {
    "": "The last figure of a cell",
    "expected_": "What the hardware should achieve in a cell",
    "nominal_": "What a cell would achieve if every link of its path ran at its best",
}


def result_text(results: Results) -> bytes:
    """The metrics of results, but for ages, which change by themselves."""
    families = Families()
    _add_runs(families, results)
    _declare_cells(families)
    labels = {
        id(run): _labels(run) for run in {id(run): run for run, _ in results.figures}.values()
    }
    for run, figure in results.figures:
        of = figure.id
        own = (
            *labels[id(run)], of.benchmark, of.backend, str(of.size), of.row, of.column,
            str(of.repeat or ""),
        )  # fmt: skip
        families.add("cell_status", float(STATUSES.index(figure.status)), *own)
        families.add("cell_verdict", VERDICTS.get(figure.verdict), *own)
        families.add("cell_measured_timestamp_seconds", run.finished or run.started, *own)
        if figure.unit in FIGURES:
            values = (figure.value, figure.expected, figure.nominal)
            for kind, value in zip(_KINDS, values, strict=True):
                families.add(f"cell_{kind}{FIGURES[figure.unit][0]}", value, *own)
    return families.text()


def _labels(run: ShownRun) -> tuple[str, str, str]:
    return run.host, str(run.simulated).lower(), run.label


def _add_runs(families: Families, results: Results) -> None:
    families.gauge(
        "last_run_info", "The last run of a label on a host, always 1.",
        (*RUN, "run", "profile", "accelerators"),
    )  # fmt: skip
    families.gauge("last_run_status", "1 for the status of the last run.", (*RUN, "status"))
    for name, what in (
        ("last_run_started_timestamp_seconds", "When the last run began."),
        ("last_run_finished_timestamp_seconds", "When it ended; absent if it was interrupted."),
        ("last_run_finished", "Whether the last run came to its end (1) or was interrupted (0)."),
        ("last_run_cells", "Cells of the last run."),
        ("last_run_cells_passed", "Cells of the last run that passed."),
        ("last_run_cells_low", "Cells of the last run that are lower than the hardware allows."),
    ):
        families.gauge(name, what, RUN)
    for run in results.runs:
        own = _labels(run)
        families.add("last_run_info", 1.0, *own, run.id, run.profile, run.accelerators)
        families.add_state("last_run_status", run.status, STATUSES, *own)
        families.add("last_run_started_timestamp_seconds", run.started, *own)
        families.add("last_run_finished_timestamp_seconds", run.finished, *own)
        families.add("last_run_finished", float(run.finished is not None), *own)
        families.add("last_run_cells", float(run.cells), *own)
        families.add("last_run_cells_passed", float(run.passed), *own)
        families.add("last_run_cells_low", float(run.low), *own)


def _declare_cells(families: Families) -> None:
    numbered = ", ".join(f"{number} {status}" for number, status in enumerate(STATUSES))
    families.gauge("cell_status", f"Status of a cell: {numbered}.", CELL)
    families.gauge(
        "cell_verdict", "-1 lower than the hardware allows, 0 as it should be, 1 higher than is "
        "possible; absent where that is not known.", CELL,
    )  # fmt: skip
    families.gauge(
        "cell_measured_timestamp_seconds", "When the run that measured the cell ended.", CELL
    )
    for name, counted in FIGURES.values():
        for kind, what in _KINDS.items():
            families.gauge(f"cell_{kind}{name}", f"{what}: {counted}.", CELL)


def add_ages(families: Families, results: Results, now: float) -> None:
    """How long ago the last runs ended (or, interrupted, began)."""
    families.gauge("last_run_age_seconds", "Time since the last run ended.", RUN)
    for run in results.runs:
        age = max(0.0, now - (run.finished or run.started))
        families.add("last_run_age_seconds", age, *_labels(run))
