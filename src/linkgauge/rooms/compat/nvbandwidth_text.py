"""nvbandwidth's plain text."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from .nvbandwidth_figures import Outcome, TestMatrix
from .nvbandwidth_system import System

NOTE = """\
NOTE: The reported results may not reflect the full capabilities of the platform.
Performance can vary with software drivers, hardware clocks, and system topology.
"""
_UNITS = {"higher": "+GB/s", "lower": "-ns"}
"""For performance lines: the sign shows which direction is better."""


class TextPrinter:
    """Prints each test as soon as it is measured."""

    def __init__(self, *, verbose: bool, perf: bool) -> None:
        self._verbose = verbose
        self._perf = perf

    def warn(self, text: str) -> None:
        _say(text)

    def system(self, system: System) -> None:
        _say(
            f"CUDA Runtime Version: {system.cuda}",
            f"CUDA Driver Version: {system.cuda}",
            f"Driver Version: {system.driver}",
            "",
            *(_processes(system) if system.has_processes else _devices(system)),
            "",
        )

    def missing(self, asked: str, problem: str) -> None:
        _say(f"ERROR: {problem}", "")

    def show(self, outcome: Outcome) -> None:
        if outcome.status == "Waived":
            _say(f"Waived: {outcome.name}: {'; '.join(outcome.reasons)}")
            return
        _say(f"Running {outcome.name}.")
        _say(*(f"{outcome.status}: {reason}" for reason in outcome.reasons))
        _say(*outcome.samples)
        for matrix in outcome.matrices:
            _say(matrix.heading, *_lines(matrix), "")
            self._sum_up(matrix, outcome.better)
        if outcome.shares is not None:
            _say(outcome.shares.heading, *_lines(outcome.shares), "")
        sys.stdout.flush()

    def _sum_up(self, matrix: TestMatrix, better: str) -> None:
        figures = matrix.known
        total = sum(figures)
        if self._perf:
            _say(f"&&&& PERF {matrix.name} {total:.2f} {_UNITS[better]}")
        else:
            _say(f"SUM {matrix.name} {total:.2f}")
        if self._verbose and figures:
            _say(
                f"MIN {matrix.name} {min(figures):.2f}",
                f"MAX {matrix.name} {max(figures):.2f}",
                f"AVG {matrix.name} {total / len(figures):.2f}",
            )
        _say("")

    def fail(self, message: str) -> None:
        sys.stdout.flush()
        print(message, file=sys.stderr)

    def end(self) -> None:
        _say(NOTE)


def _devices(system: System) -> Iterator[str]:
    yield system.hostname
    for device in system.devices:
        yield f"Device {device.index}: {device.name}"


def _processes(system: System) -> Iterator[str]:
    """A line for each: its number, as wide as the last one's, its host if known, and its device."""
    width = len(str(len(system.devices) - 1))
    for device in system.devices:
        at = "" if device.hostname is None else f" ({device.hostname})"
        yield f"Process {device.process:>{width}}{at}: device {device.index}: {device.name}"


def _lines(matrix: TestMatrix) -> list[str]:
    """The columns' indices, then a line per row."""
    label = max(2, *map(len, matrix.rows))
    lines = [" " * label + "".join(f"{column:>10}" for column in matrix.columns)]
    for name, row in zip(matrix.rows, matrix.figures, strict=True):
        figures = ("N/A" if figure is None else f"{figure:.2f}" for figure in row)
        lines.append(f"{name:>{label}}" + "".join(f"{figure:>10}" for figure in figures))
    return lines


def _say(*lines: str) -> None:
    for line in lines:
        print(line)
