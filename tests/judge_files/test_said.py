"""What an answer says of causes that the texts show, and of what is known to be so."""

from pathlib import Path

import pytest

from command_kit import called
from linkgauge.rooms.judge_files.facts import merged
from linkgauge.rooms.judge_files.readers import read_text

HEAD = "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
RANK = "#  Rank {0} Group  0 Pid 1 on node{1} device {2} [0x1{2}] {3}\n"
CARD = "CA 'mlx5_{}'\n\tPort 1:\n\t\tState: Active\n\t\tRate: {}\n"
COPIES = "Running {0}.\nmemcpy {1} bandwidth (GB/s)\n 0\n0 {2}\n\nSUM {0} {2}\n"


def answer_of(folder, text):
    (folder / "log.txt").write_text(text)
    done = called("judge", folder / "log.txt")
    return " ".join(done.stdout.split())


def nodes_of(ranks, model="NVIDIA H100 80GB HBM3", each=8):
    return "".join(RANK.format(n, n // each, n % each, model) for n in range(ranks))


def reduced(bus, ranks=16, size=1 << 30):
    algorithm = bus * ranks / (2 * (ranks - 1))
    time = size / algorithm / 1e3
    row = f"{size} {size // 4} float sum -1 " + f"{time:.2f} {algorithm:.2f} {bus:.2f} 0 " * 2
    return "all_reduce_perf\n" + HEAD + row + "\n"


@pytest.mark.parametrize(
    ("bus", "verdict", "hosts"),
    [(50, "low", 4), (84, "low", 4), (192, "low", 4), (320, "warn", 4), (365, "ok", 4),
     (96, "low", 2), (238, "low", 2), (320, "warn", 2), (388, "ok", 2), (470, "ok", 2)],
)  # fmt: skip
def test_hosts_are_held_against_the_adapters_that_texts_tell(tmp_path, bus, verdict, hosts):
    """13, 22 and 50 % of what eight adapters carry are low, as are 20 and 50 % of what two hosts
    reach by a tree; these are ok from what rings reach."""
    cards = "".join(CARD.format(n, 400) for n in range(8))
    log = nodes_of(8 * hosts) + reduced(bus, 8 * hosts, 8 << 30)
    (tmp_path / "log.txt").write_text(log + cards)
    done = called("judge", tmp_path / "log.txt")
    answer = " ".join(done.stdout.split())
    assert f"verdict: {verdict}" in answer
    assert done.returncode == (verdict == "low")
    share = f"network between hosts: {bus / (476 if hosts == 2 else 384):.0%}"
    assert (share in answer) is (verdict != "ok")
    assert "8 adapters of 400 Gb/s a host carry 400 GB/s" in answer


def test_causes_that_texts_show_come_first(tmp_path):
    cards = "".join(CARD.format(n, 400) for n in range(8))
    way = "node0:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0\n"
    split = "node0:1:1 [0] NCCL INFO NCCL_IB_SPLIT_DATA_ON_QPS set by environment to 1.\n"
    kernel = "[    1.0] iommu: Default domain type: Translated\n"
    answer = answer_of(tmp_path, nodes_of(16) + way + split + reduced(96) + cards + kernel)
    shown = (
        "the texts show no GPUDirect RDMA, an IOMMU that translates and messages split over queue "
        "pairs (NCCL_IB_SPLIT_DATA_ON_QPS=1); other usual causes are "
    )
    assert shown in answer
    assert "the usual causes are TCP instead of RDMA, no GPUDirect RDMA, ACS, which" in answer_of(
        tmp_path, nodes_of(16) + reduced(96) + cards
    )


def test_nothing_is_held_against_adapters_that_no_text_counts(tmp_path):
    answer = answer_of(tmp_path, nodes_of(16) + reduced(96))
    assert "verdict: not judged" in answer


def test_a_rack_of_one_fabric_has_no_adapters(tmp_path):
    answer = answer_of(tmp_path, nodes_of(8, "NVIDIA GB200", 4) + reduced(800, 8))
    assert "one NVLink domain" in answer
    assert "MTU" not in answer
    network = "node0:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 4[0] [send] via NET/IB/0\n"
    answer = answer_of(tmp_path, nodes_of(8, "NVIDIA GB200", 4) + network + reduced(800, 8))
    assert "one NVLink domain" not in answer


def test_a_link_that_carries_less_than_the_card_takes_is_a_warning(tmp_path):
    device = "Device 0: NVIDIA GeForce RTX 4090 (00000000:01:00)\n"
    slow = COPIES.format("host_to_device_memcpy_ce", "CE CPU(row) -> GPU(column)", 6.6)
    answer = answer_of(tmp_path, device + slow)
    assert "verdict: warn" in answer or "verdict: low" in answer
    assert "6.6 GB/s is about what PCIe 16 GT/s x4" in answer
    usual = slow.replace("6.6", "25.1")
    assert "verdict: ok" in answer_of(tmp_path, device + usual)


def test_kernels_that_read_less_are_known(tmp_path):
    reads = COPIES.format("host_to_device_memcpy_sm", "SM CPU(row) -> GPU(column)", 35.2)
    writes = COPIES.format("device_to_host_memcpy_sm", "SM CPU(row) <- GPU(column)", 52.8)
    for model, is_known in (("NVIDIA H100 80GB HBM3", True), ("NVIDIA H200", False)):
        device = f"Device 0: {model} (00000000:01:00)\n"
        answer = answer_of(tmp_path, device + reads + writes)
        assert ("known of NVIDIA H100" in answer) is is_known


def facts_of(text):
    return merged(read_text("text", text)[0].facts)[0]


QUERY = """\
==============NVSMI LOG==============
GPU 00000000:18:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    Fabric
        State                             : Completed
        Status                            : {}
    Confidential Compute                  : {}
"""


def test_the_status_of_the_fabric_counts():
    (said,) = facts_of(QUERY.format("Insufficient Resources", "OFF")).warnings
    assert "GPU 0" in said
    assert "Insufficient Resources" in said
    assert not facts_of(QUERY.format("Success", "OFF")).warnings


def test_confidential_computing_is_said(tmp_path):
    slow = COPIES.format("host_to_device_memcpy_ce", "CE CPU(row) -> GPU(column)", 3.4)
    for state in ("ON", "OFF"):
        answer = answer_of(tmp_path, slow + QUERY.format("Success", state))
        assert ("Confidential computing is on" in answer) is (state == "ON")


@pytest.mark.parametrize(("bound", "is_far"), [("64-95", True), ("32-63,96-127", False)])
def test_a_process_far_from_its_gpu_is_named(tmp_path, bound, is_far):
    topology = (
        "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tSYS\t0-31,64-95\t0\n"
        "GPU1\tSYS\t X \t32-63,96-127\t1\n"
    )
    said = f"node0:1:1 [1] NCCL INFO Affinity for GPU 1 is {bound}. (GPU affinity = {bound})\n"
    log = nodes_of(2, "NVIDIA RTX PRO 6000") + said + reduced(24.1, 2)
    assert (f"GPU 1 is bound to CPUs {bound}" in answer_of(tmp_path, topology + log)) is is_far


def test_older_topologies_tell_sockets_by_affinity():
    facts = facts_of(
        "\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\nGPU0\t X \tNV6\tPIX\t0-23,48-71\n"
        "GPU1\tNV6\t X \tSYS\t24-47,72-95\n"
    )
    assert [gpu.node for gpu in facts.gpus.values()] == [0, 1]
    assert facts.adapters == 1


def test_retransmits_of_iperf3_are_said(tmp_path):
    end = "[  5]   0.00-10.00  sec  10.1 GBytes  8.6{} Gbits/sec  {}  {}\n"
    log = end.format(4, "1027           ", "sender") + end.format(3, "               ", "receiver")
    assert "1027 packets were sent again" in answer_of(tmp_path, log)
    assert "sent again" not in answer_of(tmp_path, log.replace("1027", "0"))


def test_rates_of_networks_are_also_said_in_bits(tmp_path):
    log = "RDMA_{} BW Test\n #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n"
    row = " 65536      5000             {}             {}               0.000920\n"
    own = (
        log.format("Write") + row.format(111.72, 111.71) + log.format("Read") + row.format(1, 0.48)
    )
    assert "In bits: rdma_write_bw 111.7 Gb/s, rdma_read_bw 0.48 Gb/s." in answer_of(tmp_path, own)
    end = "[SUM]   0.00-10.00  sec  12.5 MBytes  10.5 Mbits/sec  0.011 ms  0/9380 (0%)  receiver\n"
    assert "In bits: nic_tcp_iperf3 10.5 Mb/s." in answer_of(tmp_path, end)
    assert "In bits" not in answer_of(tmp_path, nodes_of(16) + reduced(96))


def test_a_run_that_failed_is_told_among_others(tmp_path):
    """The other run's figures stay: an error that ended one run says nothing of them."""
    failed = "node0: Test NCCL failure common.cu:392 'unhandled cuda error / '\n"
    failed += " .. node0 pid 1: Test failure common.cu:590\n"
    (tmp_path / "two.txt").write_text(f"all_reduce_perf -g 2\n{nodes_of(2)}{HEAD}{failed}")
    answer = answer_of(tmp_path, nodes_of(8) + reduced(470, 8))
    assert "verdict: ok" in answer
    done = called("judge", tmp_path / "log.txt", tmp_path / "two.txt")
    said = "error all_reduce_perf (all, all): nccl-tests says: Test NCCL failure common.cu:392"
    assert said in " ".join(done.stdout.split())
    assert "the run in two.txt failed, without a figure" in done.stdout
    assert (done.returncode, "2 ok" in done.stdout) == (1, True)


ACCESS = """RocmBandwidthTest Version: 2.6.0
Device: 0,  AMD EPYC 7763 64-Core Processor
Device: 1,  AMD Radeon Graphics,  GPU-1,  19:0.0
Device: 2,  AMD Radeon Graphics,  GPU-2,  67:0.0

Inter-Device Access
D/D       0         1         2
0         1         0         0
1         1         1         {0}
2         1         {0}         1

Unidirectional copy peak bandwidth GB/s
D/D       0           1           2
0         N/A         13.750      13.769
1         14.280      696.717     N/A
2         14.280      N/A         696.201
"""


def test_gpus_that_cannot_reach_each_other_are_named(tmp_path):
    one, other = (f"{n} (AMD Radeon Graphics, 0000:{bus}:00.0)" for n, bus in ((0, 19), (1, 67)))
    found = f"GPUs {one} and {other} cannot reach each other's memory"
    assert found in answer_of(tmp_path, ACCESS.format(0))
    assert "cannot reach" not in answer_of(tmp_path, ACCESS.format(1))
    answer = answer_of(tmp_path, PEERS.replace("Unid", "Device=0 CANNOT Access Peer Device=1\n"
        "Device=1 CANNOT Access Peer Device=0\nUnid", 1))  # fmt: skip
    assert "Ada Generation, 0000:61:00.0) cannot reach each other's memory" in answer
    some = "".join(f"Device={a} CANNOT Access Peer Device={b}\n" for a in (0, 1) for b in (2, 3))
    some += "".join(f"Device={b} CANNOT Access Peer Device={a}\n" for a in (0, 1) for b in (2, 3))
    more = "".join(PEERS.splitlines(keepends=True)[1].replace(": 0,", f": {n},") for n in (2, 3))
    answer = answer_of(tmp_path, PEERS.replace("Unid", f"{more}{some}Unid", 1))
    assert "GPUs 0-2, 0-3, 1-2 and 1-3 cannot reach each other's memory" in answer


def test_small_messages_are_not_held_against_adapters(tmp_path):
    head = "| Test: tag match bandwidth |\n| Message size: {} |\n| message rate (msg/s) |\n"
    row = "Final:  1000000     0.039     0.125     0.125       {0}      {0}     {1}  {1}\n"
    card = CARD.format(0, 100)
    answer = answer_of(tmp_path, head.format(8) + row.format("60.84", 7974856) + card)
    assert "sends messages of 8 B, 7.97 million a second" in answer
    assert "cross the network" not in answer
    answer = answer_of(tmp_path, head.format(1 << 20) + row.format("6084.00", 6084) + card)
    assert "of which 53% of what is usually left cross the network" in answer


BRIDGE = """00:03.1 PCI bridge: Advanced Micro Devices, Inc. [AMD] GPP Bridge (prog-if 00 [Normal decode])
\tBus: primary=00, secondary=41, subordinate=41, sec-latency=0
\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir{0} CmpltRedir{0} UpstreamFwd+ EgressCtrl- DirectTrans-
41:00.0 VGA compatible controller: NVIDIA Corporation AD102GL [RTX 6000 Ada Generation] (rev a1)
\tLnkCap:\tPort #0, Speed 16GT/s, Width x16
\tLnkSta:\tSpeed 16GT/s, Width x16
61:00.0 VGA compatible controller: NVIDIA Corporation AD102GL [RTX 6000 Ada Generation] (rev a1)
"""  # noqa: E501
PEERS = """[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]
Device: 0, NVIDIA RTX 6000 Ada Generation, pciBusID: 41, pciDeviceID: 0, pciDomainID:0
Device: 1, NVIDIA RTX 6000 Ada Generation, pciBusID: 61, pciDeviceID: 0, pciDomainID:0
Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 790.0  21.1
     1  21.2 790.0
Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
   D\\D     0      1
     0 790.0   2.1
     1   2.1 790.0
"""


@pytest.mark.parametrize("state", ["+", "-"])
def test_a_port_that_redirects_is_named_by_its_address(tmp_path, state):
    (tmp_path / "lspci.txt").write_text(BRIDGE.format(state))
    (tmp_path / "log.txt").write_text(PEERS)
    answer = called("judge", tmp_path / "log.txt", tmp_path / "lspci.txt").stdout
    assert "warn peers" in answer
    assert ("ACS redirects at 0000:00:03.1" in answer) is (state == "+")


def test_ports_of_one_card_share_its_slot(tmp_path):
    ports = "".join(
        f"41:00.{n} Infiniband controller: Mellanox Technologies MT28908 Family [ConnectX-6]\n"
        "\tLnkSta:\tSpeed 16GT/s, Width x16\n"
        for n in range(2)
    )
    (tmp_path / "lspci.txt").write_text(ports)
    (tmp_path / "ibstat.txt").write_text("".join(CARD.format(n, 200) for n in range(2)))
    rows = "# OSU MPI Bandwidth Test v5.7\n# Size      Bandwidth (MB/s)\n4194304    21307.34\n"
    (tmp_path / "log.txt").write_text(rows)
    answer = " ".join(called("judge", *sorted(tmp_path.iterdir())).stdout.split())
    assert "2 adapters of 200 Gb/s a host, in a slot of PCIe 16 GT/s x16 carry 28.2" in answer


def test_an_empty_channel_of_memory_is_named(tmp_path):
    slot = "Memory Device\n\tSize: {}\n\tData Width: {}\n\tBank Locator: CHANNEL {}\n"
    slots = "".join(slot.format("32 GB", "64 bits", name) for name in "ABC")
    stream = "Array size = 67108864 (elements)\nTriad:  69800.0  0.02  0.02  0.02\n"
    answer = answer_of(
        tmp_path, stream + slots + slot.format("No Module Installed", "Unknown", "D")
    )
    assert "no memory module at CHANNEL D" in answer


PERFTEST = (
    "                    RDMA_Write{} Test\n"
    " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    " 8388608    5000             392.1              390.5              0.005819\n"
)


@pytest.mark.parametrize(
    ("test", "name", "share"),
    [
        (" BW", "rdma_write_bw", "203%"),
        (" Bidirectional BW", "rdma_write_bibw", "102%"),
    ],
)
def test_both_ways_of_an_adapter_are_held_against_both(tmp_path, test, name, share):
    answer = answer_of(tmp_path, CARD.format(0, 200) + PERFTEST.format(test))
    assert name in answer
    assert f"of which {share} of what is usually left" in answer


def test_a_command_names_the_test_of_a_table_without_its_head():
    rows = PERFTEST.partition("\n")[2]
    names = {
        verb: {
            one.benchmark
            for log in read_text("log", f"$ ib_{verb}_bw -d mlx5_0 192.0.2.1\n{rows}")[0].logs
            for one in log.figures
        }
        for verb in ("send", "read", "write")
    }
    assert names == {verb: {f"rdma_{verb}_bw"} for verb in names}


def test_latencies_keep_their_name():
    text = (
        "                    RDMA_Read Latency Test\n"
        " #bytes #iterations    t_avg[usec]    tps average\n"
        " 2       1000          1.58           632911.39\n"
    )
    (log,) = read_text("log", text)[0].logs
    assert [one.benchmark for one in log.figures] == ["rdma_read_lat"]


def test_figures_of_a_host_stand_beside_those_of_the_others(tmp_path):
    text = "Prime numbers limit: 10000\n    events per second:  {}\n"
    for name, rate in {"a": 3724.1, "b": 2055.28}.items():
        (tmp_path / f"{name}.txt").write_text(text.format(rate))
    done = called("judge", *sorted(tmp_path.iterdir()))
    (row,) = [one for one in done.stdout.split("\n") if one.startswith("cpu_primes_single (")]
    assert {*row.split()[-2:]} == {"3724", "2055"}


PUBLIC = Path(__file__).parents[1] / "data/judge/public"


@pytest.mark.parametrize(
    ("case", "said", "unsaid"),
    [("p87", "No given text states the speed of the adapter", "of which"),
     ("p87", "The buffers are D D", "nothing wrong"),
     ("p88", "12 nvlink4 links in pairs: 260 GB/s", "PCIe and the CPU alone"),
     ("p88", "NCCL_MIN_P2P_NCHANNELS", "2 hosts"),
     ("p90", "43% of what is expected", "fits"), ("p90", "adapters far", "not what network joins"),
     ("p91", "over few channels", "alltoall and its like"),
     ("p92", "44% of what is expected", "6% of what is usually left"),
     ("p92", "8 adapters of 400 Gb/s", "only assumed"),
     ("p94", "12.2", "Usual causes of little"), ("p97", "dmidecode -t memory", "The DIMMs carry"),
     ("p98", "imb_sendrecv falls from 17.6 GB/s at 512 KiB to 8.11 GB/s or less", "pingpong"),
     ("p98", "or less from 1 MiB on, and 2.73 at 4 MiB", "slow_start"),
     ("p99", "5.12", "falls from")],
)  # fmt: skip
def test_what_public_texts_ask_is_said(case, said, unsaid):
    folder = next(PUBLIC.glob(f"{case}-*"))
    answer = " ".join(called("judge", *sorted(folder.iterdir())).stdout.split())
    assert said in answer, answer
    assert unsaid not in answer, answer
