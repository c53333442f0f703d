"""Cards, ports and nodes that are as built although they look slow, and texts without a figure."""

from __future__ import annotations

import pytest

from command_kit import called


def answer_of(folder, text):
    (folder / "log.txt").write_text(text)
    done = called("judge", folder / "log.txt", COLUMNS=200)
    return " ".join((done.stdout + done.stderr).split())


OWN_GPU = """\
          RocmBandwidthTest Version: 2.6.0
          Device: 0,  AMD Ryzen 7 6800HS with Radeon Graphics
          Device: 1,  AMD Radeon RX 6700S,  GPU-XX,  03:0.0
          Device: 2,  {},  GPU-XX,  07:0.0
          Unidirectional copy peak bandwidth GB/s
          D/D       0           1           2
          0         N/A         14.186      30.722
          1         14.280      201.176     36.747
          2         30.161      35.270      58.392
"""


def test_a_gpu_without_a_name_is_no_peer_of_others(tmp_path):
    answer = answer_of(tmp_path, OWN_GPU.format(""))
    assert "verdict: not judged" in answer
    assert "peers" not in answer
    assert "verdict: fail slow" in answer_of(tmp_path, OWN_GPU.format("AMD Radeon RX 6700S"))


BOARD = """\
GPU 00000000:13:00.0
    Product Name                          : NVIDIA A16
    MultiGPU Board                        : {}
    PCI
        Bus Id                            : 00000000:13:00.0
        GPU Link Info
            PCIe Generation
                Max                       : 4
                Current                   : 1
            Link Width
                Max                       : 16x
                Current                   : 4x
"""


def test_gpus_of_one_board_divide_the_lanes_of_its_slot(tmp_path):
    answer = answer_of(tmp_path, BOARD.format("Yes"))
    assert "Reseat" not in answer
    assert "warn" not in answer
    assert "Reseat the card" in answer_of(tmp_path, BOARD.format("No"))


PORT = """\
CA 'mlx4_0'
        Port 1:
                State: Active
                Rate: 14
# Port info: Lid 6 port 1
LinkWidthSupported:..............1X or 4X
LinkWidthEnabled:................{}
LinkWidthActive:.................{}
LinkSpeedExtActive:..............14.0625 Gbps
"""


def test_an_infiniband_port_may_use_fewer_lanes_than_it_has(tmp_path):
    narrow = "the InfiniBand port uses 1 of 4 lanes of 14 Gb/s each"
    limited = f"{narrow}, as LinkWidthEnabled allows no more"
    assert limited in answer_of(tmp_path, PORT.format("1X", "1X"))
    answer = answer_of(tmp_path, PORT.format("1X or 4X", "1X"))
    assert narrow in answer
    assert "LinkWidthEnabled" not in answer
    assert "lanes" not in answer_of(tmp_path, PORT.format("1X or 4X", "4X"))
    other = PORT.format("1X", "1X") + PORT.format("1X or 4X", "4X")
    assert limited in answer_of(tmp_path, other)


NODES = """\
Intel(R) Memory Latency Checker - v3.10
Measuring Memory Bandwidths between nodes within system
Bandwidths are in MB/sec (1 MB/sec = 1,000,000 Bytes/sec)
Using Read-only traffic type
                Numa node
Numa node            0       1       2       3
       0        99833.3 99794.2 76592.0 17594.0
       1        101196.7        101291.9        77137.2 17602.0
       2        76935.0 77621.6 101120.1        17587.8
"""


def test_a_node_without_cpus_is_no_other_socket(tmp_path):
    answer = answer_of(tmp_path, NODES)
    assert "Node 3 has memory and no CPUs, as CXL or HBM has: its 17.6 GB/s" in answer
    assert "Reads from the memory of another node reach 76.6 GB/s, 76% of" in answer


def test_a_refusal_names_the_tool_that_gave_no_figure(tmp_path):
    text = "# OSU MPI-CUDA Bandwidth Test v7.1\n# Size      Bandwidth (MB/s)\ncxil_map() failed\n"
    assert "OSU micro-benchmarks shows no figure there" in answer_of(tmp_path, text)
    sums = "SUM host_to_device_memcpy_ce 845.90\nSUM device_to_device_memcpy_read_ce 9222.82\n"
    assert "only sums of matrices are there" in answer_of(tmp_path, sums)


LOGGED = """\
[   64.046090] pcieport 0000:00:00.0: AER: enabled with IRQ 36
[   64.053295] nvme 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer
[   64.654541] nvme nvme0: Removing after probe failure status: -5
Feb 13 09:43:33 node1 kernel: NVRM: Xid (PCI:0000:03:00): 79, pid=1, GPU has fallen off the bus.
"""


def test_the_kernel_log_is_judged_as_one_of_a_run(tmp_path):
    answer = answer_of(tmp_path, LOGGED)
    assert "fail kernel-log 0000:03:00.0: the kernel logged Xid 79 (the GPU has fallen" in answer
    assert "0000:01:00.0: the kernel logged errors of PCI Express (AER), corrected" in answer
    assert "log: 64.655 s: nvme nvme0: Removing after probe failure" in answer
    assert "enabled with IRQ" not in answer
    assert "kernel" not in answer_of(tmp_path, LOGGED.splitlines()[0])
    boot = (
        "ipmi_si: probe of dmi-ipmi-si.0 failed with error -19\nNVRM: Xid (PCI:0000:03:00): 13, x"
    )
    assert "kernel" not in answer_of(tmp_path, f"{boot}\na probe of both GPUs: the second failed\n")


def test_a_broken_gpu_in_the_log_is_said_beside_figures_of_others(tmp_path):
    copy = "Running host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n"
    answer = answer_of(tmp_path, f"{copy} 0\n 0 55.0\n\n{LOGGED}")
    assert "Xid (PCI:0000:03:00): 79" in answer


def test_counted_errors_of_nvlinks_are_named_with_gpu_and_link(tmp_path):
    text = "GPU 2: Tesla V100-SXM2-32GB (UUID: GPU-0)\n Link 0: CRC Errors: 8814\n"
    text += " Links 1-5: No errors\n Link 3: Replay Errors: 1\n"
    answer = answer_of(tmp_path, text)
    assert "GPU 2, NVLink 0: CRC Errors: 8814" in answer
    assert "NVLink 3" not in answer


def test_a_lost_gpu_is_named_by_each_text_that_misses_it(tmp_path):
    text = "Unable to determine the device handle for GPU3: 0000:04:00.0: Unknown Error\n"
    text += (
        "04:00.0 VGA compatible controller: NVIDIA Corporation GA102 [GeForce RTX 3080] (rev ff)\n"
    )
    text += "LnkSta: Speed 2.5GT/s, Width x16\n"
    answer = answer_of(tmp_path, text)
    assert "the driver does not reach GPU3: 0000:04:00.0: Unknown Error" in answer
    assert "0000:04:00.0 does not answer (rev ff): lost, or powered down" in answer


def test_nodes_without_memory_and_ports_without_a_subnet_manager_are_named(tmp_path):
    node = "node {0} cpus: {0}\nnode {0} size: {1} MB\n"
    half = node.format(0, 2000) + node.format(1, 0)
    assert "no memory" not in answer_of(tmp_path, half)
    answer = answer_of(tmp_path, half + node.format(2, 0))
    assert "nodes 1 and 2 have CPUs and no memory of their own" in answer
    port = "CA 'mlx5_0'\n\tPort 1:\n\t\tState: Initializing\n\t\tRate: 100\n"
    assert "no port is active until a subnet manager sets it up" in answer_of(tmp_path, port)


STOPPED = """\
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-5.06   sec   163 MBytes   271 Mbits/sec  1822             sender
[  5]   0.00-5.06   sec  0.00 Bytes  0.00 bits/sec                  receiver
"""


def test_a_sender_that_was_stopped_has_a_rate_and_retransmits(tmp_path):
    answer = answer_of(tmp_path, STOPPED)
    assert "nic_tcp_iperf3 0.271 Gb/s" in answer
    assert "1822 packets were sent again" in answer


FILES = """\
==> /sys/bus/pci/devices/0000:01:00.0/current_link_speed <==
16.0 GT/s PCIe

==> /sys/bus/pci/devices/0000:01:00.0/current_link_width <==
{}

==> /sys/bus/pci/devices/0000:01:00.0/max_link_speed <==
32.0 GT/s PCIe

==> /sys/bus/pci/devices/0000:01:00.0/max_link_width <==
16
"""


def test_the_kernels_files_on_a_link_are_read(tmp_path):
    found = "0000:01:00.0: PCIe 16 GT/s x8 of 32 GT/s x16"
    assert found in answer_of(tmp_path, FILES.format(8))
    assert "PCIe 16" not in answer_of(tmp_path, FILES.format(16))


BARE = """\
Device 0: NVIDIA GeForce RTX 5090 (00000000:2e:00)
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0
 0      2.80

memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)
           0
 0      3.29
"""


def test_headings_name_the_tests_where_nothing_else_does(tmp_path):
    answer = answer_of(tmp_path, BARE)
    assert "host_to_device_memcpy_ce 2.80 GB/s" in answer
    assert "device_to_host_memcpy_ce 3.29 GB/s" in answer
    # A later test has the same heading, and one of unknown name has none of them.
    again = BARE.replace("3.29", "9.99").replace("2.80", "8.88")
    other = "memcpy CE GPU(row) <-> GPU(column) Total bandwidth (GB/s)\n   0\n 0  7.77\n\n"
    answer = answer_of(tmp_path, BARE + other + again)
    assert "host_to_device_memcpy_ce 2.80 GB/s" in answer
    assert not {"9.99", "8.88", "7.77"} & set(answer.split())


NAMED = """\
Running {0}.
memcpy CE GPU(row) {1} GPU(column) bandwidth (GB/s)
           0         1
 0       N/A    300.00
 1    350.00       N/A

"""


@pytest.mark.parametrize(("name", "arrow"), [("read", "->"), ("write", "<-")])
def test_headings_name_tests_as_the_names_do(name, arrow, tmp_path):
    text = NAMED.format(f"device_to_device_memcpy_{name}_ce", arrow)
    (named, _), (bare, _) = (
        (answer.partition("Read from"))[::2]
        for answer in (answer_of(tmp_path, text), answer_of(tmp_path, text.split("\n", 1)[1]))
    )
    assert named == bare


def test_bridges_may_offer_what_the_card_below_lacks(tmp_path):
    port = FILES.format(4).replace("01:00.0", "00:01.0")
    assert "PCIe 16" not in answer_of(tmp_path, port)
    assert "PCIe" not in answer_of(tmp_path, FILES.format("1.2.3").splitlines()[0] + "\n1.2.3\n")


def test_retransmits_are_of_the_run_that_counted_them(tmp_path):
    other = STOPPED.replace("  1822             sender", "                  sender")
    answer = answer_of(tmp_path, STOPPED + other.replace("271", "272"))
    assert "1822 packets were sent again" in answer
