"""How interfaces are set up is read below any root, and what slows them is named with a remedy."""

import pytest
from msgspec.structs import replace

import fakes
from linkgauge.judge.doctor import interface_setup
from linkgauge.judge.findings import Evidence
from linkgauge.machine.ethtool import Drivers
from linkgauge.machine.interfaces import read_interfaces
from linkgauge.machine.tree import ROOT, Captured
from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.hardware.host_details import HostDetails
from linkgauge.model.hardware.inventory import Interface, Inventory
from linkgauge.model.hardware.network import CounterRise, InterfaceSetup
from linkgauge.model.notation import parse_transfers
from linkgauge.model.ranks import Rank
from linkgauge.model.transfer import Report
from remedy_kit import assert_pasteable

WELL = InterfaceSetup(
    able=25e9, fec="rs", rings=(1024, 1024, 8192, 8192), queues=(8, 63), irq_cpus=(0, 1, 2, 9),
    roce="v2", traffic_class=106,
)  # fmt: skip
LINK = """Settings for eth0:
\tSupported ports: [ FIBRE ]
\tSupported link modes:   25000baseCR/Full
\t                        50000baseCR2/Full
\t                        100000baseCR4/Full
\tSupported pause frame use: Symmetric
\tAdvertised link modes:  25000baseCR/Full
\tLink partner advertised link modes:  25000baseCR/Full
\t                                     100000baseCR4/Full
\tSpeed: 25000Mb/s
"""
FEATURES = """Features for eth0:
rx-checksumming: on
tx-checksumming: on
\ttx-checksum-ipv4: off [fixed]
scatter-gather: on
tcp-segmentation-offload: off
generic-receive-offload: off [fixed]
"""
DEVICE = "sys/devices/pci0000:00/0000:01:00.0"


def evidence(setup, *rises, other=None):
    nics = [
        Interface(name="eth0", up=True, kind="Ethernet", speed=25e9, mtu=9000, node=0,
                  pci="0000:01:00.0", rdma="mlx5_0", setup=one)
        for one in (setup, other or setup)
    ]  # fmt: skip
    host = HostDetails(node_cpus={0: tuple(range(8)), 1: tuple(range(8, 16))})
    machine = replace(
        fakes.machine(), inventory=Inventory(host=host, interfaces=(nics[0],)),
        ranks=tuple(Rank(n, f"node{n}", 1, nics=(nic,)) for n, nic in enumerate(nics)),
    )  # fmt: skip
    transfers = parse_transfers("host:0@0 -> host:0@1 by nic:0.rdma")
    cell = CellResult("0", "1", transfers, Report.FIRST, "pass", bytes=1 << 20, rises=rises)
    result = Result(
        benchmark="copy", title="copy", backend="net", size=1 << 20, unit="B/s", better="higher",
        status="pass", cells=(cell,),
    )  # fmt: skip
    return Evidence(machine, results=(result,))


def found(*given, **more):
    known = evidence(*given, **more)
    checks = interface_setup.check_setup, interface_setup.check_ends
    findings = [finding for check in checks for finding in check(known)]
    assert_pasteable(findings)
    return [finding.found for finding in findings]


FULL = CounterRise(0, "ethtool", "eth0", 2.0, {"rx_out_of_buffer": 12})
BROKEN = CounterRise(0, "ethtool", "eth0", 2.0, {"rx_symbol_err_phy": 12})


@pytest.mark.parametrize(
    ("change", "rises", "words"),
    [
        ({"able": 50e9}, (), "eth0: the link runs at 200 Gb/s, and both ends can 400"),
        ({"fec": "off"}, (BROKEN,), "eth0: errors of the link are not corrected (FEC is off)"),
        ({}, (FULL,), "eth0: its receive ring has 1024 of 8192 entries, and packets found no room"),
        ({"queues": (1, 63)}, (), "eth0: it uses 1 of 63 queues"),
        ({"irq_cpus": (8, 9, 10, 0)}, (), "eth0: CPUs of other NUMA nodes handle 3 of its 4"),
        ({"off": ("tso", "gro")}, (), "eth0: offloads are off: tso, gro"),
        ({"roce": "v1"}, (), "eth0: RoCE uses version 1 by default"),
    ],
)  # fmt: skip
def test_what_slows_an_interface_is_named(change, rises, words):
    (said,) = found(replace(WELL, **change), *rises)
    assert said.startswith(words)


@pytest.mark.parametrize("change", [{}, {"fec": "off"}, {"rings": None, "able": None}])
def test_well_or_unknown_settings_are_silent(change):
    assert not found(replace(WELL, **change))


def test_settings_that_differ_between_both_ends_are_named():
    (said,) = found(WELL, other=replace(WELL, traffic_class=0))
    assert said.endswith("different traffic classes: nic:0@0 (eth0) 106 and nic:0@1 (eth0) 0")


def test_settings_are_read_below_any_root():
    files = {
        f"{DEVICE}/net/eth0/ifindex": "2\n", f"{DEVICE}/msi_irqs/40": "msix\n",
        f"{DEVICE}/msi_irqs/41": "msix\n", "proc/irq/40/effective_affinity_list": "9\n",
        "proc/irq/41/smp_affinity_list": "3-7\n",
        f"{DEVICE}/infiniband/mlx5_0/node_type": "1: CA\n",
        "sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode": "RoCE v2\n",
        "sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos": "106\n",
        "linkgauge/tools/ethtool_eth0.txt": LINK, "linkgauge/tools/ethtool_-k_eth0.txt": FEATURES,
    }  # fmt: skip
    links = {
        "sys/class/net/eth0": f"../../../{DEVICE}/net/eth0",
        f"{DEVICE}/net/eth0/device": "../../../0000:01:00.0",
        "sys/class/infiniband/mlx5_0": f"../../../{DEVICE}/infiniband/mlx5_0",
        f"{DEVICE}/infiniband/mlx5_0/device": "../../../0000:01:00.0",
    }
    root = Captured({path: text.encode() for path, text in files.items()}, links)
    (nic,) = read_interfaces(root)
    assert nic.setup == InterfaceSetup(
        able=12.5e9, irq_cpus=(9, 3), off=("tso",), roce="v2", traffic_class=106
    )


def test_the_kernel_answers_for_this_machines_interfaces():
    drivers = Drivers()
    for name in ROOT.names("sys/class/net"):
        assert {*drivers.off(name)} <= {"tso", "gro", "rx", "tx", "sg"}
        assert drivers.able(name) is None or drivers.able(name) > 0
        drivers.rings(name), drivers.channels(name), drivers.fec(name)
    assert drivers.off("no such interface") == ()
