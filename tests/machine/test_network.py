"""Adapters with RDMA are read from sysfs, a port at a time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.machine.network import read_adapters
from linkgauge.machine.read_inventory import read_inventory
from linkgauge.machine.tree import Captured
from pci_kit import Bus

CLASS = "sys/class/infiniband"
FUNCTION = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"


def machine(ports, *, target=FUNCTION):
    """One adapter mlx5_0 below the function, with these ports' files."""
    device = f"{target}/infiniband/mlx5_0"
    files = {f"{device}/node_type": b"1: CA\n"} | {
        f"{device}/ports/{port}/{name}": text.encode()
        for port, texts in ports.items()
        for name, text in texts.items()
    }
    links = {
        f"{CLASS}/mlx5_0": f"../../../{device}",
        f"{device}/device": f"../../../{target.rpartition('/')[2]}",
    }
    return Captured(files, links)


NDR = {"state": "4: ACTIVE\n", "rate": "400 Gb/sec (4X NDR)\n", "link_layer": "InfiniBand\n"}
ROCE = {"state": "1: DOWN\n", "rate": "2.5 Gb/sec (1X SDR)\n", "link_layer": "Ethernet\n"}


@pytest.mark.parametrize(
    ("code", "vendor", "layer"),
    [
        ("0x020700", "0x15b3", "InfiniBand"),
        ("0x0c0600", "0x1077", "InfiniBand"),
        ("0x020000", "0x15b3", "Ethernet"),
        ("0x020000", "0x8086", None),
        ("0x010802", "0x15b3", None),
    ],
)
def test_without_a_driver_adapters_are_told_by_their_class(code, vendor, layer):
    bus = Bus()
    bus.add("pci0000:00/0000:00:01.0", **{"class": code, "vendor": vendor})
    found = read_inventory(Captured(bus.files, bus.links))
    assert [(one.name, one.link_layer) for one in found.adapters] == (
        [("0000:00:01.0", layer)] if layer else []
    )
    assert [function.address for function in found.pci] == [one.name for one in found.adapters]
    assert all("load the driver" in one.unknown[0] for one in found.adapters)
    # Where the kernel lists adapters, one that is missing there does no RDMA.
    bus.files["sys/class/infiniband/other/node_type"] = b"1: CA\n"
    found = read_inventory(Captured(bus.files, bus.links))
    assert (found.pci, [one.name for one in found.adapters]) == ((), ["other"])


def test_an_adapter_has_its_function_state_rate_and_layer():
    (adapter,) = read_adapters(machine({1: NDR}))
    assert (adapter.name, adapter.pci, adapter.state) == ("mlx5_0", "0000:01:00.0", "active")
    assert (adapter.rate, adapter.link_layer, adapter.unknown) == (50e9, "InfiniBand", ())


def test_each_of_several_ports_is_named():
    adapters = read_adapters(machine({2: ROCE, 1: NDR, 10: NDR}))
    assert [adapter.name for adapter in adapters] == ["mlx5_0:1", "mlx5_0:2", "mlx5_0:10"]
    assert (adapters[1].state, adapters[1].rate) == ("down", 312.5e6)
    assert {adapter.pci for adapter in adapters} == {"0000:01:00.0"}


def test_a_domain_may_have_eight_digits():
    (adapter,) = read_adapters(machine({1: NDR}, target="sys/devices/pci10000:e0/10000:e1:00.0"))
    assert adapter.pci == "10000:e1:00.0"


def test_a_machine_without_adapters_has_none(tmp_path):
    assert read_adapters(tmp_path) == read_adapters(Captured({})) == ()


def test_an_adapter_made_by_software_or_missing_says_so():
    (adapter,) = read_adapters(machine({}, target="sys/devices/virtual"))
    assert (adapter.pci, adapter.state, adapter.rate) == (None, None, None)
    assert [line.partition(":")[0] for line in adapter.unknown] == ["PCI address", "ports"]
    (dangling,) = read_adapters(Captured({}, {f"{CLASS}/scif0": "../../devices/scif0"}))
    assert (dangling.name, dangling.pci) == ("scif0", None)


def test_links_that_loop_are_a_missing_adapter():
    loop = {f"{CLASS}/a": "b", f"{CLASS}/b": "a"}
    assert [adapter.pci for adapter in read_adapters(Captured({}, loop))] == [None, None]


@given(st.dictionaries(st.sampled_from(["state", "rate", "link_layer"]), st.text(max_size=30)))
def test_garbled_ports_never_raise_and_say_what_is_missing(texts):
    (adapter,) = read_adapters(machine({1: {"lid": "0x1", **texts}}))
    told = {"state": adapter.state, "rate": adapter.rate, "link_layer": adapter.link_layer}
    missing = [line.partition(":")[0] for line in adapter.unknown]
    assert missing == [name for name, value in told.items() if value is None]


@pytest.mark.parametrize(
    ("archive", "expected"),
    [
        (
            "32em64t-2n8c+dax+nvme+mic+dimms",
            [
                ("mlx4_0", "0000:82:00.0", "active", 7e9, "InfiniBand"),
                ("scif0", None, None, None, None),
            ],
        ),
        (
            "40intel64-2g2n4c+pcilocality",
            [("qib0", "0000:43:00.0", "active", 5e9, "InfiniBand")],
        ),
    ],
)
def test_adapters_of_captured_hosts_are_exact(unpacked, archive, expected):
    adapters = read_adapters(unpacked(archive))
    assert [(a.name, a.pci, a.state, a.rate, a.link_layer) for a in adapters] == expected
