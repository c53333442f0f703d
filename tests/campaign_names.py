"""What of a simulated machine's description a finding's subject stands for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Set

from linkgauge.backends.sim.backend import SimBackend
from linkgauge.backends.sim.hardware import Hardware, SimLink
from linkgauge.backends.sim.resources import names_of
from linkgauge.judge.findings import Evidence
from sim_tree.functions import Tree


class Names:
    """Names that a fault may be aimed at."""

    def __init__(self, hardware: Hardware, backend: SimBackend) -> None:
        self._hardware = hardware
        self._backend = backend
        units = {
            "device": hardware.devices, "host": hardware.nodes, "switch": hardware.switches,
        }  # fmt: skip
        self._places = {unit.name: place for place, of in units.items() for unit in of}

    def place(self, name: str) -> str:
        """`device`, `host`, `switch` or `link`."""
        return self._places.get(name, "link")

    def touched(self, evidence: Evidence) -> dict[str, set[int]]:
        """Names with the numbers of the cells that touch them."""
        found: dict[str, set[int]] = {}
        for number, cell in enumerate(evidence.cells()):
            if cell.status == "skip":
                continue
            for transfer in cell.transfers:
                for name in self._backend.touched(transfer):
                    found.setdefault(name, set()).add(number)
        return found

    def of_subject(self, subject: str) -> Set[str]:
        """The name, as the description has it, of what a finding is about."""
        subject = subject.removesuffix(" (both directions at once)")
        device = re.fullmatch(r"(?:PCIe link of )?(sim:\d+)(?: \(.*\))?", subject)
        if device and subject != device[1]:
            return self._pcie_of(device[1])
        bridge = re.fullmatch(r"host bridge (.*)", subject)
        if bridge:
            return self._above(self._devices_below(lambda f: f.startswith(f"pci{bridge[1]}/")))
        switch = re.fullmatch(r"PCIe switch (.*)", subject)
        if switch:
            return self._switches(self._devices_below(lambda f: f"/{switch[1]}/" in f"/{f}"))
        port = re.fullmatch(r"(?:PCIe link of )?([0-9a-f]{4}:[0-9a-f:.]+)", subject)
        if port:
            return self._above(self._devices_below(lambda f: f"/{port[1]}/" in f"/{f}"))
        named = (link for link in self._hardware.links if subject in names_of(link))
        return _names(named) or {subject}

    def _devices_below(self, is_below: Callable[[str], bool]) -> Set[str]:
        functions = self._backend.look().pci
        tree = Tree(functions)
        below = {function.address for function in functions if is_below(tree.path(function))}
        return {d.name for d in self._hardware.devices if d.pci in below}

    def _pcie_of(self, device: str) -> Set[str]:
        return _names(
            link for link in self._hardware.links
            if link.kind == "pcie" and device in (link.a, link.b)
        )  # fmt: skip

    def _switches(self, devices: Set[str]) -> Set[str]:
        """Names of the switches that these devices hang from."""
        return {link.b for link in self._hardware.links
                if link.a in devices and link.kind == "pcie"}  # fmt: skip

    def _above(self, devices: Set[str]) -> Set[str]:
        """Names of the links from the switches that these devices hang from, away from them."""
        switches = self._switches(devices)
        return _names(
            link for link in self._hardware.links if link.a in switches and link.b not in devices
        )


def _names(links: Iterable[SimLink]) -> Set[str]:
    return frozenset[str]().union(*map(names_of, links))
