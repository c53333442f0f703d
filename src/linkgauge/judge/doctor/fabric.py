"""Checks of the links between accelerators (NVLink and the like) and of peer access."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.judge.counters import bundles, fabric_errors
from linkgauge.judge.findings import Evidence, Finding, Severity
from linkgauge.judge.vendor import nvidia, tools
from linkgauge.judge.wiring import is_memory
from linkgauge.model.errors import OutcomeKind
from linkgauge.model.inventory import Accelerator

from .pcie_chains import latest_accelerators


def check_switch(evidence: Evidence) -> Iterator[Finding]:
    """If every device has lost links to a switch, the switch is at fault, not the devices."""
    joined: dict[str, list[Accelerator]] = {}
    for device in latest_accelerators(evidence).values():
        to = {link.remote for link in device.links if link.remote and not is_memory(link.remote)}
        if to:
            several = f"{device.links[0].kind} switches"
            joined.setdefault(to.pop() if len(to) == 1 else several, []).append(device)
    for name, devices in joined.items():
        down = [sum(link.active is False for link in device.links) for device in devices]
        if len(devices) > 1 and all(down):
            counts = [f"{d.memory} {n}" for d, n in zip(devices, down, strict=True)]
            found = f"each of {len(devices)} devices has lost links to it: {', '.join(counts[:8])}"
            why = "what they share is likelier to be at fault than each of them"
            restart = "power the machine off and on; see to the switch's board and its supply"
            remedy = (*_manager(evidence, devices[0]), restart)
            yield Finding("switch", "fail", name, found, why, remedy)


def _manager(evidence: Evidence, device: Accelerator) -> tuple[str, ...]:
    restart = "systemctl status nvidia-fabricmanager; sudo systemctl restart nvidia-fabricmanager"
    return nvidia(evidence, device.memory, restart)


def check_inactive(evidence: Evidence) -> Iterator[Finding]:
    reported: set[str] = set()
    for device in latest_accelerators(evidence).values():
        for name, links in bundles(device).items():
            down = [link for link in links if link.active is False]
            if not down or name in reported:
                continue
            reported.add(name)
            # A link that is down may not report its remote end: then all of its kind count.
            alike = [link for link in device.links if link.kind == down[0].kind]
            all_links = alike if down[0].remote is None else links
            up = [link for link in all_links if link.active]
            # A card without a bridge has every link down by design.
            severity: Severity = "fail" if any(link.active for link in device.links) else "warn"
            listed = f"{device.memory} {', '.join(str(link.index) for link in down[:18])}"
            found = f"{len(down)} of {len(all_links)} {down[0].kind} links are not active: of "
            why = "copies between devices go over PCIe"
            if up:
                why = f"copies over them reach {len(up) / len(all_links):.0%} of the rate"
            look = "linkgauge devices  # what each link leads to; reseat the board or the bridge"
            remedy = (*tools(evidence, "links"), *_manager(evidence, device), look)
            yield Finding("fabric-links", severity, name, found + listed, why, remedy)


def check_errors(evidence: Evidence) -> Iterator[Finding]:
    why = "what arrives broken is sent again: the rate falls"
    remedy = (*tools(evidence, "errors"), "reseat the baseboard or the bridge")
    for name, count in fabric_errors(evidence).items():
        found = f"{count} errors of its links during the run"
        yield Finding("fabric-errors", "warn", name, found, why, remedy)


def check_state(evidence: Evidence) -> Iterator[Finding]:
    """A device behind NVSwitch joins the fabric only after the fabric manager has set it up."""
    for device in evidence.accelerators.values():
        state = (device.fabric_state or "").lower()
        if state and not any(word in state for word in ("completed", "success", "not supported")):
            found = f"its fabric is not set up: {device.fabric_state}"
            why = "copies between devices over NVSwitch are refused"
            yield Finding(
                "fabric-state", "fail", device.memory, found, why, _manager(evidence, device)
            )


def _unmeasured(
    check: str, evidence: Evidence, kind: OutcomeKind, why: str, *remedy: str
) -> Iterator[Finding]:
    """One finding for each reason, with the cells that have this kind of outcome."""
    found: dict[str, list[str]] = {}
    for cell in evidence.cells():
        if cell.kind == kind:
            found.setdefault(cell.reason or "", []).append(str(cell))
    for reason, cells in found.items():
        yield Finding(check, "fail", cells[0], reason, why, remedy, tuple(cells))


def check_peers(evidence: Evidence) -> Iterator[Finding]:
    yield from _unmeasured(
        "peer-access", evidence, "peer",
        "copies between the devices go through host memory, or not at all",
        *tools(evidence, "peers"),
        "linkgauge doctor  # on a virtual machine's host, too: acs, iommu",
    )  # fmt: skip


def check_imex(evidence: Evidence) -> Iterator[Finding]:
    yield from _unmeasured(
        "imex", evidence, "imex",
        "memory of other nodes is reached by fabric handles, which need an IMEX channel",
        "systemctl status nvidia-imex; ls /dev/nvidia-caps-imex-channels (load nvidia with "
        "NVreg_CreateImexChannel0=1)",
    )  # fmt: skip


CHECKS = (check_switch, check_inactive, check_errors, check_state, check_peers, check_imex)
