"""What of the PCI is above what, for those who print it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linkgauge.model.inventory import Adapter, Inventory, PciFunction

from .subjects import Subject


class PciForest:
    """The PCI functions of an inventory by what they are below, under the names that they have
    elsewhere in the report."""

    def __init__(self, inventory: Inventory, subjects: Iterable[Subject]) -> None:
        known = {function.address for function in inventory.pci}
        self._below: dict[str | None, list[PciFunction]] = {}
        for function in inventory.pci:
            parent = function.parent if function.parent in known else None
            self._below.setdefault(parent, []).append(function)
        self._numbered = {one.pci: (number, one) for number, one in enumerate(subjects) if one.pci}
        self._adapters: dict[str, list[Adapter]] = {}
        for adapter in inventory.adapters:
            if adapter.pci:
                self._adapters.setdefault(adapter.pci, []).append(adapter)

    def below(self, function: PciFunction | None) -> Sequence[PciFunction]:
        """What is connected to a function; with None, what is at the top."""
        return self._below.get(function.address if function else None, ())

    def subject(self, function: PciFunction) -> tuple[int | None, Subject | None]:
        """The accelerator and its number; two times None for what is none."""
        return self._numbered.get(function.address, (None, None))

    def model(self, function: PciFunction) -> str:
        """What it is: the accelerator's model; else its name in the PCI ID database, or its numbers
        as in lspci."""
        _, subject = self.subject(function)
        numbers = f"Device {shown(function.vendor, '04x')}:{shown(function.device, '04x')}"
        return (subject and subject.model) or function.name or numbers

    def label(self, function: PciFunction) -> str:
        """Its name elsewhere in the report, else its driver."""
        adapters = "/".join(one.name for one in self._adapters.get(function.address, ()))
        if adapters:
            return adapters
        _, subject = self.subject(function)
        if subject is not None and subject.label != function.address:
            return subject.label
        kind = "display, " if function.display else ""
        return f"{kind}{function.driver or 'no driver'}"


UNKNOWN = "unknown"


def shown(value: int | None, style: str = "") -> str:
    return UNKNOWN if value is None else format(value, style)
