"""The command `linkgauge vm`: compares the definition of a virtual machine with guest or host."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from linkgauge.cli import common
from linkgauge.cli.help_text import OTHER, OUTPUT
from linkgauge.cli.options import Options, argument, option
from linkgauge.cli.remedies import FIX_SCRIPT, write_fixes
from linkgauge.report.formats import Document, Format

if TYPE_CHECKING:
    from .domain import Domain, Role
    from .sections import DomainReport

# What the room's command writes.

_HERE = "linkgauge.rooms.vm.sections"
DOMAIN = Document("a domain", f"{_HERE}:domain_blocks", {"json": f"{_HERE}:domain_document"})


class VmOptions(Options):
    domain: Path | None = argument(
        "DOMAIN.xml", "Read this definition, of libvirt, Proxmox VE or QEMU; - is stdin."
    )
    role: Literal["guest", "host"] | None = option(
        OTHER,
        "Say whether this machine is the guest or the host, if its files do not show it.",
        "guest|host",
        "--as",
    )
    root: Path | None = common.ROOT
    machine: str | None = common.MACHINE
    fix_script: Path | None = FIX_SCRIPT
    nccl_topo: Path | None = option(
        OUTPUT,
        "On the host: write to this file what NCCL does not see in the guest, for NCCL_TOPO_FILE.",
        "FILE.xml",
    )
    form: Annotated[Format, DOMAIN]


def vm(asked: VmOptions) -> int:
    """Compare a libvirt domain with its guest or its host.

    Shows which settings did not take effect, which placement suits the devices that are passed
    through, and the XML to use. Without a domain, a guest is checked by itself; on a host, vm shows
    how to get the domain.

    Examples:
        virsh dumpxml NAME > NAME.xml
        linkgauge vm NAME.xml
        linkgauge vm --machine vm-degraded
    """
    from linkgauge.judge.doctor import failed
    from linkgauge.model.errors import InputError

    from .domain_xml import read_domain

    if asked.root is not None and asked.machine is not None:
        raise InputError("give one of --root and --machine")
    described = None if asked.domain is None else read_domain(asked.domain)
    report = _report(described, asked.role, asked.root, asked.machine)
    if asked.nccl_topo is not None:
        _write_topology(report, asked.nccl_topo)
    of = "the host" if report.decision.role == "neither" else f"the {report.decision.role}"
    write_fixes(asked.fix_script, report.judged.findings, of)
    asked.form.write(DOMAIN, report)
    return 1 if failed(report.judged.findings) else 0


def _write_topology(report: DomainReport, path: Path) -> None:
    from linkgauge.model.errors import InputError
    from linkgauge.report.files import write_asked
    from linkgauge.report.nccl_topology import nccl_topology

    from .nccl_guest import guest_of

    if report.domain is None or report.decision.role != "host":
        raise InputError("--nccl-topo: only the host knows its switches: give the domain there")
    write_asked(path, nccl_topology(guest_of(report.domain, report.machine)))


def _report(
    domain: Domain | None, role: Role | None, path: Path | None, simulated: str | None
) -> DomainReport:
    from linkgauge.cli.devices import open_root, read, survey
    from linkgauge.judge.findings import Evidence
    from linkgauge.machine.tree import ROOT, Captured
    from linkgauge.machine.virtual import (
        definitions,
        machine_uuid,
        read_virtual,
        running_domains,
        virtual_of,
    )
    from linkgauge.model.errors import InputError

    from .checks import judge, judge_alone
    from .checks.comparison import Decision, DomainEvidence, alive_of, decide
    from .sections import DomainReport

    place = Captured({}, {}) if simulated else ROOT if path is None else open_root(path)
    found = survey((), simulated) if path is None else read(place)
    virtual = virtual_of(found.known) if simulated else read_virtual(place)
    running, uuid = running_domains(place), machine_uuid(place)
    alive = None if domain is None else alive_of(domain, running)
    names = {Path(path).stem for path in definitions(place)}
    is_defined = domain is not None and domain.name in names
    decision = decide(found, virtual, domain, uuid, alive, is_defined=is_defined)
    if role is not None:
        decision = Decision(role, ("--as was given",))
    if decision.role is None:
        unclear = "cannot tell whether this machine is the guest or the host"
        raise InputError(f"{unclear}: give --as guest or --as host")
    if domain is not None:
        others = tuple(one for one in running if one is not alive)
        case = DomainEvidence(
            domain=domain, machine=found, virtual=virtual, alive=alive, others=others, uuid=uuid
        )
        judged = judge(case, decision.role)
    elif decision.role == "host":
        there = tuple(one.name for one in running)
        return DomainReport(
            machine=found, decision=decision, running=there, defined=definitions(place)
        )
    else:
        judged = judge_alone(Evidence(found))
    return DomainReport(machine=found, decision=decision, domain=domain, judged=judged)
