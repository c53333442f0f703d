"""Everything that a machine's files show besides its host's names and sizes."""

from __future__ import annotations

from linkgauge.model.inventory import Inventory

from .accelerators import read_accelerators
from .details import read_details
from .interfaces import read_interfaces
from .network import adapters_by_class, has_class, read_adapters
from .pci import read_pci
from .tree import ROOT, Root


def read_inventory(root: Root = ROOT) -> Inventory:
    """What can be read below `root`; each part says what could not, and why. Never raises.

    For this machine the accelerators are missing: only their libraries report them.
    """
    pci, no_pci = read_pci(root)
    accelerators, no_accelerators = read_accelerators(root)
    return Inventory(
        host=read_details(root),
        pci=pci,
        accelerators=accelerators,
        adapters=read_adapters(root) if has_class(root) else adapters_by_class(pci),
        interfaces=read_interfaces(root),
        unknown=(*no_pci, *no_accelerators),
    )
