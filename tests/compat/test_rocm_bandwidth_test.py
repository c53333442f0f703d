"""`linkgauge as rocm-bandwidth-test` prints what a reader of that tool's output finds."""

import os
import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat_kit import interrupted_after, speak, where
from linkgauge.compat import copy_cells
from linkgauge.compat.base import UsageError, Where
from linkgauge.compat.rocm_bandwidth_test_options import ONE_SIZE, SIZES, parse
from linkgauge.model.errors import InputError

GOLDEN = Path(__file__).parent / "golden"
MB = 1 << 20


@pytest.fixture
def rbt(capfd):
    def run(line, on=None):
        arguments = shlex.split(line)
        return speak(capfd, "rocm-bandwidth-test", *arguments, on=on or where("riscv-2gpu"))

    return run


def compare(name, done):
    path = GOLDEN / f"rocm_bandwidth_test_{name}.txt"
    text = f"{done.out}\n--- stderr\n{done.err}"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


def matrices(text):
    """The figures of each matrix, by its title, as scripts split them."""
    found = {}
    title = None
    for line in text.splitlines():
        words = line.split()
        if line.startswith(" " * 10 + "Inter") or "bandwidth GB/s" in line or "Validation" in line:
            title = line.strip()
            found[title] = []
        elif title and words and words[0].isdigit():
            found[title].append(words[1:])
    return found


def tables(text):
    """The lines of each table, by the numbers of source and destination."""
    found = {}
    for part in text.split("directional Benchmark Result")[1:]:
        ends = tuple(map(int, re.findall(r"(?:Src|Dst) Device Id: (\d+)", part)))
        found[ends] = re.findall(
            r"^(\d+ (?:Bytes|KB|MB)) +(\S+) +(\S+) +(\S+) +(\S+) *$", part, re.MULTILINE
        )
    return found


class TestMatrices:
    def test_without_arguments_all_devices_one_way_then_both(self, rbt):
        done = rbt("")
        assert done.code == 0
        compare("default", done)
        read = matrices(done.out)
        one = read["Unidirectional copy peak bandwidth GB/s"]
        both = read["Bidirectional copy peak bandwidth GB/s"]
        assert one[0][0] == both[0][0] == both[1][1] == "N/A", "no copies between two nodes"
        assert both[1][2] == both[2][1]
        assert float(both[1][2]) == pytest.approx(2 * float(one[1][2]), rel=0.05)
        assert float(one[1][1]) > float(one[1][2]), "within a device"

    def test_nodes_come_first(self, rbt):
        done = rbt("-a", on=where("dgx-h200-8"))
        names = re.findall(r"Device: (\d+),  (\S+)", done.out)
        assert [int(number) for number, _ in names] == list(range(10))
        rows = matrices(done.out)["Unidirectional copy peak bandwidth GB/s"]
        assert rows[0][:2] == rows[1][:2] == ["N/A", "N/A"]
        distances = matrices(done.out)["Inter-Device Numa Distance"]
        assert distances[0][:2] == ["0", "20"]

    def test_topology(self, rbt):
        done = rbt("-t")
        assert done.code == 0
        compare("topology", done)

    def test_devices_alone(self, rbt):
        done = rbt("-e")
        assert "Device Type:                            GPU" in done.out
        assert "Inter-Device" not in done.out

    def test_validation(self, rbt):
        done = rbt("-v")
        rows = matrices(done.out)["Data Path Validation"]
        assert rows == [["N/A", "PASS", "PASS"], ["PASS"] * 3, ["PASS"] * 3]

    def test_validation_of_one_path(self, rbt):
        read = matrices(rbt("-s 0 -d 2 -v").out)
        assert read["Data Path Validation"][0] == ["N/A", "N/A", "PASS"]
        assert read["Inter-Device Access"][1] == ["N/A", "1", "N/A"]

    def test_a_wrong_byte_fails_validation(self, rbt):
        done = rbt("-v", on=where("riscv-2gpu", "flip sim:1"))
        assert done.code == 1
        assert "FAIL" in {
            word for row in matrices(done.out)["Data Path Validation"] for word in row
        }
        assert "sim:1 is wrong at byte 0" in done.err

    def test_after_ctrl_c_the_rest_is_not_available(self, rbt, monkeypatch):
        monkeypatch.setattr(copy_cells, "measure", interrupted_after(1))
        done = rbt("-a")
        assert done.code == 130
        row = matrices(done.out)["Unidirectional copy peak bandwidth GB/s"][0]
        assert (row[1] != "N/A", row[2]) == (True, "N/A")


class TestTables:
    def test_lists_of_devices(self, rbt):
        done = rbt("-s 0,1 -d 2 -m 64,1")
        assert done.code == 0
        compare("lists", done)
        read = tables(done.out)
        assert list(read) == [(0, 2), (1, 2)]
        for size, mean, rate, least, peak in read[0, 2]:
            moved = int(size.split()[0]) * MB
            assert float(rate) == pytest.approx(moved / float(mean) / 1e3, rel=1e-3)
            assert float(peak) == pytest.approx(moved / float(least) / 1e3, rel=1e-3)
            assert float(least) <= float(mean)
        assert [line[0] for line in read[0, 2]] == ["1 MB", "64 MB"]

    def test_both_ways_each_pair_once(self, rbt):
        done = rbt("-b 0,1,2 -m 16")
        assert list(tables(done.out)) == [(0, 1), (0, 2), (1, 2)]
        assert "Bidirectional Benchmark Result" in done.out

    def test_latency_takes_small_sizes(self, rbt):
        (lines,) = tables(rbt("-s 0 -d 1 -l").out).values()
        assert (len(lines), lines[0][0], lines[-1][0]) == (20, "1 Bytes", "512 KB")

    def test_pairs_at_the_same_time_share_what_carries_both(self, rbt):
        alone = tables(rbt("-s 0 -d 1").out)[0, 1][-1]
        both = tables(rbt("-k 0,1,2,1").out)
        assert list(both) == [(0, 1), (2, 1)]
        assert both[0, 1][-1][0] == "512 MB"
        assert float(both[0, 1][-1][2]) == pytest.approx(float(alone[2]), rel=0.05)

    def test_within_a_device_reads_and_writes_count(self, rbt):
        ((line,),) = tables(rbt("-s 1 -d 1 -m 64").out).values()
        assert float(line[4]) == pytest.approx(2 * 64 * MB / float(line[3]) / 1e3, rel=1e-3)

    def test_version_and_help(self, rbt):
        assert "RocmBandwidthTest Version: 2.6.0" in rbt("-q").out
        done = rbt("-h")
        assert done.code == 0
        assert "-K    Pairs of devices" in done.out
        assert "-c has no effect here" in rbt("-s 0 -d 1 -m 1 -c").err


class TestTrouble:
    @pytest.mark.parametrize(
        ("line", "says"),
        [
            ("-x", "invalid option -- 'x'"),
            ("-s", "option requires an argument -- 's'"),
            ("0", "no option takes '0'"),
            ("-s 0", "-s and -d go together"),
            ("-s 0 -d 1 -a", "-a, -d, -s exclude each other"),
            ("-a -A", "-a, -A exclude each other"),
            ("-a -l", "-a excludes -l"),
            ("-l", "-a excludes -l"),
            ("-A -m 4", "-A excludes -m"),
            ("-b 0,1 -v", "-b excludes -v"),
            ("-K 0,1 -m 4", "-K excludes -m"),
            ("-k 0,1,2", "-k and -K take pairs"),
            ("-s 0 -d 1 -l -m 4", "-s and -d take one of -l, -m, -v"),
            ("-s 0,,1 -d 2", "-s '0,,1': give numbers with commas"),
            ("-s 0,0 -d 2", "-s 0,0: device listed twice"),
            ("-s 0 -d 3", "no device 3: there are 0 to 2"),
            ("-s 0 -d 0", "no copy between two nodes"),
            ("-s 0 -d 1 -m 0", "-m: give 1 to"),
            ("-i pi", "-i 'pi' is not a number"),
        ],
    )
    def test_what_is_wrong_is_said_and_fails(self, rbt, line, says):
        done = rbt(line)
        assert done.code == 1
        assert says in done.err
        assert done.out == ""

    def test_a_host_alone_has_nothing_to_copy_to(self, rbt):
        with pytest.raises(InputError, match="backend host has no devices"):
            rbt("-a", on=Where("host"))


class TestOptions:
    def test_sizes(self):
        assert parse([]).sizes == (ONE_SIZE,)
        assert parse(["-b", "1,2"]).sizes == SIZES
        assert parse(["-s0", "-d1", "-m", "4,1"]).sizes == (MB, 4 * MB)

    def test_the_pattern_is_the_number_as_a_double(self):
        assert parse(["-a", "-i", "1.0"]).pattern == 0x3FF0000000000000


@given(
    st.lists(
        st.sampled_from("-a -A -s -d -b -k -K -m -v -l -c -i 0 0,1 1,2,3 -q x 1e999".split())
        | st.text("-abcskm0,1 ", max_size=6),
        max_size=6,
    )
)
def test_any_command_line_is_read_or_refused(arguments):
    try:
        options = parse(arguments)
    except UsageError as error:
        assert str(error)
    else:
        assert options.sizes
        assert len(options.together) % 2 == 0
