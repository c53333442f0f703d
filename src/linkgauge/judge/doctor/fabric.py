"""Checks of the links between accelerators: NVLink and the like, and peer access."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.judge.findings import Evidence, Finding
from linkgauge.judge.wiring import link_name
from linkgauge.model.inventory import Accelerator, FabricLink


def _bundles(device: Accelerator) -> dict[str, list[FabricLink]]:
    """Its links by the name of what they join: those to the same place are one link to most."""
    found: dict[str, list[FabricLink]] = {}
    for link in device.links:
        name = link_name(device.memory, link.remote) if link.remote else device.memory
        found.setdefault(name, []).append(link)
    return found


def check_inactive(evidence: Evidence) -> Iterator[Finding]:
    said: set[str] = set()
    for device in evidence.accelerators.values():
        for name, links in _bundles(device).items():
            down = [link for link in links if link.active is False]
            up = [link for link in links if link.active]
            if not down or name in said:
                continue
            said.add(name)
            # A card without its bridge has every link down: so it was built.
            yield Finding(
                check="fabric-links",
                severity="fail" if up or any(link.active for link in device.links) else "warn",
                subject=name,
                found=f"{len(down)} of {len(links)} {down[0].kind} links are not active: of "
                f"{device.memory} {', '.join(str(link.index) for link in down[:18])}",
                why=f"copies over them reach {len(up) / len(links):.0%} of the rate"
                if up
                else "copies between devices go over PCIe",
                remedy=("nvidia-smi nvlink -s; systemctl status nvidia-fabricmanager",),
            )


def check_errors(evidence: Evidence) -> Iterator[Finding]:
    rose: dict[str, int] = {}
    for after in evidence.after.accelerators if evidence.after else ():
        before = evidence.accelerators.get(after.memory)
        was = {link.index: link.errors for link in before.links} if before else {}
        for name, links in _bundles(after).items():
            counted = sum(
                link.errors - earlier
                for link in links
                if link.errors is not None and (earlier := was.get(link.index)) is not None
            )
            rose[name] = max(rose.get(name, 0), counted)  # both ends may count the same
    for name, count in rose.items():
        if count > 0:
            yield Finding(
                check="fabric-errors",
                severity="warn",
                subject=name,
                found=f"{count} errors of its links during the run",
                why="what arrives broken is sent again: the rate falls",
                remedy=("nvidia-smi nvlink -e; reseat the baseboard or the bridge",),
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
                remedy=(
                    (
                        "systemctl status nvidia-fabricmanager; sudo systemctl restart "
                        "nvidia-fabricmanager"
                    ),
                ),
            )


def _skipped_for(evidence: Evidence, *words: str) -> dict[str, list[str]]:
    """Transfers of the cells that were not measured for such a reason."""
    found: dict[str, list[str]] = {}
    for cell in evidence.cells():
        reason = cell.reason or ""
        if cell.status in ("skip", "error") and any(word in reason.lower() for word in words):
            found.setdefault(reason, []).append(" & ".join(cell.transfers))
    return found


def check_peers(evidence: Evidence) -> Iterator[Finding]:
    for reason, cells in _skipped_for(evidence, "peer access", "p2p").items():
        yield Finding(
            check="peer-access",
            severity="fail",
            subject=cells[0],
            found=reason,
            why="copies between the devices go through host memory, or not at all",
            remedy=(
                (
                    "nvidia-smi topo -p2p r; in a virtual machine the GPUs need a common peer "
                    "clique (x-nv-gpudirect-clique), on the host no ACS redirection"
                ),
            ),
            cells=tuple(cells),
        )


def check_imex(evidence: Evidence) -> Iterator[Finding]:
    for reason, cells in _skipped_for(evidence, "imex", "fabric handle").items():
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


CHECKS = (check_inactive, check_errors, check_state, check_peers, check_imex)
