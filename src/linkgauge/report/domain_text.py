"""What was found of a virtual machine, for people and programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from shlex import quote

import msgspec
from rich.console import RenderableType
from rich.text import Text

from linkgauge.judge.findings import Finding
from linkgauge.judge.vm import Judged
from linkgauge.judge.vm.role import Decision
from linkgauge.model.domain import Domain

from .domain_xml import elements_of, has_expanders
from .files import json_document
from .render.terminal import shown
from .run_text import simulated
from .sections import findings

_LONGEST = 60


class DomainReport(msgspec.Struct, frozen=True, kw_only=True):
    """`domain` and `judged` are null of a guest by itself, whose `findings` then count; of a host
    without a domain, `domains` are the names of those that it has. `vendor` is its CPU's."""

    decision: Decision
    domain: Domain | None = None
    judged: Judged | None = None
    findings: Sequence[Finding] = ()
    running: Sequence[str] = ()
    defined: Sequence[str] = ()
    vendor: str | None = None
    simulated: str | None = None

    @property
    def found(self) -> Sequence[Finding]:
        return self.judged.findings if self.judged else self.findings

    @property
    def elements(self) -> tuple[str, ...]:
        if self.domain is None or self.judged is None or self.judged.suited is None:
            return ()
        return elements_of(self.domain, self.judged.suited, self.vendor)


def domain_lines(report: DomainReport) -> Iterator[RenderableType]:
    if report.simulated is not None:
        yield simulated().append(f" {report.simulated}")
    yield _heading(report)
    if report.domain is None and report.decision.role == "host":
        yield from _how_to_get_one(report)
        return
    yield from shown(findings.blocks(report.found, "vm"))
    yield from _placement_lines(report)


def _heading(report: DomainReport) -> Text:
    what = Text("virtual machine")
    if report.domain is not None:
        what = Text.assemble("domain ", (shown_name(report.domain.name), "bold"))
    role = report.decision.role or "unknown"
    beside = f", beside its {role}" if report.domain else f", read as a {role}"
    reasons = "; ".join(report.decision.reasons) or "no sign of a hypervisor"
    return what.append(beside).append(f" ({' '.join(reasons.split())})", "dim")


def shown_name(name: str) -> str:
    """A name, which may be long or none."""
    return (name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…") or "without a name"


def _how_to_get_one(report: DomainReport) -> Iterator[Text]:
    yield Text("This machine is a host: give the domain to compare it with.")
    names = [shown_name(name) for name in report.running]
    if names:
        yield Text(f"running here (names as shortened by systemd): {', '.join(names)}")
    if report.defined:
        yield Text(f"defined here: {', '.join('/' + shown_name(path) for path in report.defined)}")
    yield Text("  virsh list --all")
    yield Text("  virsh dumpxml NAME > NAME.xml   # of a running domain: as it runs")
    yield Text("  linkgauge vm NAME.xml")


def _placement_lines(report: DomainReport) -> Iterator[Text]:
    judged, domain = report.judged, report.domain
    if judged is None or domain is None:
        return
    elements = report.elements
    if judged.suited is None and not judged.too_much:
        return
    yield Text()
    if judged.too_much:
        less = "the host has too few free CPUs or too little memory"
        yield Text(f"No placement fits: {less}. Reduce the domain.")
        return
    if not elements:
        yield Text(
            "The domain's placement is already the best that fits: no XML fixes the findings above."
        )
        return
    name = quote(domain.name) if domain.name.isprintable() else "NAME"
    where = f"virsh edit {name}; replace its own elements, and add the controllers"
    yield Text(f"XML to use ({where}):", "bold")
    for element in elements:
        yield from (Text(line) for line in element.splitlines())
    if judged.suited and judged.suited.device_cells and not has_expanders(domain):
        yield Text(
            f"The machine type {shown_name(domain.machine or '')} has no pxb-pcie. With q35, the "
            "guest would know which node is near each device."
        )


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
            "findings": report.found,
            "counts": Counter(finding.severity for finding in report.found),
            "xml": report.elements,
        }
    )
