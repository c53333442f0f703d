"""Texts without a tool's head or without its figures, and tools of other makers."""

from __future__ import annotations

import pytest

from command_kit import called
from reported_kit import answer_of

LIMITED = (
    "{}pci 0000:01:00.0: 8.000 Gb/s available PCIe bandwidth, limited by {} GT/s PCIe x4 link at "
    "0000:00:00.0 (capable of 31.504 Gb/s with {} GT/s PCIe x4 link)\n"
)


@pytest.mark.parametrize("stamp", ["", "[    0.289221] [      T1] "])
@pytest.mark.parametrize(
    ("speed", "most", "warns"),
    [("2.5", "8.0", True), ("8.0", "16.0", False), ("2.5", "5.0", False)],
)
def test_a_link_at_the_first_generation(stamp, speed, most, warns, tmp_path):
    """An older slot may be a generation behind its card: that is no fault."""
    answer = answer_of(tmp_path, LIMITED.format(stamp, speed, most))
    assert ("verdict: warn" in answer) == warns
    assert ("PCIe 2.5 GT/s x4 of 8 GT/s x4" in answer) == warns


SLOT = """\
Memory Device
\tSize: {}
\tLocator: DIMM{}
\tBank Locator: _Node{}_Channel{}_Dimm{}
\tConfigured Memory Speed: 1867 MT/s

"""
EMPTY = "No Module Installed"


def slots(filled):
    """Two nodes of four channels with two slots each."""
    places = [(node, channel, slot) for node in "01" for channel in "0123" for slot in "01"]
    return "".join(SLOT.format("8 GB" if filled(*at) else EMPTY, "".join(at), *at) for at in places)


def test_channels_without_a_module_are_counted(tmp_path):
    answer = answer_of(tmp_path, slots(lambda node, channel, slot: channel == slot == "0"))
    assert "verdict: warn" in answer
    assert "6 of 8 channels are empty" in answer


def test_an_empty_second_slot_of_each_channel_is_no_alarm(tmp_path):
    answer = answer_of(tmp_path, slots(lambda node, channel, slot: slot == "0"))
    assert "verdict: not judged" in answer
    assert "empty" not in answer


@pytest.mark.parametrize(
    ("line", "speed"),
    [
        ("Speed: 2133 MT/s   Part Number: F4-3200C16   Configured Memory Speed: {}", 2133),
        ("Bank Locator: P0 CHANNEL A   Speed: 3200 MT/s   Configured Memory Speed: {}", 1333),
    ],
)
def test_modules_of_memory_in_a_line_each(line, speed, tmp_path):
    text = "Size: No Module Installed            (slot 1)\nSize: 16 GB   "
    text += f"{line.format(f'{speed} MT/s')}\n"
    assert f"memory modules at {speed} MT/s" in answer_of(tmp_path, 2 * text)


PORTS = {
    "mlxlink": """\
State                           : Active
Physical state                  : LinkUp
Speed                           : IB-HDR
Width                           : 2x
Enabled Link Speed              : 0x00000075 (HDR,EDR,FDR,QDR,SDR)
Operational Info
""",
    "opainfo": """\
   PortState:     Active
   LinkSpeed      Act: 25Gb         En: 25Gb
   LinkWidth      Act: 4            En: 4
   LinkWidthDnGrd ActTx: 4  Rx: 4   En: 3,4
""",
}


@pytest.mark.parametrize("tool", PORTS)
def test_the_speed_of_a_port_without_figures(tool, tmp_path):
    answer = answer_of(tmp_path, PORTS[tool])
    assert "1 adapter of 100 Gb/s" in answer
    assert "verdict: not judged" in answer


def iperf3(rate, head=""):
    return f"""\
Connecting to host 192.0.2.6, port 5201
{head}[  4] local 192.0.2.11 port 56650 connected to 192.0.2.6 port 5201
[  4]   0.00-10.00  sec  5.53 GBytes  {rate} Gbits/sec                  sender
[  4]   0.00-10.00  sec  5.53 GBytes  {rate} Gbits/sec                  receiver
"""


def test_both_directions_of_iperf3_are_two_figures(tmp_path):
    back = iperf3("5.75", "Reverse mode, remote host 192.0.2.6 is sending\n")
    up = "ixgbe 0000:24:00.0 enp36s0: NIC Link is Up 10 Gbps, Flow Control: RX/TX\n"
    answer = answer_of(tmp_path, up + iperf3("4.75") + back + iperf3("4.75"))
    assert "nic_tcp_iperf3 4.75 Gb/s" in answer
    assert "nic_tcp_iperf3_back 5.75 Gb/s" in answer
    assert "1 adapter of 10 Gb/s" in answer


def test_the_slow_port_of_a_server_is_not_its_network(tmp_path):
    up = "igb 0000:02:00.0 eno1: igb: eno1 NIC Link is Up 1000 Mbps Full Duplex\n"
    assert "adapter of" not in answer_of(tmp_path, up + iperf3("94.1"))
    both = f"{up}ice 0000:41:00.0 ens1: NIC Link is up 100 Gbps Full Duplex\n"
    settings = f"{both}Settings for ens1:\n\tSpeed: 100000Mb/s\n"
    assert "1 adapter of 100 Gb/s" in answer_of(tmp_path, settings + iperf3("94.1"))


def test_the_command_names_a_test_of_osu_without_its_head(tmp_path):
    run = "mpirun -np 2 -mca pml {} ./osu_put_bw\n[...]\n1048576    {}\n4194304    {}\n"
    answer = answer_of(
        tmp_path, run.format("ucx", 4004.36, 3763.7) + run.format("cm", 12381, 12246)
    )
    assert "Runs of osu_bw differ in 3.76 GB/s and 12.2 GB/s" in answer


NO_MEMORY = "$ ib_read_bw -q 30 192.0.2.7\nCouldn't allocate MR\nfailed to create mr\n"
NO_FABRIC = """\
# Using devices
gpu: Test CUDA failure common.cu:1030 'system not yet initialized'
 .. gpu pid 3018: Test failure common.cu:937
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (NO_MEMORY, "perftest says: Couldn't allocate MR"),
        (NO_FABRIC, "'system not yet initialized'"),
    ],
)
def test_a_tool_that_ended_before_its_table_fails(text, said, tmp_path):
    answer = answer_of(tmp_path, text)
    assert "verdict: fail error" in answer
    assert said in answer


def test_a_sum_over_devices_is_divided(tmp_path):
    text = """\
[CUDA Bandwidth Test] - Starting...
 Host to Device Bandwidth, 2 Device(s)
 PINNED Memory Transfers
   Transfer Size (Bytes)        Bandwidth(GB/s)
   32000000                     19.9
"""
    answer = answer_of(tmp_path, text)
    assert "19.9 GB/s are the sum of 2 devices, one after another" in answer
    assert "host_to_device_memcpy_ce host:0 -> cuda:1 9.95 GB/s" in answer


ARC = """\
03:00.0 VGA compatible controller: Intel Corporation DG2 [Arc A770] (rev 08)
\tLnkCap:\tPort #0, Speed 2.5GT/s, Width x1, ASPM L0s L1
\tLnkSta:\tSpeed 2.5GT/s, Width x1
"""


def test_the_own_end_of_an_arc_card_is_no_fault(tmp_path):
    answer = answer_of(tmp_path, ARC)
    assert "always says PCIe 2.5 GT/s x1, which is no fault" in answer
    assert "verdict: not judged" in answer


def test_a_port_whose_link_never_comes_up(tmp_path):
    text = """\
02:03.0 PCI bridge [0604]: ASMedia Technology Inc. ASM2824 PCIe Gen3 Packet Switch (rev 01)
[...]
\t\tLnkSta:\tSpeed 5GT/s (downgraded), Width x1 (ok)
\t\t\tTrErr- Train{} SlotClk+ DLActive{} BWMgmt+ ABWMgmt-
"""
    said = "the link below 0000:02:03.0 trains and never comes up"
    assert said in answer_of(tmp_path, text.format("+", "-"))
    assert said not in answer_of(tmp_path, text.format("-", "+"))


@pytest.mark.parametrize(("target", "warns"), [("2.5", True), ("16", False)])
def test_a_port_that_is_set_to_a_slow_speed(target, warns, tmp_path):
    text = f"""\
$ sudo lspci -vv -s 02:00.0 | grep -E 'LnkCap:|LnkSta:|LnkCtl2:'
    LnkCap:  Port #0, Speed 16GT/s, Width x4
    LnkSta:  Speed 2.5GT/s, Width x4
    LnkCtl2: Target Link Speed: {target}GT/s
"""
    said = "0000:02:00.0 is set to 2.5 GT/s (Target Link Speed) of 16"
    assert (said in answer_of(tmp_path, text)) == warns


def test_the_averages_of_transferbench_alone(tmp_path):
    text = """\
                           CPU->CPU  CPU->GPU  GPU->CPU  GPU->GPU
Averages (During UniDir):       N/A      5.48      7.17       N/A
"""
    answer = answer_of(tmp_path, text)
    assert "host_to_device_memcpy_sm 5.48 GB/s" in answer
    assert "device_to_host_memcpy_sm 7.17 GB/s" in answer


def test_a_text_that_describes_no_machine_is_for_judge(tmp_path):
    (tmp_path / "lspci.txt").write_text(LIMITED.format("", "2.5", "8.0"))
    said = called("doctor", "--machine", tmp_path / "lspci.txt").stderr
    assert "linkgauge judge lspci.txt says what it shows" in " ".join(said.split())


RANKS = "#  Rank  {} Pid  33 on node-{} device  {} [0x27] NVIDIA A100-SXM4-80GB\n"
TABLE = "#       size         count      type   redop    root     time   algbw   busbw{}\n"
PORT = """\
CA 'mlx5_{}'
\tPort 1:
\t\tState: {}
\t\tRate: 400
"""


def test_columns_that_were_cut_off(tmp_path):
    ranks = "".join(RANKS.format(n, 0, n) for n in range(8))
    rows = "16777216 4194304 float sum -1 110.5 151.81 265.67\n"
    answer = answer_of(tmp_path, f"{ranks}{TABLE.format('')}{rows}")
    assert "151.83 265.70" in answer
    assert "left out" not in answer


def test_a_list_of_ranks_that_was_cut_off(tmp_path):
    """busbw by algbw tells 32 ranks, of which five stand in the text."""
    ranks = "".join(RANKS.format(n, 0, n) for n in range(5))
    rows = "8388608 2097152 float sum 297.5 28.20 54.63 5e-07 297.5 28.20 54.63 5e-07\n"
    head = TABLE.format("  error     time   algbw   busbw  error").replace("root", "")
    answer = answer_of(tmp_path, f"{ranks}...\n{head}{rows}")
    assert "54.6" in answer
    assert "the ranks are those of 4 hosts with 8 accelerators each" in answer


@pytest.mark.parametrize("state", ["Active", "Down"])
def test_a_port_that_is_down_is_the_first_cause(state, tmp_path):
    ranks = "".join(RANKS.format(n, n // 8, n % 8) for n in range(16))
    ports = "".join(PORT.format(n, state if n == 3 else "Active") for n in range(8))
    rows = "8589934592 2147483648 float sum -1 86754 99.01 185.65 0 86754 99.01 185.65 0\n"
    head = TABLE.format(" #wrong     time   algbw   busbw #wrong")
    answer = answer_of(tmp_path, f"{ports}{ranks}{head}{rows}")
    assert "perhaps low" in answer
    assert ("the texts show a port that is down (mlx5_3)" in answer) == (state == "Down")


RDMA = """\
$ ib_write_bw 192.0.2.7
{}                    RDMA_Write BW Test
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      5000             11500.00           11400.00           0.182400
{}"""


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ("Couldn't set affinity\n", "", "not judged"),
        ("Couldn't set affinity\n", "VALIDATION: FAILED at byte 12\n", "fail wrong-bytes"),
    ],
)
def test_harmless_words_of_perftest_hide_nothing(before, after, verdict, tmp_path):
    assert f"verdict: {verdict}" in answer_of(tmp_path, RDMA.format(before, after))


def test_words_of_other_programs_are_not_perftests(tmp_path):
    text = f"# I ran ib_write_bw before\nslurmstepd: Failed to open debug file\n{iperf3('94.1')}"
    assert "perftest" not in answer_of(tmp_path, text)


def test_an_unknown_test_of_osu_is_no_figure_of_the_one_before(tmp_path):
    text = "$ ./osu_bw\n1048576 12345.67\n$ ./osu_allreduce\n1048576 350.11\n"
    answer = answer_of(tmp_path, text)
    assert "12.3" in answer
    assert "350" not in answer
    assert "differ" not in answer


def test_averages_that_are_no_numbers(tmp_path):
    answer = answer_of(tmp_path, "Averages (During UniDir):  5.1  5.48  ...  N/A\n")
    assert "Traceback" not in answer


DUAL = """\
CA 'mlx5_0'
\tPort 1:
\t\tState: Active
\t\tRate: 100
\tPort 2:
\t\tState: Down
\t\tPhysical state: Polling
CA 'mlx5_1'
\tPort 1:
\t\tState: Down
\t\tPhysical state: Disabled
"""


def test_unused_ports_are_no_cause(tmp_path):
    ranks = "".join(RANKS.format(n, n // 8, n % 8) for n in range(16))
    rows = "8589934592 2147483648 float sum -1 867540 9.90 18.56 0 867540 9.90 18.56 0\n"
    head = TABLE.format(" #wrong     time   algbw   busbw #wrong")
    assert "that is down" not in answer_of(tmp_path, f"{DUAL}{ranks}{head}{rows}")


def test_ports_of_two_kinds_keep_their_speeds(tmp_path):
    other = PORTS["mlxlink"].replace("IB-HDR", "200G").replace("2x", "4x")
    assert "2 adapters of 200 Gb/s" in answer_of(tmp_path, 2 * other + PORTS["mlxlink"])


@pytest.mark.parametrize(
    ("at", "lanes"),
    [("0000:03:01.0", "x4"), ("0000:00:01.0", "x16")],
    ids=["Thunderbolt", "a graphics card before its driver"],
)
def test_links_that_begin_at_the_first_generation(at, lanes, tmp_path):
    text = LIMITED.format("", "2.5", "8.0").replace("0000:00:00.0", at).replace("x4", lanes)
    assert "verdict: warn" not in answer_of(tmp_path, text)


@pytest.mark.parametrize("has_card", [True, False])
def test_an_empty_slot_trains_without_an_alarm(has_card, tmp_path):
    text = f"""\
02:03.0 PCI bridge [0604]: ASMedia Technology Inc. ASM2824 PCIe Gen3 Packet Switch (rev 01)
\t\tLnkSta:\tSpeed 5GT/s (downgraded), Width {"x1" if has_card else "x0"}
\t\t\tTrErr- Train+ SlotClk+ DLActive- BWMgmt+ ABWMgmt-
"""
    assert ("never comes up" in answer_of(tmp_path, text)) == has_card


def test_json_of_iperf3_tells_its_direction(tmp_path):
    one = '{{"start": {{"test_start": {{"num_streams": 1, "reverse": {}}}}}, "end": '
    one += '{{"sum_received": {{"bits_per_second": {}}}}}}}\n'
    answer = answer_of(tmp_path, one.format(0, 9.4e9) + one.format(1, 4.7e9))
    assert "nic_tcp_iperf3 9.4 Gb/s, nic_tcp_iperf3_back 4.7 Gb/s" in answer
