"""Defines findings, which checks return, and evidence, which checks read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Literal, TypeVar, get_args

import msgspec

from linkgauge.judge.expected.readings import run_of
from linkgauge.model.documents.expected import Earlier, Waiver
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.documents.tool_run import ToolRun
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.inventory import Inventory
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.hardware.part import Kind, Part
from linkgauge.model.kernel_log import KernelLog
from linkgauge.model.settings import Settings
from linkgauge.model.units import count_of

Severity = Literal["fail", "warn", "note", "unknown", "waived"]
"""`fail` costs bandwidth or correctness, and `warn` may cost them. `unknown` could not be read,
and `waived` is accepted."""
SEVERITIES: tuple[Severity, ...] = get_args(Severity)


class Finding(msgspec.Struct, frozen=True):
    """One problem that a check found. `about` is a part of the machine, such as a link, or another
    name. `cells` names cells as evidence. `lines` has lines of the kernel's log. `explained_by`
    names findings that explain this finding. `value` is in the unit that the catalogue gives."""

    check: str
    severity: Severity
    about: Part | str = msgspec.field(name="subject")
    found: str
    why: str = ""
    remedy: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    explained_by: tuple[str, ...] = ()
    value: float | msgspec.UnsetType = msgspec.UNSET
    waived: Waiver | msgspec.UnsetType = msgspec.UNSET

    @property
    def about_names(self) -> tuple[str, ...]:
        """Returns the subject's name and, for a part of the machine, the names of its ends."""
        return (self.subject, *sorted(self.ends))

    @property
    def subject(self) -> str:
        return str(self.about)

    @property
    def is_grave(self) -> bool:
        return self.severity in ("fail", "warn")

    @property
    def ends(self) -> frozenset[str]:
        return frozenset(self.about.ends if isinstance(self.about, Part) else ())

    @property
    def name(self) -> str:
        return f"{self.check} of {self.subject}"


class Evidence(msgspec.Struct, frozen=True, eq=False):
    """Data that checks read. `machine` was read before a run, `after` was read after the run.
    `tool` is the program that measured (None: linkgauge). Without a run, only `machine` is set."""

    machine: Machine
    after: Inventory | None = None
    results: tuple[Result, ...] = ()
    log: KernelLog | None = None
    earlier: Earlier | None = None
    tool: ToolRun | None = None
    settings: Settings | None = None

    def cells(self) -> Iterator[CellResult]:
        for result in self.results:
            yield from result.cells

    @property
    def is_comparable(self) -> bool:
        """Whether other cells, earlier runs or a reference can show that a figure is low."""
        cells = [*self.cells()]
        if len(cells) > 1 or self.earlier is not None:
            return True
        return any(one.expected.achievable for one in cells if one.expected is not None)


ANY = 1.0
"""The loss of a part whose loss no figure would show, however large."""


class Undetectable(msgspec.Struct, frozen=True):
    """Parts of one kind that may be slow although no figure shows it.

    kind: The kind of part.
    parts: The largest loss that may go unnoticed, as a fraction of the part's rate, by the name of
      the part; 1 if a loss of every size may go unnoticed."""

    kind: Kind
    parts: dict[str, float]

    def losses(self) -> Iterator[tuple[str, str]]:
        """Yields losses and their parts, such as `a loss below 10%` and `3 links`."""
        noun = "upstream PCIe link" if self.kind == "PCIe link above" else self.kind
        several = f"{noun}es" if noun == "switch" else ""
        sides = grouped((loss == ANY, (name, loss)) for name, loss in self.parts.items())
        for is_any, own in sorted(sides.items(), reverse=True):
            of = own[0][0] if len(own) == 1 else count_of(len(own), noun, several)
            yield "any loss" if is_any else f"a loss below {max(each for _, each in own):.0%}", of


_E = TypeVar("_E")
Check = Callable[[_E], Iterator[Finding]]


def checks_in(*modules: ModuleType) -> tuple[Check[Any], ...]:
    return tuple(
        check for module in modules for name, check in vars(module).items()
        if name.startswith("check_") and check.__module__ == module.__name__
    )  # fmt: skip


def evidence_of(run: Run) -> Evidence:
    run = run_of(run)
    known = run.machine, run.after, run.results, run.kernel_log
    return Evidence(*known, run.earlier or None, run.tool or None, run.settings)
