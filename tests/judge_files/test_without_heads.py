"""What is read of texts that lack their heads, and of transfers that ran at once."""

from __future__ import annotations

from command_kit import called


def answer_of(folder, text):
    (folder / "log.txt").write_text(text)
    return " ".join(called("judge", folder / "log.txt").stdout.split())


MATRIX = """Using Read-only traffic type
\t\tNuma node
Numa node\t     0\t     1
       0\t51999.2\t30097.0
       1\t{}\t58205.7
"""


def test_unlike_directions_between_two_nodes_are_warned_of(tmp_path):
    title = "Measuring Memory Bandwidths between nodes within system\n"
    answer = answer_of(tmp_path, title + MATRIX.format("11091.6"))
    found = "CPUs of node 1 read node 0 at 11.1 GB/s, 37% of the 30.1 GB/s in the other direction"
    assert f"verdict: warn links nodes 0 and 1: {found}" in answer
    assert "other direction" not in answer_of(tmp_path, title + MATRIX.format("25091.6"))


def test_a_matrix_of_nodes_without_its_title_is_read_by_its_form(tmp_path):
    reads = "ALL Reads        :\t90874.6\n\n"
    answer = answer_of(tmp_path, reads + MATRIX.format("30091.6") + "Speed: 3200 MT/s\n")
    of_nodes = "read_cpu (0, 1) 30.10 GB/s host_to_host_memcpy_read_cpu (1, 0) 30.09 GB/s"
    rate = "The DIMMs run at 3200 MT/s, so a channel carries 25.6 GB/s. No given text states how"
    for said in (of_nodes, "memory_reads (all, all) 90.87 GB/s", rate):
        assert said in answer
    times = "Numa node\t     0\t     1\n       0\t81.1\t140.2\n       1\t141.0\t80.9\n"
    far = "latency of memory of node 1, CPU of node 0 140.2 ns"
    assert far in answer_of(tmp_path, reads + times)
    assert "140.2" not in answer_of(tmp_path, times)


SLOT = """sudo lspci -vvv | grep -A 30 Mellanox | grep -E 'LnkSta:|LnkCap:'
# LnkCap: Port #0, Speed 8GT/s, Width x16, ASPM not supported
# LnkSta: Speed 8GT/s (ok), Width x{}
ibstat
#   Port 1: State: Active, Physical state: LinkUp, Rate: 100
"""


def test_an_adapter_in_a_narrow_slot_is_told_without_its_address(tmp_path):
    log = "RDMA_Write BW Test\n #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec]\n"
    (tmp_path / "slot.txt").write_text(SLOT.format("8 (downgraded)"))
    (tmp_path / "log.txt").write_text(log + " 1048576    5000   55.87   55.86   0.006660\n")
    done = called("judge", tmp_path / "log.txt", tmp_path / "slot.txt")
    found = "6.98 GB/s (55.9 Gb/s) is 89% of what PCIe 8 GT/s x8 carries (7.88 GB/s, 63 Gb/s)"
    answer = " ".join(done.stdout.split())
    assert f"verdict: warn links the adapter's slot: {found}" in answer
    (tmp_path / "slot.txt").write_text(SLOT.format("16 (ok)"))
    done = called("judge", tmp_path / "log.txt", tmp_path / "slot.txt")
    assert "adapter's slot:" not in done.stdout


AT_ONCE = """Run configuration (TransferBench v1.02)
Test 1: [1073741824 bytes]
 Transfer 00: G00 -> [GPU 00:004] -> G00 |     8.420 GB/s |  127.527 ms | LOCAL-LOCAL
 Transfer 01: G00 -> [GPU 00:004] -> G01 |     8.413 GB/s |  127.626 ms | LOCAL-PCIE-2
 Aggregate Bandwidth (CPU timed)         |    16.818 GB/s |  128.139 ms | Overhead: 0.397 ms
"""
REDIRECTED = """40:01.1 PCI bridge: Advanced Micro Devices, Inc. [AMD] Starship/Matisse GPP Bridge
....
\tCapabilities: [2a0 v1] Access Control Services
\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir{0} CmpltRedir{0} UpstreamFwd+ EgressCtrl- DirectTrans-
"""


def test_transfers_of_transferbench_1_ran_at_once(tmp_path):
    answer = answer_of(tmp_path, AT_ONCE + REDIRECTED.format("+"))
    assert "transfers_at_once (all, all) 16.82 GB/s hip:0 -> hip:0 (GB/s): 8.42" in answer
    assert "hip:0 -> hip:1 (GB/s): 8.41" in answer
    assert "ACS redirects at 0000:40:01.1, so that" in answer
    assert "ACS redirects" not in answer_of(tmp_path, AT_ONCE + REDIRECTED.format("-"))
