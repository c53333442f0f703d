"""`linkgauge vm`: a libvirt domain beside the guest or the host."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linkgauge.cli.options import Option, own
from linkgauge.cli.remedies import FIX_SCRIPT, write_fixes
from linkgauge.report.formats import Format

from .documents import DOMAIN

if TYPE_CHECKING:
    from linkgauge.machine.tree import Root

    from .domain import Domain, Role
    from .sections import DomainReport

ROLES = ("guest", "host")


def complete_role(incomplete: str) -> list[str]:
    return [role for role in ROLES if role.startswith(incomplete)]


@own(
    fix_script=FIX_SCRIPT,
    role=Option(
        "State which of the two this machine is, if its files do not show it.",
        "guest|host",
        flag="--as",
        more={"autocompletion": complete_role},
    ),
)
def vm(
    *,
    domain: Annotated[
        Path | None,
        typer.Argument(
            metavar="DOMAIN.xml", help="Read what virsh dumpxml NAME wrote; - is stdin."
        ),
    ] = None,
    role: str | None = None,
    root: Path | None = None,
    machine: str | None = None,
    fix_script: Path | None = None,
    form: Annotated[Format, DOMAIN],
) -> int:
    """Compare a libvirt domain with its guest or its host.

    Shows what did not take effect, which placement suits the devices that are passed through, and
    the XML to use. Without a domain, a guest is checked by itself; on a host, vm shows how to get
    the domain.

    Examples:
        virsh dumpxml NAME > NAME.xml
        linkgauge vm NAME.xml
        linkgauge vm --machine vm-degraded
    """
    from linkgauge.model.errors import InputError

    from .domain_xml import read_domain

    asked: dict[str | None, Role | None] = {None: None, "guest": "guest", "host": "host"}
    if role not in asked:
        raise InputError(f"--as {role!r}: give guest or host")
    if root is not None and machine is not None:
        raise InputError("give one of --root and --machine")
    described = None if domain is None else read_domain(domain)
    report = _report(described, asked[role], root, machine)
    write_fixes(fix_script, report.judged.findings, f"the {report.decision.role}")
    form.write(DOMAIN, report)
    return 1 if any(finding.severity == "fail" for finding in report.judged.findings) else 0


def _report(
    domain: Domain | None, role: Role | None, path: Path | None, simulated: str | None
) -> DomainReport:
    """Reads the machine and judges it."""
    from msgspec.structs import replace

    from linkgauge.cli.devices import open_root, read, survey
    from linkgauge.judge.findings import Evidence
    from linkgauge.machine.tree import ROOT
    from linkgauge.machine.virtual import (
        definitions,
        machine_uuid,
        read_virtual,
        running_domains,
        virtual_of,
    )
    from linkgauge.model.errors import InputError

    from .checks import judge, judge_alone
    from .checks.comparison import Comparison, alive_of, decide, stated
    from .sections import DomainReport

    place: Root = ROOT if path is None else open_root(path)
    found = survey(None, simulated) if path is None else read(place)
    inventory = found.known
    has_files = simulated is None
    virtual = read_virtual(place) if has_files else virtual_of(inventory)
    running = running_domains(place) if has_files else ()
    uuid = machine_uuid(place) if has_files else None
    alive = None if domain is None else alive_of(domain, running)
    decision = stated(role) if role else decide(found, virtual, domain, uuid, alive)
    if decision.role is None:
        raise InputError(
            "cannot tell whether this machine is the guest or the host: give --as guest or "
            "--as host"
        )
    report = DomainReport(
        decision=decision,
        domain=domain,
        vendor=inventory.host.cpu_vendor,
        simulated=found.simulated,
    )
    if domain is not None:
        case = Comparison(
            domain=domain,
            machine=found,
            virtual=virtual,
            alive=alive,
            others=tuple(one for one in running if one is not alive),
            uuid=uuid,
        )
        return replace(report, judged=judge(case, decision.role))
    if decision.role == "guest":
        return replace(report, judged=judge_alone(Evidence(found)))
    names = tuple(one.name for one in running)
    return replace(report, running=names, defined=definitions(place) if has_files else ())
