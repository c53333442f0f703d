"""Which faults a text shows, where another figure or line of it could hide or feign one."""

from __future__ import annotations

import pytest

from command_kit import called
from linkgauge.rooms.judge_files.readers import read_text


def answer_of(folder, text):
    (folder / "log.txt").write_text(text)
    return " ".join(called("judge", folder / "log.txt", COLUMNS=200).stdout.split())


LOCAL = """\
Device: 0, NVIDIA RTX 6000 Ada Generation, pciBusID: 1, pciDeviceID: 0, pciDomainID:0
Device: 1, NVIDIA RTX 6000 Ada Generation, pciBusID: 2, pciDeviceID: 0, pciDomainID:0
Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 {}  22.00
     1  22.00 {}
"""


def test_a_cache_holds_the_copies_of_all_accelerators_or_of_none(tmp_path):
    answer = answer_of(tmp_path, LOCAL.format("1090.00", "500.00"))
    assert "verdict: fail slow cuda:1: device_local_copy cuda:1 reaches 46% of its peers'" in answer
    answer = answer_of(tmp_path, LOCAL.format("1010.00", "1090.00"))
    assert "the cache holds what is copied" in answer
    assert "high" not in answer


CPUS = """\
          RocmBandwidthTest Version: 2.6.0
          Device: 0,  AMD EPYC 7763 64-Core Processor
          Device: 1,  AMD EPYC 7763 64-Core Processor
          Device: 2,  AMD Instinct MI250X,  GPU-x,  c1:0.0
          Unidirectional copy peak bandwidth GB/s
          D/D       0           1           2
          0         N/A         N/A         8.000
          1         N/A         N/A         {}
          2         26.300      26.200      1200.000
"""


def test_one_way_of_a_cpu_is_slow_only_beside_another_cpu(tmp_path):
    found = "links CPU 0 and hip:0: CPU 0 -> hip:0 at 8 GB/s, 30% of the 26.3 GB/s in the other"
    assert found in answer_of(tmp_path, CPUS.format("26.100"))
    assert "CPU 0" not in answer_of(tmp_path, CPUS.format("8.000"))


LIMITED = (
    "[ 8.3] mlx5_core 0001:43:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe "
    "x8 link at {} (capable of 126.016 Gb/s with 8.0 GT/s PCIe x16 link)\n"
)


@pytest.mark.parametrize(("port", "is_own"), [("0001:42:01.0", True), ("0001:40:01.0", False)])
def test_the_kernel_names_a_link_anywhere_above_the_card(port, is_own, tmp_path):
    answer = answer_of(tmp_path, LIMITED.format(port))
    assert ("link-width" in answer) == is_own
    said = f"0001:43:00.0: PCIe 8 GT/s x8 of 8 GT/s x16, at {port}: its own link, or one above"
    assert (said in answer) != is_own


FABRIC = """\
GPU 00000000:01:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    Fabric
        Health
            Bandwidth                     : Degraded
"""
NAMELESS = """\
0000:{}
\t\tLnkCap:\tPort #0, Speed {}GT/s, Width x16, ASPM not supported
\t\tLnkSta:\tSpeed {}GT/s, Width x{}
"""


def test_narrow_links_push_out_no_fault(tmp_path):
    links = (NAMELESS.format(f"0{n}:00.0", 16, 16, n) for n in (1, 2, 4, 8))
    answer = answer_of(tmp_path, FABRIC + "".join(links))
    assert "verdict: warn reported the texts: NVLink's fabric: Bandwidth is Degraded" in answer
    assert "0000:08:00.0: PCIe 16 GT/s x8 of 16 GT/s x16" in answer


NAMED = """\
{} {}: {}
\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM not supported
\t\tLnkSta:\tSpeed 16GT/s, Width x8 (downgraded)
"""


def test_narrow_links_of_other_kinds_are_no_warning(tmp_path):
    gpu = NAMED.format("01:00.0", "3D controller", "NVIDIA Corporation GA102GL [A10] (rev a1)")
    disk = NAMED.format("02:00.0", "Non-Volatile memory controller", "A maker's SSD")
    answer = answer_of(tmp_path, gpu + disk)
    assert "verdict: warn link-width cuda:0 (0000:01:00.0): the link runs at x8" in answer
    assert "warn reported" not in answer  # neither the disk, nor the accelerator again


def test_a_port_above_a_card_of_fewer_lanes_is_not_narrow(tmp_path):
    port = NAMELESS.format("00:01.0", 32, 32, 8)
    card = NAMELESS.format("01:00.0", 32, 32, 8).replace("x16", "x8")
    assert "0000:00:01.0: PCIe 32 GT/s x8 of 32 GT/s x16" in answer_of(tmp_path, port)
    assert "0000:00:01.0" not in answer_of(tmp_path, port + card)
    other = card.replace("01:00.0", "00:00.0")  # it is not below
    assert "0000:00:01.0: PCIe" in answer_of(tmp_path, other + port)


@pytest.mark.parametrize(
    "command",
    [
        "lspci -vv -s 01:00.0 | grep LnkSta",
        "$ sudo lspci -vvs 01:00.0",
        'lspci -s "01:00.0" -vv',
        "# lspci -s 01:00.0 -nn -vv 2>/dev/null | grep Lnk",
    ],
)
def test_the_command_tells_the_address_in_any_order_of_options(command, tmp_path):
    lines = NAMELESS.format("", 16, 16, 8).partition("\n")[2]
    answer = answer_of(tmp_path, f"{command}\n{lines}")
    assert "0000:01:00.0: PCIe 16 GT/s x8 of 16 GT/s x16" in answer


UCX = """\
|              |       overhead (usec)        |   bandwidth (MB/s)  |  message rate (msg/s) |
Final:                  1000      0.000    40.000    40.000   {}   {}       24000       24000
"""


@pytest.mark.parametrize(
    ("ways", "name"),
    [
        ("sm,cuda_copy,cuda_ipc", "ucx_tag_bw"),
        ("tcp,cuda_copy,sm", "ucx_tag_bw_tcp"),
        ("tcp,rc,cuda_copy", "ucx_tag_bw"),
        ("^tcp", "ucx_tag_bw"),
    ],
)
def test_ucx_is_by_tcp_only_where_tcp_is_the_network(ways, name, tmp_path):
    command = f"UCX_TLS={ways} ucx_perftest host -t tag_bw -s 1048576\n"
    assert f"{name} 25.17 GB/s" in answer_of(tmp_path, command + UCX.format(24000.0, 24000.0))


def test_adapters_of_bonds_are_counted_one_by_one():
    card = "CA 'bnxt_re-bond{}'\n\tPort 1:\n\t\tState: Active\n\t\tRate: 200\n"
    (read,) = read_text("ibstat", card.format(0) + card.format(1))
    assert [one.adapters for one in read.facts] == [2]


def test_each_run_of_ucx_has_its_own_test_and_size(tmp_path):
    first, second = "ucx_perftest A -t tag_bw -s 1048576\n", "ucx_perftest A -s 8192 -t am_bw\n"
    third = UCX.format(240.0, 240.0).replace("24000", "491520")
    text = first + UCX.format(24000.0, 24000.0) + second + UCX.format(2400.0, 2400.0)
    answer = answer_of(tmp_path, text + "ucx_perftest A -t put_bw\n" + third)
    assert "ucx_tag_bw 25.17 GB/s ucx_am_bw 8 KiB 2.52 GB/s" in answer
    assert "ucx_put_bw 512 B 0.252 GB/s" in answer  # no size is given: by the rate of messages
