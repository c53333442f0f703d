"""Names of PCI functions, from the PCI ID database if the machine has one."""

from __future__ import annotations

from collections.abc import Iterable

from .tree import Root, read_text

PLACES = (
    "usr/share/hwdata/pci.ids",
    "usr/share/misc/pci.ids",
    "usr/share/pci.ids",
    "var/lib/pciutils/pci.ids",
)


def read_names(root: Root, wanted: Iterable[tuple[int, int]]) -> dict[tuple[int, int], str] | None:
    """Names of (vendor, device): `NVIDIA Corporation GH100 [H200 SXM 141GB]`; a device that is not
    in the database is named by its number, as in lspci. None if there is no database."""
    texts = (read_text(root, place) for place in PLACES)
    text = next((text for text in texts if text), None)
    return None if text is None else find_names(text, wanted)


def find_names(text: str, wanted: Iterable[tuple[int, int]]) -> dict[tuple[int, int], str]:
    """Looks up names in a database's text. Vendors that are not in it get no name."""
    pairs = set(wanted)
    vendors = {f"{vendor:04x}": vendor for vendor, _ in pairs}
    numbers = {(vendor, f"{device:04x}"): (vendor, device) for vendor, device in pairs}
    makers: dict[int, str] = {}
    devices: dict[tuple[int, int], str] = {}
    vendor: int | None = None
    for line in text.splitlines():
        # A subsystem's line begins with two tabs; classes follow the vendors: C 03 ...
        if line[:1] not in ("\t", "#", ""):
            vendor = vendors.get(line[:4].lower()) if line[4:6] == "  " else None
            if vendor is not None:
                makers[vendor] = line[4:].strip()
        elif vendor is not None and line[:1] == "\t" and line[1:2] != "\t":
            number, _, name = line[1:].partition("  ")
            if pair := numbers.get((vendor, number.lower())):
                devices[pair] = name.strip()
    return {
        pair: f"{makers[pair[0]]} {devices.get(pair) or f'Device {pair[1]:04x}'}"
        for pair in pairs
        if pair[0] in makers
    }
