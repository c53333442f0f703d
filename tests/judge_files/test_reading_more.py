"""What else is read in pages, in texts about host and slots, and of makers; and what is left out of
texts that are too long."""

import gzip
import json
from unittest.mock import patch

import pytest

from command_kit import called
from linkgauge.rooms.judge_files import lines, scan
from linkgauge.rooms.judge_files.descriptions import read_bytes
from linkgauge.rooms.judge_files.facts import merged
from linkgauge.rooms.judge_files.judging import run_of_texts
from linkgauge.rooms.judge_files.lines import plain
from linkgauge.rooms.judge_files.readers import read_text

TABLE = (
    "Running host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n"
    "           0         1\n 0     55.20     27.61\n\nSUM host_to_device_memcpy_ce 82.81\n"
)


def facts_of(text):
    return merged(read_text("text", text)[0].facts)[0]


def figures_of(text):
    return [one.figure / 1e9 for log in read_text("log", text)[0].logs for one in log.figures]


@pytest.mark.parametrize(
    "page",
    [
        TABLE.replace(" ", "&nbsp;").replace("\n", "<br>\n"),
        "<pre>" + TABLE + "</pre>",
        TABLE.replace("\n", "<br/>"),
        "<p><code>" + TABLE.replace("\n", "</code></p>\n<p><code>"),
        TABLE.replace(
            "           0         1\n 0     55.20     27.61\n",
            "<tr><td>0</td>\n<td>1</td></tr>\n<tr>\n<td>0</td>\n<td>55.20</td>\n<td>27.61</td></tr>\n",
        ),
    ],
)
def test_pages(page):
    assert figures_of(page) == pytest.approx([55.2, 27.61])


def test_xml_is_no_page():
    text = '<system version="1"><pci busid="0000:01:00.0" class="0x030200"/></system>'
    assert plain(text) == (text, 0)


def test_lines_in_the_middle_are_left_out_and_said_to_be():
    with patch.object(lines, "MOST_LINES", 20), patch(f"{read_text.__module__}.MOST_LINES", 20):
        (read,) = read_text("log", "text\n" * 100 + TABLE)
    assert figures_of(TABLE) == [one.figure / 1e9 for one in read.logs[0].figures]
    assert read.logs[0].remarks == ("87 lines in the middle left out: 20 lines of a text are read",)


def test_more_figures_than_that_are_left_out_and_said_to_be():
    with patch.object(scan, "MOST_FIGURES", 3):
        (log,) = read_text("log", TABLE * 4)[0].logs
    assert len(log.figures) == 3
    assert log.remarks == ("5 figures left out, after the first 3",)


BOTH_WAYS = """\
Running device_to_device_bidirectional_memcpy_read_ce.
memcpy CE GPU(row) <-> GPU(column) Read1 bandwidth (GB/s)
           0         1
 0       N/A     40.10
 1     40.20       N/A

memcpy CE GPU(row) <-> GPU(column) Read2 bandwidth (GB/s)
           0         1
 0       N/A     40.30
 1     40.40       N/A

memcpy CE GPU(row) <-> GPU(column) Total bandwidth (GB/s)
           0         1
 0       N/A     80.40
 1     80.60       N/A
"""


@pytest.mark.parametrize("most", range(2, 8))
def test_no_part_is_taken_for_the_whole_that_was_left_out(most):
    with patch.object(scan, "MOST_FIGURES", most):
        logs = read_text("log", TABLE + BOTH_WAYS)[0].logs
        run = run_of_texts(read_text("log", TABLE + BOTH_WAYS), None, "x")
    both = [one for log in logs for one in log.figures if "bidirectional" in one.benchmark]
    assert not any(one.part is not None for one in both)
    cells = [c for result in run.results for c in result.cells if "bidir" in result.benchmark]
    assert all(cell.summary.median > 80e9 for cell in cells)
    assert len(cells) == max(most - 6, 0)


def test_a_matrix_in_json_with_a_line_for_each_figure_is_one_line_for_each_row():
    matrix = [[f"{40 + n + m / 100:.2f}" if n != m else "N/A" for m in range(9)] for n in range(9)]
    test = {
        "name": "device_to_device_memcpy_read_ce", "status": "Passed", "bandwidth_matrix": matrix,
    }  # fmt: skip
    text = json.dumps({"nvbandwidth": {"testcases": [test]}}, indent="\t")
    with patch.object(lines, "MOST_LINES", 50), patch(f"{read_text.__module__}.MOST_LINES", 50):
        (read,) = read_text("log", text)
    assert [len(log.figures) for log in read.logs] == [72]


def test_a_gzipped_log_is_read():
    (read,) = read_bytes("log.gz", gzip.compress(TABLE.encode()))
    assert len(read.logs[0].figures) == 2


MODULE = """\
Handle 0x0045, DMI type 17, 84 bytes
Memory Device
\tData Width: {width}
\tSize: {size}
\tLocator: DIMM_{channel}1
\tBank Locator: P0 CHANNEL {channel}
\tType: DDR4
\tSpeed: 2933 MT/s
\tConfigured Memory Speed: {rate}
"""


def test_modules_of_memory_give_its_rate():
    """Two of three channels have a module, at the rate that is set: 2 × 8 bytes × 2.4 GT/s."""
    full = [MODULE.format(width="64 bits", size="32 GB", channel=c, rate="2400 MT/s") for c in "AB"]
    empty = MODULE.format(width="Unknown", size="No Module Installed", channel="C", rate="Unknown")
    text = "\n".join([*full, empty])
    facts = facts_of(text)
    assert [one.width for one in facts.dimms] == [64, 64, None]
    run = run_of_texts(read_text("log", TABLE + text), None, "x")
    assert run.machine.inventory.host.memory_rate == 38.4e9


@pytest.mark.parametrize(
    ("said", "state"), [("Translated", "translating"), ("Passthrough", "passthrough")]
)
def test_the_kernel_says_how_the_iommu_translates(said, state):
    text = f"[    1.234567] iommu: Default domain type: {said}\n"
    assert facts_of(text).iommu == state
    run = run_of_texts(read_text("log", TABLE + text), None, "x")
    assert run.machine.inventory.host.iommu == state


CARD = """\
{0}0:00.0 PCI bridge: Advanced Micro Devices, Inc. [AMD/ATI] Navi 10 XL Upstream Port
\tBus: primary={0}0, secondary={0}1, subordinate={0}2
\tCapabilities: [58] Express (v2) Upstream Port, MSI 00
\t\tLnkSta:\tSpeed 8GT/s (downgraded), Width x8 (downgraded)
{0}1:00.0 PCI bridge: Advanced Micro Devices, Inc. [AMD/ATI] Navi 10 XL Downstream Port
\tBus: primary={0}1, secondary={0}2, subordinate={0}2
\t\tLnkSta:\tSpeed 16GT/s, Width x16
"""
GPU = """\
{0}2:00.0 Display controller: Advanced Micro Devices, Inc. [AMD/ATI] Navi 31 [RX 7900 XTX]
\tLnkCap:\tPort #0, Speed 16GT/s, Width x16
\tLnkSta:\tSpeed 16GT/s, Width x16
"""


def test_the_slot_of_a_card_with_a_switch_of_its_own():
    """It is that of the outermost port; the link of the GPU itself tells nothing of it."""
    gpus = facts_of((CARD + GPU).format(0)).gpus
    assert (gpus[0].speed, gpus[0].width) == (8.0, 8)
    (alone,) = facts_of(GPU.format(0)).gpus.values()
    assert (alone.speed, alone.width, alone.max_width) == (None, None, None)
    nvidia = GPU.replace("Advanced Micro Devices, Inc. [AMD/ATI]", "NVIDIA Corporation")
    (other,) = facts_of(nvidia.format(0)).gpus.values()
    assert (other.speed, other.width) == (16.0, 16)


def test_the_name_of_a_row_may_touch_its_first_figure():
    names = ["HOST", *(f"rbln{n}" for n in range(12))]
    rows = [f"{one:<6}" + " ".join(f"{100 + n}.{m:02}" for m in range(13))
            for n, one in enumerate(names)]  # fmt: skip
    text = f"Device Write bandwidth (GB/s)\nS \\\\ D  {'  '.join(names)}\n" + "\n".join(rows) + "\n"
    (log,) = read_text("log", text)[0].logs
    found = {(o.benchmark, *o.place): o.figure / 1e9 for o in log.figures}
    assert len(found) == len(log.figures) == 13 * 12
    assert found["host_to_device_memcpy_ce", "0", "10"] == pytest.approx(100.11)
    assert found["device_to_host_memcpy_ce", "0", "10"] == pytest.approx(111.0)
    assert found["device_to_device_memcpy_write_ce", "11", "1"] == pytest.approx(112.02)


PEERS = """\
$ nvidia-smi topo -p2p {asked}
 \tGPU0\tGPU1\tGPU2\t
 GPU0\tX\t{how}\t{how}\t
 GPU1\t{how}\tX\t{how}\t
 GPU2\t{how}\t{how}\tX\t

Legend:

  X    = Self
  OK   = Status Ok
  CNS  = Chipset not supported
  GNS  = GPU not supported
  TNS  = Topology not supported
  NS   = Not supported
  DR   = Disabled by regkey
  U    = Unknown
"""  # as in issue 13 of aikitoria/open-gpu-kernel-modules
LINKS = """\
        GPU0    GPU1    CPU Affinity
GPU0     X      PHB     0-63
GPU1    PHB      X      0-63
"""


@pytest.mark.parametrize(
    ("asked", "how", "ways", "warnings"),
    [
        ("r", "OK", {"peer access"}, set()),
        ("p", "OK", {"peer access"}, set()),
        ("rw", "GNS", set(), {"no peer access, the GPUs do not support it"}),
        ("w", "CNS", set(), {"no peer access, the chipset does not support it"}),
        ("r", "NS", set(), {"no peer access, not supported"}),
        ("r", "U", set(), set()),
        ("n", "NS", {"no NVLink"}, set()),
        ("n", "OK", {"NVLink"}, set()),
        ("a", "CNS", {"no peer atomics"}, set()),
    ],
)
def test_what_the_driver_allows_between_gpus(asked, how, ways, warnings):
    facts = facts_of(PEERS.format(asked=asked, how=how))
    assert (facts.ways, facts.warnings) == (ways, warnings)


def test_without_the_command_no_support_may_be_that_of_nvlink():
    matrix = PEERS.partition("\n")[2]
    assert not facts_of(matrix.format(how="NS")).warnings
    assert facts_of(matrix.format(how="TNS")).warnings
    (read,) = read_text("log", PEERS.format(asked="r", how="OK").partition("\n")[2])
    assert read.understood == read.lines


def test_reads_that_are_allowed_are_no_peer_access_where_writes_are_not():
    text = PEERS.format(asked="r", how="OK") + PEERS.format(asked="w", how="DR")
    facts = facts_of(text)
    assert not facts.ways
    assert facts.warnings == {"no peer access, disabled by a key of the driver"}


def test_a_table_of_peers_hides_no_table_of_links():
    facts = facts_of(PEERS.format(asked="r", how="OK") + LINKS)
    assert facts.joins == {(0, 1): "PHB"}
    assert facts.ways == {"peer access"}


ETHTOOL = """\
Settings for {name}:
\tSupported ports: [ Backplane ]
\tSupported link modes:   25000baseCR/Full
\t                        100000baseSR4/Full
\tSupports auto-negotiation: Yes
\tSupported FEC modes: None RS BASER
\tSpeed: {speed}
\tDuplex: Full
\tAuto-negotiation: on
\tPort: Direct Attach Copper
Cannot get wake-on-lan settings: Operation not permitted
\tLink detected: yes
"""  # as in issue 7370 of canonical/lxd


@pytest.mark.parametrize(
    ("speeds", "gigabits"),
    [
        (["100000Mb/s"], "100"),
        (["1000Mb/s", "200000Mb/s"], "200"),
        (["1000Mb/s", "25000Mb/s", "25000Mb/s", "Unknown!"], "25"),
        (["1600000Mb/s"], "1600"),
    ],
)
def test_the_speed_of_ethtool(speeds, gigabits):
    text = "".join(ETHTOOL.format(name=f"ens{n}f0", speed=one) for n, one in enumerate(speeds))
    (read,) = read_text("log", text)
    assert read.facts[0].settings == {"adapter Gb/s": gigabits}
    assert read.understood == read.lines


def test_an_adapter_without_link_has_no_speed():
    assert not read_text("log", ETHTOOL.format(name="ens1", speed="Unknown!"))[0].facts


ROCM = """\
RocmBandwidthTest Version: 2.6.0
Device: 0,  Intel(R) Xeon(R)
Device: 1,  gfx906
Unidirectional copy peak bandwidth GB/s
D/D 0 1
0 N/A 13.7
1 14.2 N/A
"""
HCCL = """\
[BENCHMARK] hcclAllReduce(dataSize=33554432, count=8388608, dtype=float, iterations=1)
[BENCHMARK]     NW Bandwidth   : 258.2 GB/s
[BENCHMARK]     Algo Bandwidth : 147.543 GB/s
"""


@pytest.mark.parametrize(("text", "space"), [(TABLE, "cuda"), (ROCM, "hip"), (HCCL, "hpu")])
def test_accelerators_have_their_makers_name(text, space):
    run = run_of_texts(read_text("log", text), None, "x")
    assert {one.memory.partition(":")[0] for one in run.machine.all_devices} == {space}


def test_remedies_are_of_the_maker(tmp_path):
    of = range(1, 5)
    rows = [f"{a} " + " ".join("N/A" if a == b else "50.0" for b in of) for a in of]
    rows[0] = rows[0].replace("50.0", "20.0", 1)
    text = "RocmBandwidthTest Version: 2.6.0\n" + "".join(
        f"Device: {n},  AMD Instinct MI210,  GPU-{n:04x},  0{n}:0.0\n" for n in of
    )
    text += "Unidirectional copy peak bandwidth GB/s\nD/D 1 2 3 4\n" + "\n".join(rows) + "\n"
    (tmp_path / "log.txt").write_text(text)
    answer = called("judge", tmp_path / "log.txt").stdout
    assert "hip:0" in answer
    assert "nvidia-smi" not in answer


def test_uneven_exchanges_are_read_and_not_judged():
    text = (
        "# Collective test starting: alltoallv_perf\n"
        "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
        "1073741824 33554432 float none -1 3320.10 323.41 282.98 0 3318.30 323.58 283.13 N/A\n"
    )
    (log,) = read_text("log", text)[0].logs
    assert [(one.benchmark, one.figure) for one in log.figures] == [("alltoallv", 283.13e9)]


def test_a_text_about_the_host_alone_describes_a_machine(tmp_path):
    (tmp_path / "numactl.txt").write_text(
        "available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode 0 size: 1000 MB\nnode 1 cpus: 2 3\n"
        "node 1 size: 1000 MB\nnode distances:\nnode   0   1\n  0:  10  21\n  1:  21  10\n"
    )
    done = called("devices", "--machine", tmp_path / "numactl.txt")
    assert done.returncode == 0, done.stderr
    assert "host:0-1" in done.stdout
    (tmp_path / "free.txt").write_text("nothing\n")
    done = called("devices", "--machine", tmp_path / "free.txt")
    assert done.returncode == 2
    assert "numactl -H" in done.stderr


def test_a_curve_that_falls_is_said_to_fall(tmp_path):
    head = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
    rows = [(16 << 20, 12.57, 24.06), (32 << 20, 15.39, 29.5), (64 << 20, 2.75, 5.27),
            (1 << 30, 2.76, 5.29)]  # fmt: skip
    table = "".join(
        f"{size} {size // 4} float sum -1 {size / algorithm / 1e3:.2f} {algorithm} {bus} 0 "
        f"{size / algorithm / 1e3:.2f} {algorithm} {bus} 0\n"
        for size, algorithm, bus in rows
    )
    (tmp_path / "log.txt").write_text(f"all_reduce_perf\n{head}{table}")
    answer = " ".join(called("judge", tmp_path / "log.txt").stdout.split())
    assert "falls from 29.5 GB/s at 32 MiB to 5.29 GB/s or less from 64 MiB on" in answer
    assert "large sizes reach 29" not in answer


def test_more_than_links_carry_is_impossible(tmp_path):
    head = (
        "+---+\n|   |   overhead (usec)   |   bandwidth (MB/s)  |  message rate (msg/s) |\n+---+\n"
    )
    topology = (
        "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
        "GPU0\t X \tNV6\t0-31\t0\nGPU1\tNV6\t X \t0-31\t0\n"
    )
    for rate, is_odd in ((956192.9, True), (120000.0, False)):
        text = f"{head}Final: 560 21162.373 21156.088 19947.318 {rate} {rate} 47 50\n\n{topology}"
        (tmp_path / "log.txt").write_text(text)
        answer = called("judge", tmp_path / "log.txt").stdout
        assert ("impossible" in answer) is is_odd
        assert "not judged" in answer
