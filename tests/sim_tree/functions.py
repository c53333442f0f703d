"""The files of PCI functions: attributes of sysfs, links, groups of the IOMMU, the ID database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkgauge.model.hardware.inventory import Inventory, PciFunction

from .registers import Buses, config_space

_CORRECTABLE = (
    "RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout", "NonFatalErr", "CorrIntErr", "HeaderOF",
)  # fmt: skip
_UNCORRECTABLE = (
    "Undefined", "DLP", "SDES", "TLP", "FCP", "CmpltTO", "CmpltAbrt", "UnxCmplt", "RxOF",
    "MalfTLP", "ECRC", "UnsupReq", "ACSViol", "UncorrIntErr", "BlockedTLP", "AtomicOpBlocked",
    "TLPBlockedErr", "PoisonTLPBlocked",
)  # fmt: skip
_COUNTERS = {
    "correctable": (*_CORRECTABLE, "TOTAL_ERR_COR"),
    "fatal": (*_UNCORRECTABLE, "TOTAL_ERR_FATAL"),
    "nonfatal": (*_UNCORRECTABLE, "TOTAL_ERR_NONFATAL"),
}
_OF_A_BAD_LINK = ("BadTLP", "TOTAL_ERR_COR")
"""What counts a packet that comes garbled and is sent again."""


def pci_files(inventory: Inventory) -> tuple[dict[str, bytes], dict[str, str]]:
    """Files, and targets of symbolic links, by path."""
    files: dict[str, bytes] = {}
    links: dict[str, str] = {}
    domain = b"identity\n" if inventory.host.iommu == "passthrough" else b"DMA-FQ\n"
    tree = Tree(inventory.pci)
    for function in inventory.pci:
        path = tree.path(function)
        folder = f"sys/devices/{path}"
        files |= {f"{folder}/{name}": text for name, text in _files(function, tree)}
        links[f"sys/bus/pci/devices/{function.address}"] = f"../../../devices/{path}"
        group = function.iommu_group
        if group is not None:
            up = "../" * folder.count("/")
            links[f"{folder}/iommu_group"] = f"{up}kernel/iommu_groups/{group}"
            files[f"sys/kernel/iommu_groups/{group}/type"] = domain
            links[f"sys/kernel/iommu_groups/{group}/devices/{function.address}"] = (
                f"../../../../devices/{path}"
            )
    if not any(line.startswith("names of PCI functions") for line in inventory.unknown):
        files["usr/share/hwdata/pci.ids"] = _pci_ids(inventory.pci).encode()
    return files, links


class Tree:
    """Where functions stand: each below its parent, those without below a host bridge."""

    def __init__(self, functions: Sequence[PciFunction]) -> None:
        self._of = {function.address: function for function in functions}
        self._below: dict[str, list[str]] = {}
        for function in functions:
            self._below.setdefault(function.parent or "", []).append(function.address)

    def path(self, function: PciFunction) -> str:
        if function.parent is None:
            return f"pci{function.address.rpartition(':')[0]}/{function.address}"
        return f"{self.path(self._of[function.parent])}/{function.address}"

    def buses(self, address: str) -> Buses | None:
        """A bridge's: that of its own address, that of what is right below, the highest below."""
        below = self._below.get(address)
        if below is None:
            return None
        return Buses(_bus(address), _bus(below[0]), self._highest(address))

    def _highest(self, address: str) -> int:
        below = self._below.get(address, ())
        return max((_bus(address), *(self._highest(one) for one in below)))


def _bus(address: str) -> int:
    return int(address.split(":")[1], 16)


def _files(function: PciFunction, tree: Tree) -> Iterator[tuple[str, bytes]]:
    link, buses = function.link, tree.buses(function.address)
    texts = {
        "vendor": f"0x{function.vendor:04x}",
        "device": f"0x{function.device:04x}",
        "class": f"0x{function.class_code:06x}",
        "numa_node": str(function.numa_node),
        "current_link_speed": _speed(link.speed),
        "max_link_speed": _speed(link.max_speed),
        "current_link_width": str(link.width or 0),
        "max_link_width": str(link.max_width or 0),
    }
    if buses is not None:
        texts["secondary_bus_number"] = str(buses.secondary)
        texts["subordinate_bus_number"] = str(buses.subordinate)
    for name, text in texts.items():
        yield name, f"{text}\n".encode()
    for kind, counted in (function.errors or {}).items():
        yield f"aer_dev_{kind}", _counters(kind, counted).encode()
    yield "config", config_space(function, buses)


def _speed(speed: float | None) -> str:
    return f"{speed:.1f} GT/s PCIe" if speed else "Unknown"


def _counters(kind: str, counted: int) -> str:
    return "".join(
        f"{name} {counted if name in _OF_A_BAD_LINK else 0}\n" for name in _COUNTERS[kind]
    )


def _pci_ids(functions: Sequence[PciFunction]) -> str:
    """The PCI ID database of those that have a name, which begins with their maker's."""
    names = {
        (one.vendor, one.device): one.name.partition(" ")
        for one in functions
        if one.name is not None
    }
    return "# A few of those that there are.\n" + "".join(
        f"{vendor:04x}  {maker}\n\t{device:04x}  {name}\n"
        for (vendor, device), (maker, _, name) in names.items()
    )
