"""Defines findings, which checks return, and evidence, which checks read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Literal, TypeVar

import msgspec

from linkgauge.judge.expected.readings import run_of
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.documents.tool_run import ToolRun
from linkgauge.model.earlier import Earlier
from linkgauge.model.hardware.inventory import Inventory
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.hardware.part import Part
from linkgauge.model.kernel_log import KernelLog

Severity = Literal["fail", "warn", "note", "unknown"]
"""The severity of a finding: `fail` costs bandwidth or correctness, `warn` may cost some, `note` is
good to know, and `unknown` could not be read here."""


class Finding(msgspec.Struct, frozen=True):
    """A check's statement: what was `found`, why that matters, and which lines fix it.

    about: The part that it is about, or the name of something that is no part.
    cells: The cells that it rests on.
    lines: The lines of the kernel's log that it rests on.
    explained_by: The findings that explain it, as `name` names them."""

    check: str
    severity: Severity
    about: Part | str = msgspec.field(name="subject")
    found: str
    why: str = ""
    remedy: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    explained_by: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """The name of the part or thing that the finding is about."""
        return str(self.about)

    @property
    def ends(self) -> frozenset[str]:
        """The memories and addresses of the part that it is about."""
        return frozenset(self.about.ends if isinstance(self.about, Part) else ())

    @property
    def name(self) -> str:
        """The name of the finding: `clocks of sim:3`."""
        return f"{self.check} of {self.subject}"


class Evidence(msgspec.Struct, frozen=True, eq=False):
    """The facts that checks judge by: the machine before a run, its inventory after the run, the
    results, the kernel's log during the run, what earlier runs show of the cells, and which other
    tool measured. Without a run, the machine alone."""

    machine: Machine
    after: Inventory | None = None
    results: tuple[Result, ...] = ()
    log: KernelLog | None = None
    earlier: Earlier | None = None
    tool: ToolRun | None = None

    def cells(self) -> Iterator[CellResult]:
        for result in self.results:
            yield from result.cells


_E = TypeVar("_E")
Check = Callable[[_E], Iterator[Finding]]


def checks_in(*modules: ModuleType) -> tuple[Check[Any], ...]:
    """The checks of these files: the functions `check_…` that they define, in their order."""
    return tuple(
        check for module in modules for name, check in vars(module).items()
        if name.startswith("check_") and check.__module__ == module.__name__
    )  # fmt: skip


def evidence_of(run: Run) -> Evidence:
    run = run_of(run)
    known = run.machine, run.after, run.results, run.kernel_log
    return Evidence(*known, run.earlier or None, run.tool or None)
