"""Trees that are garbled, incomplete or lead astray are read as far as they make sense."""

import os

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.machine.pci import read_pci
from linkgauge.machine.tree import Captured
from linkgauge.model.inventory import PciFunction
from linkgauge.model.pci_tree import PciTree
from pci_kit import CARD, PORT, ROOT_PORT, Bus, config, read, why


def test_a_machine_without_a_pci_bus_says_so():
    functions, unread = read(Bus())
    assert functions == {}
    assert len(unread) == 1
    assert "container" in unread[0]


def test_links_that_lead_nowhere_are_told():
    bus = Bus()
    bus.links["sys/bus/pci/devices/0000:01:00.0"] = "../../../devices/pci0000:00/0000:01:00.0"
    bus.links["sys/bus/pci/devices/0000:02:00.0"] = "0000:03:00.0"
    bus.links["sys/bus/pci/devices/0000:03:00.0"] = "0000:02:00.0"
    bus.links["sys/bus/pci/devices/README"] = "."
    bus.add("pci0000:00/0000:00:01.0", **{"class": "garbage"})
    functions, unread = read(bus)
    assert functions == {}
    assert unread == (
        "PCI function 0000:00:01.0: neither class nor config is readable",
        "PCI function 0000:01:00.0: its link leads nowhere below the root",
        "PCI function 0000:02:00.0: its link leads nowhere below the root",
        "PCI function 0000:03:00.0: its link leads nowhere below the root",
        "PCI function 'README': not a PCI address",
    )


@pytest.mark.parametrize(
    ("address", "path", "reason"),
    [
        ("0000:01:00.0", f"{PORT}/0000:09:00.0", "its link leads to 'sys/devices/"),
        ("0000:01:00.0", f"{CARD}/0000:01:00.0", "its link leads to 'sys/devices/"),
        ("0000:01:00.0", "platform/0000:01:00.0", "its path has no host bridge"),
    ],
)
def test_a_place_that_makes_no_sense_has_no_parent(address, path, reason):
    bus = Bus()
    folder = bus.add(path)
    bus.links = {f"sys/bus/pci/devices/{address}": f"/{folder}"}
    function = read(bus)[0][address]
    assert function.parent is None
    assert function.vendor == 0x10DE
    assert why(function, "parent").startswith(reason)
    assert PciTree([function]).distance(address, address) is None


def test_a_tree_copied_without_links_is_read_but_for_its_shape():
    bus = Bus()
    for name, text in (("vendor", b"0x10de"), ("class", b"0x030200")):
        bus.files[f"sys/bus/pci/devices/0000:01:00.0/{name}"] = text
    function = read(bus)[0]["0000:01:00.0"]
    assert (function.vendor, function.parent) == (0x10DE, None)
    assert "no host bridge" in why(function, "parent")


def test_files_read_as_memory_does(tmp_path):
    bus = Bus()
    bus.bridge(PORT, config(port=ROOT_PORT, header=1), current_link_speed="Unknown")
    bus.add(CARD, config(size=256), numa_node="-1")
    bus.links["sys/bus/pci/devices/0000:07:00.0"] = "0000:07:00.0"
    bus.write(tmp_path)
    assert read_pci(tmp_path) == read_pci(Captured(bus.files, bus.links))


def test_a_captured_tree_leads_nowhere_outside(tmp_path):
    outside = Bus()
    outside.add(CARD)
    outside.write(tmp_path / "outside")
    inside = Bus()
    inside.links["sys/bus/pci/devices/0000:01:00.0"] = str(tmp_path / "outside/sys/devices" / CARD)
    inside.write(tmp_path / "inside")
    functions, unread = read_pci(tmp_path / "inside")
    assert functions == ()
    assert unread == ("PCI function 0000:01:00.0: its link leads nowhere below the root",)


ATTRIBUTES = [
    *("vendor", "device", "class", "revision", "numa_node", "current_link_speed"),
    *("current_link_width", "max_link_speed", "max_link_width", "boot_vga"),
    *("aer_dev_correctable", "aer_dev_fatal", "aer_dev_nonfatal", "config"),
]
GARBAGE = st.one_of(
    st.binary(max_size=300),
    st.sampled_from([b"0x", b"-1\n", b"0x030200", b"0xfffffffff", b"8.0 GT/s PCIe", b"\n", b"16"]),
)
TARGETS = st.sampled_from(
    [
        *("", ".", "..", "/", "0000:01:00.0", "0000:02:00.0", f"../../../devices/{CARD}"),
        *(f"../../../devices/{PORT}", "../../../devices/platform", "/sys/devices", "a\0b"),
    ]
)


@given(st.dictionaries(st.sampled_from(ATTRIBUTES), GARBAGE), TARGETS, TARGETS)
def test_garbled_trees_never_raise(files, one, other):
    bus = Bus()
    folder = bus.add(CARD)
    bus.bridge(PORT)
    bus.files |= {f"{folder}/{name}": content for name, content in files.items()}
    for name, target in (("0000:01:00.0", one), ("0000:02:00.0", other)):
        bus.links[f"sys/bus/pci/devices/{name}"] = target
    bus.links[f"{folder}/driver"] = one
    bus.links[f"{folder}/iommu_group"] = other
    functions, unread = read_pci(Captured(bus.files, bus.links))
    assert functions or unread
    for function in functions:
        assert msgspec.json.decode(msgspec.json.encode(function), type=PciFunction) == function
        for field in ("vendor", "device", "class_code", "numa_node", "iommu_group", "errors"):
            assert getattr(function, field) is not None or why(function, field)


def test_names_on_disk_that_are_no_text_do_no_harm(tmp_path):
    bus = Bus()
    bus.add(CARD)
    bus.links.clear()
    bus.write(tmp_path)
    odd = os.fsdecode(b"n\xff")
    (tmp_path / "sys/devices" / odd).symlink_to(f"{CARD}")
    (tmp_path / "sys/devices" / CARD / "driver").symlink_to(odd)
    listing = tmp_path / "sys/bus/pci/devices"
    listing.mkdir(parents=True)
    (listing / "0000:01:00.0").symlink_to(f"/sys/devices/{odd}")
    (listing / "0000:02:00.0").symlink_to(f"/sys/{odd}")
    (listing / odd).symlink_to(".")
    found = read_pci(tmp_path)
    assert [function.driver for function in found[0]][-1] == "n\ufffd"
    assert len(found[1]) == 3
    assert msgspec.json.encode(found)
