"""What was found of a virtual machine, for people and programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from shlex import quote

import msgspec
from rich.console import RenderableType

from linkgauge.report.blocks import Block, Code, Line, Problem, Prose, Span, cut, line, plain
from linkgauge.report.files import json_document
from linkgauge.report.remedies import steps
from linkgauge.report.results import SIMULATED
from linkgauge.report.sections import findings

from .checks import Judged
from .checks.comparison import Decision
from .domain import Domain
from .elements import elements_of, has_expanders

_LONGEST = 60
_HOW_TO_GET_ONE = (
    "virsh list --all",
    "virsh dumpxml NAME > NAME.xml  # of a running domain: as it runs",
    "linkgauge vm NAME.xml",
)


class DomainReport(msgspec.Struct, frozen=True, kw_only=True):
    """`domain` is null of a guest by itself; of a host without a domain, `running` and `defined`
    are the names of those that it has. `vendor` is its CPU's."""

    decision: Decision
    domain: Domain | None = None
    judged: Judged = Judged()
    running: Sequence[str] = ()
    defined: Sequence[str] = ()
    vendor: str | None = None
    simulated: str | None = None

    @property
    def elements(self) -> tuple[str, ...]:
        if self.domain is None or self.judged.suited is None:
            return ()
        return elements_of(self.domain, self.judged.suited, self.vendor)


def domain_blocks(report: DomainReport) -> Iterator[Block | RenderableType]:
    mark = [] if report.simulated is None else [line(SIMULATED, f" {report.simulated}")]
    yield Prose([*mark, _heading(report)])
    if report.domain is None and report.decision.role == "host":
        yield _how_to_get_one(report)
        return
    yield from findings.blocks(report.judged.findings, "vm")
    if report.domain is not None:
        yield from _placement(report, report.domain, report.judged)


def _heading(report: DomainReport) -> Line:
    role = report.decision.role or "unknown"
    reasons = "; ".join(report.decision.reasons) or "no sign of a hypervisor"
    because = Span(f" ({' '.join(reasons.split())})", "dim")
    if report.domain is None:
        return line(f"virtual machine, read as a {role}", because)
    name = Span(shown_name(report.domain.name), "strong")
    return line("domain ", name, f", beside its {role}", because)


def shown_name(name: str) -> str:
    """A name, which may be long or none."""
    return cut(name, _LONGEST) or "without a name"


def _how_to_get_one(report: DomainReport) -> Problem:
    running = ", ".join(map(shown_name, report.running))
    defined = ", ".join(f"/{shown_name(path)}" for path in report.defined)
    domains = {"running here (names as shortened by systemd)": running, "defined here": defined}
    said = [(name, plain(listed)) for name, listed in domains.items() if listed]
    found = plain("This machine is a host: give the domain to compare it with.")
    return Problem("", "", "", found, said, tuple(steps(_HOW_TO_GET_ONE)), "to get it")


def _placement(report: DomainReport, domain: Domain, judged: Judged) -> Iterator[Block]:
    lines = [text for element in report.elements for text in element.splitlines()]
    if judged.too_much:
        less = "the host has too few free CPUs or too little memory"
        yield Prose([(), plain(f"No placement fits: {less}. Reduce the domain.")])
    elif lines:
        name = quote(domain.name) if domain.name.isprintable() else "NAME"
        where = f"virsh edit {name}; replace its own elements, and add the controllers"
        yield Code(plain(f"XML to use ({where}):", "strong"), lines)
        if judged.suited and judged.suited.device_cells and not has_expanders(domain):
            yield Prose([plain(
                f"The machine type {shown_name(domain.machine or '')} has no pxb-pcie. With q35, "
                "the guest would know which node is near each device."
            )])  # fmt: skip
    elif judged.suited is not None:
        best = "The domain's placement is already the best that fits"
        yield Prose([(), plain(f"{best}: no XML fixes the findings above.")])


def domain_document(report: DomainReport) -> str:
    return json_document(
        {
            "schema": "linkgauge.vm/1",
            "simulated": report.simulated is not None,
            "role": report.decision.role,
            "reasons": report.decision.reasons,
            "domain": report.domain and {"name": report.domain.name, "uuid": report.domain.uuid},
            "running": report.running,
            "defined": report.defined,
            "findings": report.judged.findings,
            "counts": Counter(finding.severity for finding in report.judged.findings),
            "xml": report.elements,
        }
    )
