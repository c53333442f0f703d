"""The PCI trees of two real machines are read exactly as their files have them.

The expectation is made here from the files alone. They are third-party data that is not part of
this project: where they are absent the tests are skipped.
"""

import os
import re
from pathlib import Path

import pytest

from linkgauge.machine.pci import read_pci
from linkgauge.model.inventory import PciFunction, PciLink
from linkgauge.model.pci_tree import PciTree

WITH_PHI, WITH_LINKS = "32em64t-2n8c+dax+nvme+mic+dimms", "40intel64-2g2n4c+pcilocality"
NO_GROUP = "iommu_group: the function is in no group: no IOMMU is in use, or none is visible"
NO_NODE = "numa_node: numa_node is -1: the firmware names none"
SHORT = "only 64 bytes of config space are readable: run as root"
REGISTERS = "port, link.target, max_payload, max_payload_supported, max_read_request, acs"
LINKS = {
    "link.speed": "current_link_speed",
    "link.width": "current_link_width",
    "link.max_speed": "max_link_speed",
    "link.max_width": "max_link_width",
}


@pytest.fixture(scope="module", params=[WITH_PHI, WITH_LINKS])
def machine(request, unpacked):
    return request.param, unpacked(request.param)


def devices(root):
    return root / "sys/bus/pci/devices"


def text(folder, name):
    return (folder / name).read_text().strip() if (folder / name).exists() else None


def real(root, address):
    """Where the link of a function leads."""
    place = Path(os.path.realpath(devices(root) / address))
    assert place.is_relative_to(root)
    return place


def wanted(root):
    """Accelerators and adapters with RDMA, and all that is above them by the shape of the path."""
    found = set()
    for link in devices(root).iterdir():
        folder = real(root, link.name)
        is_accelerator = text(folder, "class")[:4] in ("0x03", "0x0b", "0x12")
        if is_accelerator or (folder / "infiniband").exists():
            found |= {name for name in folder.parts if re.fullmatch("[0-9a-f:]+[.][0-7]", name)}
    return found


def expected(root, address):
    folder = real(root, address)
    header = (folder / "config").read_bytes()
    assert len(header) == 64
    speed, width = text(folder, "current_link_speed"), text(folder, "current_link_width")
    node = int(text(folder, "numa_node"))
    missing = ", ".join(field for field, name in LINKS.items() if text(folder, name) is None)
    above = folder.parent.name
    return PciFunction(
        address=address,
        vendor=int(text(folder, "vendor"), 16),
        device=int(text(folder, "device"), 16),
        class_code=int(text(folder, "class"), 16),
        revision=header[8],
        driver=(folder / "driver").readlink().name if (folder / "driver").is_symlink() else None,
        numa_node=None if node < 0 else node,
        parent=None if above.startswith("pci") else above,
        link=PciLink(
            speed=float(speed.split()[0]) if speed else None, width=int(width) if width else None
        ),
        display=text(folder, "vendor") in ("0x1a03", "0x102b") and header[11] == 3,
        unknown=(
            *([NO_NODE] if node < 0 else []),
            NO_GROUP,
            f"{REGISTERS}: {SHORT}",
            f"{missing}: sysfs has no attribute, and {SHORT}",
            "errors: sysfs has no aer_dev_* counters",
        ),
    )


def by_address(functions):
    return {function.address: function for function in functions}


def test_every_field_is_exact(machine):
    _, root = machine
    functions, unread = read_pci(root)
    assert by_address(functions) == {a: expected(root, a) for a in wanted(root)}
    assert [function.address for function in functions] == sorted(wanted(root))
    assert unread == ("names of PCI functions: no PCI ID database (package pci.ids)",)


def test_they_hold_what_is_known_of_them(machine):
    name, root = machine
    functions = by_address(read_pci(root)[0])
    drivers = {address: function.driver for address, function in functions.items()}
    displays = [address for address, function in functions.items() if function.display]
    if name == WITH_PHI:
        # A Xeon Phi, a ConnectX-3 and the console.
        assert drivers == {
            "0000:00:1c.0": "pcieport",
            "0000:04:00.0": None,
            "0000:05:00.0": None,
            "0000:80:02.2": "pcieport",
            "0000:80:03.0": "pcieport",
            "0000:82:00.0": "mlx4_core",
            "0000:83:00.0": "mic",
        }
        assert displays == ["0000:05:00.0"]
        assert functions["0000:83:00.0"].class_code == 0x0B4000
    else:
        # A QLogic InfiniBand adapter, whose class is that of a serial bus, and the console.
        assert drivers == {
            "0000:00:1e.0": None,
            "0000:09:03.0": None,
            "0000:40:03.0": "pcieport",
            "0000:43:00.0": "ib_qib",
        }
        assert displays == ["0000:09:03.0"]
        assert functions["0000:43:00.0"].link == PciLink(speed=8.0, width=4)
        assert (functions["0000:43:00.0"].numa_node, functions["0000:40:03.0"].numa_node) == (
            2,
            None,
        )


def test_paths_between_them(machine):
    name, root = machine
    tree = PciTree(read_pci(root)[0])
    if name == WITH_PHI:
        assert tree.distance("0000:82:00.0", "0000:83:00.0") == 4
        assert tree.topo_class("0000:82:00.0", "0000:83:00.0") == "PHB"
        assert tree.topo_class("0000:05:00.0", "0000:83:00.0") == "SYS"
    else:
        # The console's node is unknown.
        assert tree.distance("0000:09:03.0", "0000:43:00.0") == 4
        assert tree.topo_class("0000:09:03.0", "0000:43:00.0") is None
