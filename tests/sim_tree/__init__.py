"""A machine's values as the files that its readers would find: /proc, /sys, configuration space.

What is rendered of a simulated machine's host and inventory reads back the same, down to the
reasons why fields are empty. So readers are tried on whole machines, and a simulation's values
are those that readers of such a machine would find.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from linkgauge.backends.sim.backend import SimBackend
from linkgauge.machine.tree import Captured
from linkgauge.model.hardware.inventory import Inventory, PciLink
from linkgauge.model.hardware.machine import Host

from .functions import pci_files
from .host import host_files


class Rendered(msgspec.Struct, frozen=True):
    """Contents of files and targets of symbolic links, by paths without the first slash."""

    files: dict[str, bytes]
    links: dict[str, str]


def render(host: Host, inventory: Inventory) -> Rendered:
    """The whole tree."""
    files, links = pci_files(inventory)
    files |= host_files(host, inventory.host)
    files["linkgauge/accelerators.json"] = msgspec.json.encode(inventory.accelerators, enc_hook=str)
    return Rendered(files, links)


def rendered(machine: SimBackend) -> Rendered:
    """A simulated machine as it is now."""
    return render(machine.host(), machine.look())


def tree_of(machine: SimBackend) -> Captured:
    """A simulated machine as it is now, for readers."""
    found = rendered(machine)
    return Captured(found.files, found.links)


def as_read(inventory: Inventory) -> Inventory:
    """The inventory but for why links are unknown: of one that is not described, readers can only
    say what its registers hold."""
    pci = tuple(
        msgspec.structs.replace(function, unknown=tuple(
            why for why in function.unknown if not why.startswith("link.")))
        if function.link == PciLink() else function
        for function in inventory.pci
    )  # fmt: skip
    return msgspec.structs.replace(inventory, pci=pci)


def write(tree: Rendered | Captured, folder: Path) -> None:
    """Writes the tree below `folder`. Raises OSError."""
    for path, content in tree.files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    for path, target in tree.links.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)
