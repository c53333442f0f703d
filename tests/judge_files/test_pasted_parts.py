"""Texts as people paste them: cut before their end, with prefixes, or of one port or setting."""

from __future__ import annotations

import pytest

from command_kit import called


def answer_of(folder, *texts):
    for number, text in enumerate(texts):
        (folder / f"{number}.txt").write_text(text)
    done = called("judge", *sorted(folder.glob("*.txt")), COLUMNS=200)
    return " ".join((done.stdout + done.stderr).split())


PORT = """\
Settings for {}:
        Supported link modes:   10baseT/Half 10baseT/Full
                                100baseT/Half 100baseT/Full
                                1000baseT/Full
        Speed: {}
        Link detected: {}
"""


@pytest.mark.parametrize(
    ("port", "said"),
    [
        (("eth0", "100Mb/s", "yes"), "eth0 runs at 100 Mb/s and supports 1000 Mb/s"),
        (("eth0", "1000Mb/s", "yes"), ""),
        (("eth0", "Unknown!", "no"), "eth0 has no link"),
        (("eth0", "Unknown!", "no (No cable)"), "eth0 has no link (No cable)"),
    ],
)
def test_a_port_without_link_or_far_below_its_speed(port, said, tmp_path):
    answer = answer_of(tmp_path, PORT.format(*port))
    assert ("verdict: warn" in answer, said in answer) == (bool(said), True)


def test_an_unused_port_beside_one_in_use_is_no_alarm(tmp_path):
    used, unused = PORT.format("eth0", "1000Mb/s", "yes"), PORT.format("eth1", "Unknown!", "no")
    assert "has no link" not in answer_of(tmp_path, used + unused)


def test_a_gpu_that_fell_off_the_bus(tmp_path):
    text = """\
[  +0.000033] NVRM: The NVIDIA GPU 0002:21:00.0
              NVRM: (PCI ID: 10de:2204) installed in this system has
              NVRM: fallen off the bus and is not responding to commands.
[  +0.000046] nvidia: probe of 0002:21:00.0 failed with error -1
"""
    answer = answer_of(tmp_path, text)
    assert "verdict: fail kernel-log" in answer
    assert "that a GPU has fallen off the bus" in answer


NODES = """\
Intel(R) Memory Latency Checker - v3.9a
Measuring Memory Bandwidths between nodes within system
Using Read-only traffic type
        Memory node
Socket       0       1
     0  50444.8 {0}
     1  {0} 50583.0
"""


def test_nodes_whose_memory_is_equally_near(tmp_path):
    assert "or the BIOS spreads each node's memory" in answer_of(tmp_path, NODES.format(50349.9))
    assert "a third to two thirds are usual" in answer_of(tmp_path, NODES.format(25349.9))


INTERVALS = """\
Connecting to host 192.168.1.2, port 5201
[  5] local 192.168.1.1 port 45952 connected to 192.168.1.2 port 5201
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec   110 MBytes   920 Mbits/sec    0   3.12 MBytes
[  5]   1.00-2.00   sec   108 MBytes   900 Mbits/sec    0   3.12 MBytes
"""
END = "[  5]   0.00-2.00   sec   218 MBytes   800 Mbits/sec                  receiver\n"


def test_iperf3_without_its_sum(tmp_path):
    answer = answer_of(tmp_path, INTERVALS)
    assert "nic_tcp_iperf3 0.91 Gb/s" in answer
    assert "the mean of the intervals counts" in answer
    assert "nic_tcp_iperf3 0.8 Gb/s" in answer_of(tmp_path, INTERVALS + END)


WAYS = """\
[  5][TX-C]   0.00-1.00   sec   371 MBytes  3.00 Gbits/sec    0   1.17 MBytes
[  7][RX-C]   0.00-1.00   sec   152 MBytes  1.00 Gbits/sec
[  5][TX-C]   1.00-2.00   sec   371 MBytes  2.00 Gbits/sec    0   1.17 MBytes
[  7][RX-C]   1.00-2.00   sec   152 MBytes  2.00 Gbits/sec
"""


def test_iperf3_in_both_directions(tmp_path):
    answer = answer_of(tmp_path, WAYS)
    assert "nic_tcp_iperf3 2.5 Gb/s, nic_tcp_iperf3_back 1.5 Gb/s" in answer
    ends = """\
[  5][TX-C]   0.00-2.00   sec   371 MBytes  2.00 Gbits/sec    0   sender
[  5][TX-C]   0.00-2.00   sec   371 MBytes  2.00 Gbits/sec        receiver
[  7][RX-C]   0.00-2.00   sec   152 MBytes  2.00 Gbits/sec    0   sender
[  7][RX-C]   0.00-2.00   sec   152 MBytes  2.00 Gbits/sec        receiver
"""
    answer = answer_of(tmp_path, WAYS + ends)
    assert "nic_tcp_iperf3 2 Gb/s, nic_tcp_iperf3_back 2 Gb/s" in answer


RANK = "#  Rank  {} Group  0 Pid   3591 on   {} device  {} [0x03] NVIDIA A100-PCIE-40GB\n"
TABLE = """\
#       size         count      type   redop    root     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)
   134217728      33554432     float     sum      -1    27691    4.85    4.85      0
"""
RUN = "# nThread 1 nGpus 2 minBytes 8 maxBytes 134217728 step: 2(factor)\n# Using devices\n"


def test_ranks_that_each_host_numbers_from_0_ran_alone(tmp_path):
    places = [(n, host, n) for host in ("node1", "node2") for n in range(2)]
    answer = answer_of(tmp_path, RUN + "".join(RANK.format(*one) for one in places) + TABLE)
    assert "the ranks are numbered from 0 on each of 2 hosts" in answer
    assert "2 nodes took part" not in answer
    places = [(number, host, n) for number, (_, host, n) in enumerate(places)]
    answer = answer_of(tmp_path, RUN + "".join(RANK.format(*one) for one in places) + TABLE)
    assert "numbered from 0" not in answer
    assert "2 nodes took part" in answer


def test_ranks_that_mpirun_names_below_ray(tmp_path):
    text = RUN + RANK.format(0, "node1", 0) + RANK.format(1, "node1", 1) + TABLE
    prefix = "(head, rank=0, pid=3808) [1,0]<stdout>:"
    plain = answer_of(tmp_path, text)
    assert "4.85" in plain
    assert answer_of(tmp_path, "".join(prefix + line for line in text.splitlines(True))) == plain


DOMAIN = """\
nvbandwidth Version: v0.7
Process 0 (worker-0): device 0: HGX GB200 (00000008:01:00)
Process 1 (worker-1): device 0: HGX GB200 (00000008:01:00)
Running multinode_device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0       N/A    798.02
 1    398.10       N/A
SUM multinode_device_to_device_memcpy_read_ce 1596.12
"""


def test_processes_of_nvbandwidth_are_gpus_of_one_domain(tmp_path):
    answer = answer_of(tmp_path, DOMAIN)
    assert "2 cells measured: 1 ok, 1 low" in answer
    assert "2 cells measured: 2 ok" in answer_of(tmp_path, DOMAIN.replace("398.10", "798.10"))


PIECE = """\
            PCIe Generation
                Max                       : {0}
                Current                   : {0}
                Device Max                : 5
                Host Max                  : {0}
            Link Width
                Max                       : 16x
                Current                   : {1}x
--
"""
CARDS = """\
00:02.0 Display controller: Intel Corporation AlderLake-S GT1 (rev 0c)
01:00.0 VGA compatible controller: NVIDIA Corporation GB202 [GeForce RTX 5090] (rev a1)
05:00.0 VGA compatible controller: NVIDIA Corporation GB202 [GeForce RTX 5090] (rev a1)
"""


def test_pieces_of_nvidia_smi_without_their_heads(tmp_path):
    answer = answer_of(tmp_path, PIECE.format(5, 16) + PIECE.format(3, 1), CARDS)
    assert "2 GeForce RTX 5090" in answer
    assert "warn link-width cuda:1 (0000:05:00.0): the link runs at x1" in answer
    assert "GPU 1: its slot carries 8 GT/s, the GPU 32 GT/s" in answer
    assert "cuda:0 (0000:01:00.0)" not in answer


def test_the_kernel_names_an_adapters_slot_with_or_without_pcie(tmp_path):
    line = (
        "mlx5_core 0000:b3:00.1: 63.008 Gb/s available PCIe bandwidth, limited by 8 GT/s {}x8 "
        "link at 0000:b2:00.0 (capable of 252.048 Gb/s with 16 GT/s {}x16 link)\n"
    )
    answer = answer_of(tmp_path, line.format("", ""))
    assert "the link runs at x8; its lower end supports x16" in answer
    assert "the link runs at 8 GT/s; its lower end supports 16 GT/s" in answer
    assert answer_of(tmp_path, line.format("PCIe ", "PCIe ")) == answer


def test_messages_of_several_pairs(tmp_path):
    text = """\
# OSU MPI Multiple Bandwidth / Message Rate Test v5.2
# [ pairs: 1 ] [ window size: 64 ]
# Size                  MB/s        Messages/s
1                       4.01        4005006.11
65536                6398.15          97627.95
"""
    answer = answer_of(tmp_path, text)
    assert "osu_mbw_mr" in answer
    assert "0.00401 6.40" in answer


SIMPLE = """\
[./simpleP2P] - Starting...
> Peer access from NVIDIA GeForce RTX 4090 (GPU0) -> NVIDIA GeForce RTX 4090 (GPU1) : Yes
> Peer access from NVIDIA GeForce RTX 4090 (GPU1) -> NVIDIA GeForce RTX 4090 (GPU0) : Yes
cudaMemcpyPeer / cudaMemcpy between GPU0 and GPU1: 25.07GB/s
Copy data back to host from GPU0 and verify results...
{}
"""


def test_data_that_did_not_reach_the_other_gpu(tmp_path):
    wrong = "Verification error @ element 1: val = 0.000000, ref = 4.000000\nTest failed!"
    answer = answer_of(tmp_path, SIMPLE.format(wrong))
    assert "verdict: fail wrong-bytes" in answer
    assert "26.92 GB/s" in answer
    right = answer_of(tmp_path, SIMPLE.format("Test passed"))
    assert "verdict: ok" in right
    assert "RTX 4090" in right


DRIVE = """\
01:00.0 Non-Volatile memory controller: Samsung Electronics Co Ltd Device a824
        LnkCap: Port #0, Speed 16GT/s, Width x4, ASPM not supported
        LnkSta: Speed 5GT/s (downgraded), Width x2 (downgraded)
"""
ANOTHER = """\
02:00.0 USB controller: Renesas Technology Corp. uPD720201 USB 3.0 Host Controller
        LnkCap: Port #0, Speed 5GT/s, Width x1, ASPM not supported
        LnkSta: Speed 2.5GT/s (downgraded), Width x1
"""


def test_the_only_function_of_a_listing_is_the_one_that_is_asked_about(tmp_path):
    assert "PCIe 5 GT/s x2 of 16 GT/s x4" in answer_of(tmp_path, DRIVE)
    assert "GT/s x" not in answer_of(tmp_path, DRIVE + ANOTHER)
