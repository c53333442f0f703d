"""Counters of networks are read below any root: those of real adapters of five drivers, and of this
machine."""

import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from linkgauge.judge.network_counters import meaning_of
from linkgauge.machine.ethtool import Drivers
from linkgauge.machine.network_counters import CounterReader, interface_counters, rdma_counters
from linkgauge.machine.tree import ROOT, Captured
from linkgauge.model.hardware.inventory import Interface
from linkgauge.model.hardware.network import (
    CounterRise,
    NetworkCounters,
    joined_rises,
    rises,
)

DATA = Path(__file__).parents[1] / "data" / "network"
DRIVERS = {  # a counter, the lines that it sums, what it counts; how many counters no row names
    "bnxt_en": ("[N]: rx_discards", r"\[\d+\]: rx_discards", "no room", 18),
    "ena": ("queue_N_rx_cnt", r"queue_\d+_rx_cnt", "traffic", 20),
    "ice": ("rx_dropped.nic", r"rx_dropped\.nic", "no room", 10),
    "mlx5_core": ("rx_out_of_buffer", "rx_out_of_buffer", "no room", 24),
    "virtio_net": ("tx_queue_N_bytes", r"tx_queue_\d+_bytes", "traffic", 0),
}


def captured(**texts):
    """A captured machine with the output of tools."""
    files = {f"linkgauge/tools/{name}.txt": text for name, text in texts.items()}
    return Captured({name: text.encode() for name, text in files.items()})


@pytest.mark.parametrize("driver", DRIVERS)
def test_counters_of_real_adapters_are_read_and_unknown_names_are_kept(driver):
    text = (DATA / f"ethtool-S-{driver}.txt").read_text()
    found = Drivers(captured(**{"ethtool_-S_eth0": text})).counters("eth0")
    name, form, kind, most = DRIVERS[driver]
    assert meaning_of("ethtool", name).kind == kind
    assert found[name] == sum(map(int, re.findall(rf"(?m)^ *{form}: (\d+)$", text)))
    unknown = [one for one in found if meaning_of("ethtool", one) is None]
    assert len(unknown) <= most, unknown
    numbered = [line for line in text.splitlines() if line.rpartition(":")[2].strip().isdigit()]
    summed = sum(int(line.rpartition(":")[2]) for line in numbered)
    assert sum(found.values()) == summed  # nothing is lost by summing queues


def test_files_of_infiniband_ports_are_read_and_what_is_no_number_is_left_out():
    lines = (DATA / "infiniband.txt").read_text().splitlines()
    files = dict(line.split(": ", 1) for line in lines)
    files["sys/class/infiniband/mlx5_0/ports/1/counters/VL15_dropped"] = "N/A (no PMA)"
    root = Captured({path: f"{text}\n".encode() for path, text in files.items()})
    found = rdma_counters(root, "mlx5_0", "1")
    assert found["local_ack_timeout_err"] == 131
    assert found["symbol_error"] == 0
    assert not {"VL15_dropped", "lifespan"} & found.keys()
    kinds = {name: one.kind for name in found if (one := meaning_of("rdma", name)) is not None}
    assert kinds["local_ack_timeout_err"] == "sent again"
    assert kinds["link_downed"] == "down"
    assert "req_cqe_error" in found.keys() - kinds.keys()


@pytest.mark.parametrize(
    ("file", "known", "unknown"),
    [
        ("efa", {"tx_pkts": "traffic", "rx_drops": "dropped", "rdma_read_wrs": "traffic"},
         r"(alloc_\w+|cmds|create_\w+|mmap|reg_mr|rdma_read_wr)_err|no_completion_cmds"),
        ("efa-nitro4", {
            "retrans_pkts": "sent again", "retrans_bytes": "traffic",
            "retrans_timeout_events": "sent again", "rdma_write_recv_bytes": "traffic",
        }, "rdma_(read|write)_wr_err"),
        ("irdma", {
            "tcpRetransSegs": "sent again", "tcpOutSegs": "traffic", "cnpHandled": "marked",
            "ip4InDiscards": "dropped", "ip6InTruncatedPkts": "no room", "RxUDP": "traffic",
        }, "ip[46](InReasm|OutSeg)Rqd|tcpInOptErrors"),
    ],
)  # fmt: skip
def test_files_of_rdma_adapters_are_read_and_unknown_names_are_kept(file, known, unknown):
    lines = (DATA / f"hw_counters-{file}.txt").read_text().splitlines()
    counts = dict(line.split(": ") for line in lines)
    place = "sys/class/infiniband/rdmap0s31/ports/1/hw_counters"
    root = Captured({f"{place}/{name}": f"{text}\n".encode() for name, text in counts.items()})
    found = rdma_counters(root, "rdmap0s31", "1")
    counts.pop("lifespan", None)
    assert found == {name: int(text) for name, text in counts.items()}
    kinds = {name: one and one.kind for name in found for one in [meaning_of("rdma", name)]}
    assert known.items() <= kinds.items()
    assert all(bool(re.fullmatch(unknown, name)) == (kinds[name] is None) for name in found), kinds


def test_this_machines_counters_rise_with_what_it_sends():
    loopback = Interface(name="lo")
    reader = CounterReader([loopback])
    before = reader.read()
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as end,
        server.accept()[0] as other,
    ):
        end.sendall(bytes(1 << 16))
        other.recv(1 << 16, socket.MSG_WAITALL)
    found = {one.source: one for one in rises(before, reader.read(), 0.5, rank=3)}
    assert found["interface"].of == "lo"
    assert found["interface"].rose["rx_bytes"] >= 1 << 16
    assert found["host"].rose["TcpOutSegs"] >= 1
    assert {one.rank for one in found.values()} == {3}


def test_the_kernel_says_of_interfaces_by_netlink_what_sysfs_says():
    for name in ROOT.names("sys/class/net"):
        before = interface_counters(ROOT, name)
        (found, *_) = CounterReader([Interface(name=name)]).read()
        after = interface_counters(ROOT, name)
        assert found.values.keys() == before.keys()
        assert all(before[one] <= n <= after[one] for one, n in found.values.items())


def test_the_kernel_and_ethtool_say_the_same_of_this_machines_interfaces():
    if shutil.which("ethtool", path="/usr/sbin:/sbin:/usr/bin:/bin") is None:
        pytest.skip("no ethtool")
    drivers = Drivers()
    counting = [one for one in ROOT.names("sys/class/net") if drivers.counters(one)]
    if not counting:
        pytest.skip("no driver here counts anything")
    for name in counting:
        asked = ["/usr/sbin/ethtool", "-S", name]
        text = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
        told = Drivers(captured(**{f"ethtool_-S_{name}": text}))
        assert drivers.counters(name).keys() == told.counters(name).keys()


def test_what_a_queue_dropped_is_read_from_tc():
    text = (
        "qdisc noqueue 0: dev lo root refcnt 2 \n Sent 0 bytes 0 pkt (dropped 0, overlimits 0 "
        "requeues 0) \n backlog 0b 0p requeues 0\n"
        "qdisc tbf 8001: dev eth0 root refcnt 2 rate 1Gbit burst 32Kb lat 50ms \n"
        " Sent 123 bytes 45 pkt (dropped 7, overlimits 89 requeues 0) \n"
        "qdisc pfifo 0: dev eth0 parent 8001:1 limit 1000p\n Sent 0 bytes 0 pkt (dropped 3, "
        "overlimits 0 requeues 0) \n"
    )
    reader = CounterReader([Interface(name="eth0")], captured(**{"tc_-s_qdisc_show": text}))
    (found,) = reader.read()
    assert found == NetworkCounters("queue", "eth0", {"dropped": 7, "overlimits": 89})


def test_of_a_captured_machine_sysfs_and_proc_are_read():
    files = {
        "sys/class/net/eth0/statistics/rx_crc_errors": b"12\n",
        "sys/class/net/eth0/statistics/rx_bytes": b"18446744073709551615\n",
        "sys/class/net/eth0/carrier_down_count": b"3\n",
        "proc/net/snmp": b"Tcp: InSegs RetransSegs\nTcp: 100 4\nUdp: broken\nUdp: x\n",
        "proc/net/netstat": b"TcpExt: TCPTimeouts\nTcpExt: 2\n",
    }
    root = Captured(files)
    assert interface_counters(root, "eth0") == {
        "rx_bytes": (1 << 64) - 1, "rx_crc_errors": 12, "carrier_down_count": 3,
    }  # fmt: skip
    (_, of_host) = CounterReader([Interface(name="eth0")], root).read()
    assert of_host.values == {"TcpInSegs": 100, "TcpRetransSegs": 4, "TcpExtTCPTimeouts": 2}


def test_what_rose_over_several_repetitions_is_added_by_rank_and_source():
    before = [NetworkCounters("host", "", {"a": 5, "b": 7})]
    after = [
        NetworkCounters("host", "", {"a": 6, "b": 2, "c": 1}), NetworkCounters("rdma", "x", {}),
    ]  # fmt: skip
    first = rises(before, after, 0.5)
    assert first == (CounterRise(0, "host", "", 0.5, {"a": 1, "c": 1}),)
    again = (CounterRise(0, "host", "", 1.0, {"a": 3}), CounterRise(1, "host", "", 1.0, {"a": 9}))
    assert joined_rises([first, again]) == (
        CounterRise(0, "host", "", 1.5, {"a": 4, "c": 1}), again[1],
    )  # fmt: skip


def test_rings_channels_and_fec_are_read_from_ethtool():
    rings = (
        "Ring parameters for eth0:\nPre-set maximums:\nRX:\t8192\nRX Mini:\tn/a\nTX:\t8192\n"
        "Current hardware settings:\nRX:\t1024\nRX Mini:\tn/a\nTX:\t512\n"
    )
    channels = (
        "Channel parameters for eth0:\nPre-set maximums:\nRX:\tn/a\nCombined:\t63\n"
        "Current hardware settings:\nRX:\tn/a\nCombined:\t8\n"
    )
    fec = "FEC parameters for eth0:\nConfigured FEC encodings: Auto\nActive FEC encoding: RS\n"
    names = {"ethtool_-g_eth0": rings, "ethtool_-l_eth0": channels, "ethtool_--show-fec_eth0": fec}
    drivers = Drivers(captured(**names))
    assert drivers.rings("eth0") == (1024, 512, 8192, 8192)
    assert drivers.channels("eth0") == (8, 63)
    assert drivers.fec("eth0") == "rs"
    assert drivers.rings("eth1") is drivers.channels("eth1") is drivers.fec("eth1") is None
