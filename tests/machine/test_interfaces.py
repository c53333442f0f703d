"""Network interfaces are read from sysfs, in the kernel's order."""

from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.machine.interfaces import INTERFACES, from_device, read_interfaces
from linkgauge.machine.network import ADAPTERS
from linkgauge.machine.tree import Captured
from linkgauge.model.inventory import Interface

PORT = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
VIRTUAL = "sys/devices/virtual/net"
V6 = (
    "00000000000000000000000000000001 01 80 10 80       lo\n"
    "fe800000000000000000000000000001 04 40 20 80     eth0\n"
    "20010db8000000000000000000000007 04 40 00 80     eth0\n"
)


def machine():
    """A loopback, a port with RDMA that is up, one without a link, and InfiniBand without IP."""
    eth0, eth1, ib = f"{PORT}/net/eth0", f"{VIRTUAL}/dummy0", f"{PORT}/infiniband/mlx5_0"
    lone = "sys/devices/pci0000:40/0000:40:01.0/infiniband/mlx5_9"
    files = {
        f"{VIRTUAL}/lo/ifindex": b"1\n", f"{VIRTUAL}/lo/type": b"772\n",
        f"{VIRTUAL}/lo/flags": b"0x9\n", f"{VIRTUAL}/lo/operstate": b"unknown\n",
        f"{eth1}/ifindex": b"2\n", f"{eth1}/type": b"1\n", f"{eth1}/flags": b"0x1003\n",
        f"{eth1}/operstate": b"down\n", f"{eth1}/speed": b"-1\n",
        f"{eth0}/ifindex": b"7\n", f"{eth0}/type": b"1\n", f"{eth0}/flags": b"0x1003\n",
        f"{eth0}/operstate": b"up\n", f"{eth0}/speed": b"100000\n",
        f"{PORT}/numa_node": b"1\n",
        f"{ib}/ports/1/state": b"4: ACTIVE\n",
        f"{lone}/ports/1/state": b"4: ACTIVE\n",
        "sys/devices/pci0000:40/0000:40:01.0/numa_node": b"-1\n",
        "proc/net/if_inet6": V6.encode(),
    }  # fmt: skip
    links = {
        f"{INTERFACES}/lo": "../../devices/virtual/net/lo",
        f"{INTERFACES}/dummy0": "../../devices/virtual/net/dummy0",
        f"{INTERFACES}/eth0": f"../../../{eth0}",
        f"{eth0}/device": "../../../0000:01:00.0",
        f"{PORT}/driver": "../../../../bus/pci/drivers/mlx5_core",
        f"{ADAPTERS}/mlx5_0": f"../../../{ib}",
        f"{ib}/device": "../../../0000:01:00.0",
        f"{ADAPTERS}/mlx5_9": f"../../../{lone}",
        f"{lone}/device": "../../../0000:40:01.0",
    }
    return Captured(files, links)


def test_they_are_numbered_as_the_kernel_does_and_devices_without_an_interface_come_last():
    lo, dummy, eth, lone = read_interfaces(machine())
    assert lo == Interface(name="lo", up=True, kind="loopback", addresses=("::1",))
    assert lo.is_loopback
    assert dummy == Interface(name="dummy0", up=False, kind="Ethernet")
    assert eth == Interface(
        name="eth0",
        up=True,
        kind="Ethernet",
        addresses=("2001:db8::7",),
        driver="mlx5_core",
        speed=12.5e9,
        node=1,
        pci="0000:01:00.0",
        rdma="mlx5_0",
    )
    assert lone == Interface(
        name="mlx5_9", up=True, kind="InfiniBand", pci="0000:40:01.0", rdma="mlx5_9"
    )


def test_a_software_device_names_its_interface():
    device = "sys/devices/virtual/infiniband/rxe0"
    files = {
        f"{INTERFACES}/eth0/ifindex": b"2\n",
        f"{device}/parent": b"eth0\n",
    }
    (eth,) = read_interfaces(Captured(files, {f"{ADAPTERS}/rxe0": f"../../../{device}"}))
    assert (eth.rdma, eth.up) == ("rxe0", None)


def test_this_machines_loopback_has_its_address():
    first = read_interfaces()[0]
    assert first.is_loopback
    assert "127.0.0.1" in first.addresses


@given(
    st.dictionaries(
        st.sampled_from(["ifindex", "type", "flags", "operstate", "speed"]), st.binary(max_size=12)
    ),
    st.binary(max_size=80),
)
def test_no_files_content_raises(files, inet6):  # fmt: skip
    tree = {f"{INTERFACES}/eth0/{name}": content for name, content in files.items()}
    read_interfaces(Captured({**tree, "proc/net/if_inet6": inet6}))


@pytest.mark.parametrize(
    "line",
    ["zz 01 40 20 80 eth0", "0 01 40 20 80 eth0", f"{'0' * 34} 01 40 20 80 eth0", "fe80 eth0", ""],
)
def test_a_line_that_has_no_address_is_left_out(line):
    files = {f"{INTERFACES}/eth0/ifindex": b"7\n", "proc/net/if_inet6": f"{line}\n{V6}".encode()}
    (eth,) = read_interfaces(Captured(files))
    assert eth.addresses == ("2001:db8::7",)


class TestFromADevice:
    """Below one host bridge: a switch with a GPU and ports; another port; one below another."""

    PATHS: ClassVar[dict[str, str]] = {
        "0000:03:00.0": "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:03:00.0",
        "0000:04:00.0": "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:02.0/0000:04:00.0",
        "0000:05:00.1": "pci0000:00/0000:00:02.0/0000:05:00.1",
        "0000:41:00.0": "pci0000:40/0000:40:01.0/0000:41:00.0",
    }

    def steps(self, gpu, nics):
        links = {f"sys/bus/pci/devices/{at}": f"../../../devices/{path}"
                 for at, path in self.PATHS.items()}  # fmt: skip
        files = {f"sys/devices/{path}/class": b"0x020000\n" for path in self.PATHS.values()}
        listed = [Interface(name=f"eth{n}", pci=nic) for n, nic in enumerate(nics)]
        return [one.steps for one in from_device(listed, gpu, Captured(files, links))]

    def test_steps_lead_up_to_the_bridge_that_both_are_below_and_down(self):
        assert self.steps("0000:03:00.0", self.PATHS) == [0, 4, 6, None]

    def test_what_has_no_place_on_pci_is_nowhere(self):
        assert self.steps("0000:03:00.0", [None, "0000:77:00.0"]) == [None, None]
        assert self.steps(None, self.PATHS) == [None] * 4
