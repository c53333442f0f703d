"""`linkgauge as bandwidthTest` and `p2pBandwidthLatencyTest` print what the CUDA samples print."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat_kit import ONE_DEVICE, speak, where
from linkgauge.compat.base import UsageError, Where
from linkgauge.compat.cuda_samples import sample_arguments
from linkgauge.model.errors import InputError

NOTE = (
    "NOTE: The CUDA Samples are not meant for performance measurements. "
    "Results may vary when GPU Boost is enabled."
)
APART = ONE_DEVICE.replace("count: 1, model", "count: 2, model").replace(
    "each: sim:0,", "each: sim:0..1,"
)
"""Two devices on PCIe."""


@pytest.fixture
def bandwidth(capfd):
    def run(*arguments, on=None):
        return speak(capfd, "bandwidthTest", *arguments, on=on or where(ONE_DEVICE))

    return run


@pytest.fixture
def p2p(capfd):
    def run(*arguments, on=None):
        return speak(capfd, "p2pBandwidthLatencyTest", *arguments, on=on or where("ppu-8"))

    return run


def tables(text):
    """{title: {bytes: GB/s}} of bandwidthTest's text, found as scripts find it: below a line that
    ends in `Bandwidth, N Device(s)`, rows of two numbers."""
    found, rows = {}, {}
    for line in text.splitlines():
        title = re.fullmatch(r" (\w+ to \w+) Bandwidth, (\d+) Device\(s\)", line)
        row = re.fullmatch(r"   (\d+)\t+(\d+\.\d)", line)
        if title:
            rows = found[title[1], int(title[2])] = {}
        elif row:
            rows[int(row[1])] = float(row[2])
    return found


def records(text):
    """bandwidthTest's --csv: name, GB/s, seconds, bytes and devices of each line."""
    return re.findall(
        r"^bandwidthTest-(\S+), Bandwidth = (\d+\.\d) GB/s, Time = (\d+\.\d{5}) s, "
        r"Size = (\d+) bytes, NumDevsUsed = (\d+)$",
        text,
        re.MULTILINE,
    )


def matrices(text):
    """{title: rows} of the peer-to-peer test: below a title that ends in its unit, a row of the
    columns' indices, then a row for each device that begins with its index."""
    found = {}
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if re.search(r"Matrix \((GB/s|us)\)$", line):
            corner, *columns = lines[at + 1].split()
            assert corner in ("D\\D", "GPU")
            rows = [row.split() for row in lines[at + 2 : at + 2 + len(columns)]]
            assert [row[0] for row in rows] == columns
            found[line] = [[float(figure) for figure in row[1:]] for row in rows]
    return found


class TestBandwidth:
    def test_stands_as_the_sample_prints_it(self, bandwidth):
        done = bandwidth()
        assert done.code == 0
        assert done.out == (
            "[CUDA Bandwidth Test] - Starting...\n"
            "Running on...\n"
            "\n"
            " Device 0: Test Card\n"
            " Quick Mode\n"
            "\n"
            " Host to Device Bandwidth, 1 Device(s)\n"
            " PINNED Memory Transfers\n"
            "   Transfer Size (Bytes)\tBandwidth(GB/s)\n"
            "   32000000\t\t\t20.0\n"
            "\n"
            " Device to Host Bandwidth, 1 Device(s)\n"
            " PINNED Memory Transfers\n"
            "   Transfer Size (Bytes)\tBandwidth(GB/s)\n"
            "   32000000\t\t\t20.0\n"
            "\n"
            " Device to Device Bandwidth, 1 Device(s)\n"
            " PINNED Memory Transfers\n"
            "   Transfer Size (Bytes)\tBandwidth(GB/s)\n"
            "   32000000\t\t\t955.2\n"
            "\n"
            "Result = PASS\n"
            "\n"
            f"{NOTE}\n"
        )

    def test_only_the_directions_that_are_asked_for(self, bandwidth):
        found = tables(bandwidth("--dtoh", "-HTOD").out)
        assert list(found) == [("Host to Device", 1), ("Device to Host", 1)]

    def test_options_stand_behind_any_number_of_dashes_or_none(self, bandwidth):
        quick = bandwidth("htod", "-memory=pageable")
        assert list(tables(quick.out)) == [("Host to Device", 1)]
        assert "PAGEABLE Memory Transfers" in quick.out
        many = bandwidth("--htod", "memory=pinned", "MODE=shmoo")
        ((_, rates),) = tables(many.out).items()
        assert len(rates) > 50
        assert "Usage:" in bandwidth("help").out

    def test_a_range_of_sizes(self, bandwidth):
        done = bandwidth(
            "--mode=range", "--start=1024", "--end=10240", "--increment=3072", "--htod"
        )
        (rates,) = tables(done.out).values()
        assert list(rates) == [1024, 4096, 7168, 10240]
        # Sizes of few digits have one tab more, so that columns stand below each other.
        assert re.search(r"^   7168\t\t\t\t\d", done.out, re.MULTILINE)
        assert re.search(r"^   10240\t\t\t\d", done.out, re.MULTILINE)

    def test_many_sizes(self, bandwidth):
        done = bandwidth("--mode=shmoo", "--dtoh")
        (rates,) = tables(done.out).values()
        sizes = list(rates)
        assert sizes[:2] == [1000, 2000]
        assert sizes[-2:] == [64_000_000, 68_000_000]
        assert sizes == sorted(sizes)
        assert "." * len(sizes) + "\n" in done.out

    def test_all_devices_add_up(self, bandwidth):
        done = bandwidth("--device=all", "--htod", on=where(APART))
        assert "!!!!!Cumulative Bandwidth to be computed from all the devices !!!!!!" in done.out
        assert " Device 0: Test Card\n Device 1: Test Card\n" in done.out
        assert tables(done.out) == {("Host to Device", 2): {32_000_000: 39.9}}

    def test_one_device_of_several(self, bandwidth):
        done = bandwidth("--device=1", "--htod", on=where(APART))
        assert " Device 1: Test Card" in done.out
        assert " Device 0: Test Card" not in done.out

    def test_a_device_that_is_not_there_is_replaced_by_the_first(self, bandwidth):
        done = bandwidth("--device=7", "--htod")
        assert "!!!!!Invalid GPU number 7 given hence default gpu 0 will be used !!!!!" in done.out
        assert tables(done.out)

    def test_csv(self, bandwidth):
        done = bandwidth("--csv")
        assert records(done.out) == [
            ("H2D-Pinned", "20.0", "0.00160", "32000000", "1"),
            ("D2H-Pinned", "20.0", "0.00160", "32000000", "1"),
            ("D2D", "955.2", "0.00003", "32000000", "1"),
        ]

    def test_the_simulated_host_is_the_pages(self, bandwidth):
        found = tables(bandwidth("--htod", "--dtoh", on=where("ppu-8")).out)
        assert found["Host to Device", 1][32_000_000] == pytest.approx(45.0, rel=0.03)

    def test_what_cannot_be_measured_is_no_success(self, bandwidth):
        done = bandwidth("--memory=pageable", on=where(ONE_DEVICE, "crash sim:0 cells=0"))
        assert done.code == 3
        assert "   32000000\t\t\tN/A\n" in done.out
        assert "Result = FAIL" in done.out
        assert "SIGSEGV" in done.err

    @pytest.mark.parametrize(("option", "rate"), [("--memory=pageable", 12), ("--wc", 20)])
    def test_a_simulated_thread_stages_pageable_memory(self, bandwidth, option, rate):
        done = bandwidth(option, "--htod", "--dtoh", on=where(ONE_DEVICE))
        assert done.code == 0
        figures = [figure for table in tables(done.out).values() for figure in table.values()]
        assert figures == pytest.approx([rate, rate], rel=0.01)

    def test_no_device_is_a_failure_in_words(self, capfd):
        with pytest.raises(InputError):
            speak(capfd, "bandwidthTest", on=Where(backend="host"))
        assert capfd.readouterr().out.endswith("Result = FAIL\n")

    def test_a_wrong_byte_is_no_success(self, bandwidth):
        struck = where(ONE_DEVICE, "flip sim:0")
        assert bandwidth("--htod", on=struck).code == 1
        assert bandwidth("--htod", "--noverify", on=struck).code == 0

    def test_help(self, bandwidth):
        done = bandwidth("-h")
        assert done.code == 0
        assert "--memory=[MEMMODE]" in done.out

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (["--foo"], "Unknown option --foo"),
            (["h2d"], "Unknown option h2d"),
            (["--memory=none"], "Invalid memory mode - valid modes are pageable or pinned"),
            (["--memory"], "Missing value - write --memory=VALUE"),
            (["--csv=1"], "--csv takes no value"),
            (["--mode=slow"], "Invalid mode - valid modes are quick, range, or shmoo"),
            (["--mode=range"], "Must specify a starting size in range mode"),
            (["--mode=range", "--start=1"], "Must specify an end size in range mode"),
            (["--mode=range", "--start=1", "--end=2"], "Must specify an increment in user mode"),
            (
                ["--mode=range", "--start=3", "--end=2", "--increment=1"],
                "Illegal argument - start is greater than end",
            ),
            (
                ["--mode=range", "--start=1", "--end=2", "--increment=0"],
                "Illegal argument - increment must be greater than zero",
            ),
            (
                ["--mode=range", "--start=x", "--end=2", "--increment=1"],
                "Illegal argument - start must be a number",
            ),
            (["--start=1"], "start, end and increment need --mode=range"),
            (["--wc", "--memory=pageable"], "write-combined memory is pinned, not pageable"),
            (["--device=first"], "Illegal argument - device must be a number"),
        ],
    )
    def test_what_is_wrong_is_said_and_fails(self, bandwidth, arguments, says):
        done = bandwidth(*arguments)
        assert done.code == 1
        assert f"{says}\nSee --help for more information\nResult = FAIL\n" in done.out
        assert not tables(done.out)


class TestPeers:
    def test_stands_as_the_sample_prints_it(self, p2p):
        done = p2p("--numElems=1000000", on=where(APART))
        assert done.code == 0
        fallback = (
            "***NOTE: In case a device doesn't have P2P access to other one, it falls back to "
            "normal memcopy procedure."
        )
        assert [re.sub(r"\d+\.\d\d", "#", line) for line in done.out.splitlines()[:16]] == [
            "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]",
            "Device: 0, Test Card, pciBusID: 10, pciDeviceID: 0, pciDomainID:0",
            "Device: 1, Test Card, pciBusID: 11, pciDeviceID: 0, pciDomainID:0",
            "Device=0 CAN Access Peer Device=1",
            "Device=1 CAN Access Peer Device=0",
            "",
            fallback,
            "So you can see lesser Bandwidth (GB/s) and unstable Latency (us) in those cases.",
            "",
            "P2P Connectivity Matrix",
            "     D\\D     0     1",
            "     0\t     1     1",
            "     1\t     1     1",
            "Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)",
            "   D\\D     0      1 ",
            "     0 #  # ",
        ]
        assert list(matrices(done.out)) == [
            "Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)",
            "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)",
            "Bidirectional P2P=Disabled Bandwidth Matrix (GB/s)",
            "Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)",
            "P2P=Disabled Latency Matrix (us)",
            "P2P=Enabled Latency (P2P Writes) Matrix (us)",
        ]
        assert done.out.endswith(f"\n\n{NOTE}\n")

    def test_figures_are_those_of_the_links(self, p2p):
        found = matrices(p2p("--p2p_read").out)
        assert len(found) == 8
        writes = found["Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)"]
        reads = found["Unidirectional P2P=Enabled Bandwidth (P2P Reads) Matrix (GB/s)"]
        staged = found["Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)"]
        both = found["Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)"]
        # One link lies between devices 0 and 1, two ways of two links between 0 and 4.
        assert writes[0][1] == pytest.approx(46.7, rel=0.01)
        assert writes[0][4] == pytest.approx(2 * 46.7, rel=0.01)
        assert reads[0][1] == pytest.approx(47, rel=0.01)
        assert staged[0][1] == pytest.approx(45.0, rel=0.01)
        assert writes[0][1] < both[0][1] < 2 * writes[0][1]
        # Within a device what is read and written counts.
        assert writes[3][3] == pytest.approx(2125, rel=0.03)

    def test_staging_takes_one_leg_after_the_other(self, p2p):
        found = matrices(p2p("--numElems=4", on=where(APART)).out)
        direct = found["P2P=Enabled Latency (P2P Writes) Matrix (us)"][0][1]
        staged = found["P2P=Disabled Latency Matrix (us)"][0][1]
        assert staged == pytest.approx(2 * direct, rel=0.02)

    def test_the_host_enqueues_one_copy_or_both_legs_of_a_staged_one(self, p2p):
        done = p2p("--numElems=4", "--p2p_read", on=where(APART))
        assert done.err == "SIMULATED test\n"
        lines = done.out.splitlines()
        found = [
            [float(figure) for row in lines[at + 1 : at + 3] for figure in row.split()[1:]]
            for at, line in enumerate(lines)
            if line == "   CPU     0      1 "
        ]
        # A simulated host takes 2 us a call.
        assert found == [[2, 4, 4, 2], [2, 2, 2, 2], [2, 2, 2, 2]]

    def test_kernels_copy_where_peers_are_reached(self, p2p):
        by_engine = matrices(p2p("--numElems=25000000").out)
        by_kernel = matrices(p2p("--numElems=25000000", "--sm_copy").out)
        title = "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)"
        assert by_kernel[title][0][1] == pytest.approx(by_engine[title][0][1], rel=0.05)
        # Within a device the copy engine does it.
        assert by_kernel[title][0][0] == pytest.approx(by_engine[title][0][0], rel=0.01)

    def test_pairs_that_do_not_reach_each_other(self, p2p):
        islands = where(
            APART.replace("{count: 1, cpus", "{count: 2, cpus").replace(
                "to: host:0", "to: host:0..1"
            )
        )
        done = p2p("--numElems=1000", on=islands)
        assert "Device=0 CANNOT Access Peer Device=1" in done.out
        assert "     0\t     1     0\n" in done.out
        for (here, there), _ in matrices(done.out).values():
            assert here > 0
            assert math.isnan(there)
        # Nor is there a way through the host.
        assert done.code == 4
        assert "no link leads from" in done.err

    def test_an_error_costs_its_figure_only(self, p2p):
        done = p2p("--numElems=1000", on=where(APART, "crash sim:1 cells=0"))
        assert done.code == 3
        assert "Device=0 CAN Access Peer Device=1" in done.out
        writes = list(matrices(done.out).values())[1]
        # The first cell of each benchmark is the one of devices 0 and 1.
        assert [math.isnan(figure) for row in writes for figure in row] == [
            False, True, False, False,
        ]  # fmt: skip
        assert "SIGSEGV" in done.err

    def test_one_device_alone(self, p2p):
        done = p2p("--numElems=1000", on=where(ONE_DEVICE))
        assert done.code == 0
        assert all(len(rows) == 1 for rows in matrices(done.out).values())

    @pytest.mark.parametrize("asked", ["--help", "-h"])
    def test_help(self, p2p, asked):
        done = p2p(asked)
        assert done.code == 0
        assert "--numElems=<NUM_OF_INT_ELEMS>" in done.out

    @pytest.mark.parametrize(
        ("argument", "says"),
        [
            ("--foo", "Unknown option --foo"),
            ("--numElems", "Missing value - write --numElems=VALUE"),
            ("--numElems=0", "Illegal argument - numElems must be greater than zero"),
            ("--sm_copy=1", "--sm_copy takes no value"),
        ],
    )
    def test_what_is_wrong_is_said_and_fails(self, p2p, argument, says):
        done = p2p(argument)
        assert done.code == 1
        assert done.out == ""
        assert says in done.err


@given(st.lists(st.text(max_size=8) | st.sampled_from(["--csv", "-CSV", "--memory=x", "--mode"])))
def test_any_command_line_is_read_or_refused(arguments):
    try:
        read = sample_arguments(arguments, ("csv",), ("memory", "mode"))
    except UsageError as error:
        assert str(error)
    else:
        assert read.keys() <= {"csv", "memory", "mode"}
        assert len(read) <= len(arguments)
