"""Checks of the links between accelerators: NVLink and the like, and peer access."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.judge.counters import bundles, fabric_errors
from linkgauge.judge.findings import Evidence, Finding
from linkgauge.judge.vendor import nvidia, tools
from linkgauge.model.errors import OutcomeKind
from linkgauge.model.inventory import Accelerator, FabricLink

from .ways import latest_accelerators


def check_switch(evidence: Evidence) -> Iterator[Finding]:
    """Where each device has lost links to a switch, it is not the devices."""
    joined: dict[str, list[Accelerator]] = {}
    for device in latest_accelerators(evidence).values():
        to = {link.remote for link in device.links if link.remote and _is_switch(link.remote)}
        if to:
            several = f"{device.links[0].kind} switches"
            joined.setdefault(to.pop() if len(to) == 1 else several, []).append(device)
    for name, devices in joined.items():
        down = [sum(link.active is False for link in device.links) for device in devices]
        if len(devices) > 1 and all(down):
            yield Finding(
                check="switch",
                severity="fail",
                subject=name,
                found=f"each of {len(devices)} devices has lost links to it: "
                + ", ".join(
                    f"{d.memory} {n}" for d, n in list(zip(devices, down, strict=True))[:8]
                ),
                why="what they share is likelier to be at fault than each of them",
                remedy=(
                    *_manager(evidence, devices[0]),
                    "power the machine off and on; see to the switch's board and its supply",
                ),
            )


def _is_switch(name: str) -> bool:
    """Neither a memory nor what stands for one that is not ours."""
    return ":" not in name.partition(" ")[0] and not name.startswith(("gpu", "cpu"))


def _manager(evidence: Evidence, device: Accelerator) -> tuple[str, ...]:
    return nvidia(
        evidence,
        device.memory,
        "systemctl status nvidia-fabricmanager; sudo systemctl restart nvidia-fabricmanager",
    )


def check_inactive(evidence: Evidence) -> Iterator[Finding]:
    said: set[str] = set()
    for device in latest_accelerators(evidence).values():
        for name, links in bundles(device).items():
            down = [link for link in links if link.active is False]
            if not down or name in said:
                continue
            said.add(name)
            all_links = _beside(device, down[0]) if down[0].remote is None else links
            up = [link for link in all_links if link.active]
            # A card without its bridge has every link down: so it was built.
            yield Finding(
                check="fabric-links",
                severity="fail" if any(link.active for link in device.links) else "warn",
                subject=name,
                found=f"{len(down)} of {len(all_links)} {down[0].kind} links are not active: of "
                f"{device.memory} {', '.join(str(link.index) for link in down[:18])}",
                why=f"copies over them reach {len(up) / len(all_links):.0%} of the rate"
                if up
                else "copies between devices go over PCIe",
                remedy=(
                    *tools(evidence, "links"),
                    *_manager(evidence, device),
                    "linkgauge devices  # what each link leads to; reseat the board or the bridge",
                ),
            )


def _beside(device: Accelerator, down: FabricLink) -> list[FabricLink]:
    """A link that is down may not say where it led: then it is one of its kind."""
    return [link for link in device.links if link.kind == down.kind]


def check_errors(evidence: Evidence) -> Iterator[Finding]:
    for name, count in fabric_errors(evidence).items():
        yield Finding(
            check="fabric-errors",
            severity="warn",
            subject=name,
            found=f"{count} errors of its links during the run",
            why="what arrives broken is sent again: the rate falls",
            remedy=(*tools(evidence, "errors"), "reseat the baseboard or the bridge"),
        )


def check_state(evidence: Evidence) -> Iterator[Finding]:
    """A device behind NVSwitch takes part once the fabric manager has set it up."""
    for device in evidence.accelerators.values():
        state = (device.fabric_state or "").lower()
        if state and not any(word in state for word in ("completed", "success", "not supported")):
            yield Finding(
                check="fabric-state",
                severity="fail",
                subject=device.memory,
                found=f"its fabric is not set up: {device.fabric_state}",
                why="copies between devices over NVSwitch are refused",
                remedy=_manager(evidence, device),
            )


def _unmeasured(evidence: Evidence, kind: OutcomeKind) -> dict[str, list[str]]:
    """Transfers of the cells with this kind of outcome, by their reason."""
    found: dict[str, list[str]] = {}
    for cell in evidence.cells():
        if cell.kind == kind:
            found.setdefault(cell.reason or "", []).append(str(cell))
    return found


def check_peers(evidence: Evidence) -> Iterator[Finding]:
    for reason, cells in _unmeasured(evidence, "peer").items():
        yield Finding(
            check="peer-access",
            severity="fail",
            subject=cells[0],
            found=reason,
            why="copies between the devices go through host memory, or not at all",
            remedy=(
                *tools(evidence, "peers"),
                "linkgauge doctor  # on a virtual machine's host, too: acs, iommu",
            ),
            cells=tuple(cells),
        )


def check_imex(evidence: Evidence) -> Iterator[Finding]:
    for reason, cells in _unmeasured(evidence, "imex").items():
        yield Finding(
            check="imex",
            severity="fail",
            subject=cells[0],
            found=reason,
            why="memory of other nodes is reached by fabric handles, which need an IMEX channel",
            remedy=(
                (
                    "systemctl status nvidia-imex; ls /dev/nvidia-caps-imex-channels (load nvidia "
                    "with NVreg_CreateImexChannel0=1)"
                ),
            ),
            cells=tuple(cells),
        )


CHECKS = (check_switch, check_inactive, check_errors, check_state, check_peers, check_imex)
