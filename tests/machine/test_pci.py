"""The PCI tree is read as sysfs shows it, and what is garbled is null with its reason."""

from operator import attrgetter

import pytest

from linkgauge.model.hardware.inventory import PciLink
from pci_kit import AER, CARD, PORT, ROOT_PORT, Bus, config, read, why


def card(space=None, links=(), **attributes):
    """A card alone below a port."""
    bus = Bus()
    folder = bus.add(CARD, space, **attributes)
    bus.links |= {f"{folder}/{name}": target for name, target in links}
    return read(bus)[0]["0000:01:00.0"]


SPEEDS = (
    *(("2.5 GT/s", 2.5), ("5 GT/s", 5.0), ("8.0 GT/s PCIe", 8.0), ("64.0 GT/s PCIe", 64.0)),
    *((text, None) for text in ("Unknown speed", "", "7 GT/s", "8", "٨ GT/s", "1e1 GT/s")),
)
WIDTHS = (
    *(("1", 1), ("16", 16), ("32", 32), ("12", 12)),
    *((text, None) for text in ("0", "63", "255", "3", "x16", "-1")),
)
NODES = (("0", 0), ("35", 35), ("-1", None), ("x", None))


@pytest.mark.parametrize(
    ("attribute", "field", "text", "value"),
    [
        *(("current_link_speed", "link.speed", *each) for each in SPEEDS),
        *(("max_link_speed", "link.max_speed", *each) for each in SPEEDS),
        *(("current_link_width", "link.width", *each) for each in WIDTHS),
        *(("max_link_width", "link.max_width", *each) for each in WIDTHS),
        *(("numa_node", "numa_node", *each) for each in NODES),
    ],
)
def test_an_attribute_is_what_the_kernel_means_or_null_with_its_reason(
    attribute, field, text, value
):
    function = card(**{attribute: text})
    assert attrgetter(field)(function) == value
    if value is None:
        none = (attribute, text) == ("numa_node", "-1")
        reason = "is -1: the firmware names none" if none else f"{attribute} is {text!r}"
        assert reason in why(function, field)


@pytest.mark.parametrize(
    ("vendor", "code", "boot", "display"),
    [
        ("0x1a03", "0x030000", "1", True), ("0x102b", "0x030000", None, True),
        ("0x18ca", "0x030000", "0", False), ("0x10de", "0x030000", "1", False),
        ("0x1a03", "0x120000", None, False),
    ],
)  # fmt: skip
def test_what_only_shows_the_console_is_a_display(vendor, code, boot, display):
    assert card(vendor=vendor, boot_vga=boot, **{"class": code}).display is display


def test_a_card_that_sleeps_is_not_gone_and_its_link_says_nothing():
    asleep = card(b"\xff" * 64, power_state="D3cold", current_link_speed="2.5 GT/s PCIe")
    assert (asleep.silent, asleep.link.speed, asleep.link.width) == (False, None, None)
    assert "it sleeps (power_state is D3cold)" in why(asleep, "link.speed")
    assert card(power_state="D0", current_link_speed="2.5 GT/s PCIe").link.speed == 2.5


def test_without_root_the_reason_names_all_that_only_registers_tell():
    function = card(config(size=64), current_link_speed="8.0 GT/s PCIe")
    assert function.link == PciLink(speed=8.0)
    assert "run as root" in why(function, "max_payload")
    for field in ("port", "link.target", "max_payload_supported", "max_read_request", "acs"):
        assert why(function, field) == why(function, "max_payload")
    assert "sysfs has no such file, and only 64 bytes" in why(function, "link.width")


def test_a_virtual_function_has_the_link_of_its_physical_one():
    bus = Bus()
    bus.bridge(PORT, config(port=ROOT_PORT))
    texts = {"current_link_speed": "32.0 GT/s PCIe", "current_link_width": "16"}
    bus.add(CARD, config(payload=2, request=5), **texts)
    reserved = config(vendor=0xFFFF, device=0xFFFF, speed=0, width=0, payload=0, request=0)
    unknown = {"current_link_speed": "Unknown", "current_link_width": "0"}
    folder = bus.add(f"{PORT}/0000:01:00.1", reserved, **unknown)
    bus.links[f"{folder}/physfn"] = "../0000:01:00.0"
    function = read(bus)[0]["0000:01:00.1"]
    assert (function.link.speed, function.link.width) == (32.0, 16)
    assert (function.max_payload, function.max_read_request) == (512, 4096)
    assert (function.vendor, function.silent) == (0x10DE, False)


def test_error_counters_are_null_for_a_reason():
    assert card(config()).errors is None
    assert why(card(config()), "errors") == "the function has no AER capability"
    assert "kernel counts no errors" in why(card(config(extended=[AER])), "errors")
    assert "sysfs has no aer_dev_* counters" in why(card(config(size=64)), "errors")
    garbled = card(aer_dev_fatal="DLP x", aer_dev_correctable="RxErr 1")
    assert garbled.errors == {"correctable": 1}
    assert why(garbled, "errors") == "aer_dev_fatal is garbled"
    assert card(aer_dev_fatal="").errors is None


def test_links_of_driver_and_group_may_lead_nowhere():
    assert card(links=[("driver", "/gone/nvidia/")]).driver == "nvidia"
    assert card().driver is None
    function = card(links=[("iommu_group", "../groups/seven")])
    assert function.iommu_group is None
    assert why(function, "iommu_group") == "its link leads to 'seven'"
    assert "no IOMMU is in use" in why(card(), "iommu_group")


@pytest.mark.parametrize(
    ("code", "counts"),
    [
        *(("0x030000", True), ("0x030200", True), ("0x038000", True), ("0x120000", True)),
        *(("0x0b4000", True), ("0x010802", False), ("0x020000", False), ("0x060400", False)),
    ],
)
def test_accelerators_are_found_by_class(code, counts):
    bus = Bus()
    bus.add(CARD, **{"class": code})
    assert list(read(bus)[0]) == (["0000:00:01.0", "0000:01:00.0"] if counts else [])


@pytest.mark.parametrize("code", ["0x020000", "0x028000", "0x0c0600"])
def test_adapters_count_where_they_have_rdma(code):
    bus = Bus()
    folder = bus.add(CARD, **{"class": code})
    bus.files[f"{folder}/infiniband/mlx5_0/node_type"] = b"1: CA\n"
    assert list(read(bus)[0]) == ["0000:00:01.0", "0000:01:00.0"]


def test_long_domains_below_a_host_bridge_within_the_tree():
    # As Intel's VMD makes them: a domain of its own below a function.
    bus = Bus()
    bus.add("pci0000:e0/0000:e0:05.5/pci10000:e0/10000:e0:06.0/10000:e1:00.0")
    functions, unread = read(bus)
    parents = {address: function.parent for address, function in functions.items()}
    assert parents == {"10000:e0:06.0": None, "10000:e1:00.0": "10000:e0:06.0"}
    assert not [reason for reason in unread if "name" not in reason]


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


IDS = b"""#
# List of PCI ID's

1000  Broadcom / LSI
\tc010  PEX890xx PCIe Gen 5 Switch
\t\t1000 a064  A board
1eff  Rebellions Inc.
\t1250  RBLN-CA25
C 03  Display controller
\t00  VGA compatible controller
"""


@pytest.mark.parametrize(
    ("vendor", "device", "name"),
    [
        ("0x1000", "0xc010", "Broadcom / LSI PEX890xx PCIe Gen 5 Switch"),
        ("0x1eff", "0x1250", "Rebellions Inc. RBLN-CA25"),
        ("0x1eff", "0xc010", "Rebellions Inc. Device c010"),
        ("0x1000", "0xa064", "Broadcom / LSI Device a064"),
        ("0x000c", "0x0000", None),
    ],
)
def test_names_are_of_the_machines_database(vendor, device, name):
    bus = Bus()
    bus.add(CARD, vendor=vendor, device=device)
    assert any("pci.ids" in reason for reason in read(bus)[1])
    bus.files["usr/share/misc/pci.ids"] = IDS
    functions, unread = read(bus)
    assert (functions["0000:01:00.0"].name, unread) == (name, ())
