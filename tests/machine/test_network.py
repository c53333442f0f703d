"""Adapters with RDMA and interfaces are read from sysfs, in the kernel's order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.machine.interfaces import from_device
from linkgauge.machine.read_inventory import read_inventory
from linkgauge.machine.tree import Captured
from linkgauge.model.hardware.inventory import Interface
from pci_kit import Bus

CLASS = "sys/class/infiniband"
INTERFACES = "sys/class/net"
PORT = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
NDR = {"state": "4: ACTIVE\n", "rate": "400 Gb/sec (4X NDR)\n", "link_layer": "InfiniBand\n"}
ROCE = {"state": "1: DOWN\n", "rate": "2.5 Gb/sec (1X SDR)\n", "link_layer": "Ethernet\n"}


def adapters(ports, *, target=PORT):
    """What is read of one adapter mlx5_0 below the function, with these ports' files."""
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
    return read_inventory(Captured(files, links)).adapters


@pytest.mark.parametrize(
    ("code", "vendor", "layer"),
    [
        ("0x020700", "0x15b3", "InfiniBand"), ("0x0c0600", "0x1077", "InfiniBand"),
        ("0x020000", "0x15b3", "Ethernet"), ("0x020000", "0x8086", None),
        ("0x010802", "0x15b3", None),
    ],
)  # fmt: skip
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
    bus.files[f"{CLASS}/other/node_type"] = b"1: CA\n"
    found = read_inventory(Captured(bus.files, bus.links))
    assert (found.pci, [one.name for one in found.adapters]) == ((), ["other"])


def test_an_adapter_has_its_function_state_rate_and_layer():
    (adapter,) = adapters({1: NDR})
    assert (adapter.name, adapter.pci, adapter.state) == ("mlx5_0", "0000:01:00.0", "active")
    assert (adapter.rate, adapter.link_layer, adapter.unknown) == (50e9, "InfiniBand", ())
    # A domain may have eight digits.
    (adapter,) = adapters({1: NDR}, target="sys/devices/pci10000:e0/10000:e1:00.0")
    assert adapter.pci == "10000:e1:00.0"


def test_each_of_several_ports_is_named():
    found = adapters({2: ROCE, 1: NDR, 10: NDR})
    assert [adapter.name for adapter in found] == ["mlx5_0:1", "mlx5_0:2", "mlx5_0:10"]
    assert (found[1].state, found[1].rate) == ("down", 312.5e6)
    assert {adapter.pci for adapter in found} == {"0000:01:00.0"}


def test_an_adapter_made_by_software_or_missing_says_so():
    (adapter,) = adapters({}, target="sys/devices/virtual")
    assert (adapter.pci, adapter.state, adapter.rate) == (None, None, None)
    assert [line.partition(":")[0] for line in adapter.unknown] == ["PCI address", "ports"]
    links = {f"{CLASS}/a": "b", f"{CLASS}/b": "a", f"{CLASS}/scif0": "../../devices/scif0"}
    found = read_inventory(Captured({}, links)).adapters
    assert [(one.name, one.pci) for one in found] == [("a", None), ("b", None), ("scif0", None)]


@given(st.dictionaries(st.sampled_from(["state", "rate", "link_layer"]), st.text(max_size=30)))
def test_garbled_ports_never_raise_and_say_what_is_missing(texts):
    (adapter,) = adapters({1: {"lid": "0x1", **texts}})
    told = {"state": adapter.state, "rate": adapter.rate, "link_layer": adapter.link_layer}
    missing = [line.partition(":")[0] for line in adapter.unknown]
    assert missing == [name for name, value in told.items() if value is None]


def test_a_software_device_names_its_interface():
    device = "sys/devices/virtual/infiniband/rxe0"
    files = {f"{INTERFACES}/eth0/ifindex": b"2\n", f"{device}/parent": b"eth0\n"}
    (eth,) = read_inventory(Captured(files, {f"{CLASS}/rxe0": f"../../../{device}"})).interfaces
    assert (eth.rdma, eth.up) == ("rxe0", None)


@given(
    st.dictionaries(
        st.sampled_from(["ifindex", "type", "flags", "operstate", "speed"]), st.binary(max_size=12)
    ),
    st.binary(max_size=80),
)
def test_no_files_content_raises(files, inet6):  # fmt: skip
    tree = {f"{INTERFACES}/eth0/{name}": content for name, content in files.items()}
    read_inventory(Captured({**tree, "proc/net/if_inet6": inet6}))


# Below one host bridge: a switch with a GPU and ports; another port; one below another bridge.
PATHS = {
    "0000:03:00.0": "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:03:00.0",
    "0000:04:00.0": "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:02.0/0000:04:00.0",
    "0000:05:00.1": "pci0000:00/0000:00:02.0/0000:05:00.1",
    "0000:41:00.0": "pci0000:40/0000:40:01.0/0000:41:00.0",
}


@pytest.mark.parametrize(
    ("gpu", "nics", "steps"),
    [
        ("0000:03:00.0", [*PATHS], [0, 4, 6, None]),
        ("0000:03:00.0", [None, "0000:77:00.0"], [None, None]),
        (None, [*PATHS], [None] * 4),
    ],
)
def test_steps_lead_up_to_the_bridge_that_both_are_below_and_down(gpu, nics, steps):
    links = {f"sys/bus/pci/devices/{at}": f"../../../devices/{path}" for at, path in PATHS.items()}
    files = {f"sys/devices/{path}/class": b"0x020000\n" for path in PATHS.values()}
    listed = [Interface(name=f"eth{n}", pci=nic) for n, nic in enumerate(nics)]
    assert [one.steps for one in from_device(listed, gpu, Captured(files, links))] == steps
