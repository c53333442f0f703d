"""`linkgauge as gc-hosttraffictest` is what scripts around Graphcore's tool expect.

The readers here are written from the manual page's own examples and share no code with the printer.
"""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat_kit import speak, where
from linkgauge.compat.base import UsageError
from linkgauge.compat.gc_hosttraffictest import HostTrafficOptions, parse, split
from linkgauge.model.errors import InputError

PAGE_TEXT = """\
Running test sequence 1/1
host <- buffer <- tile:  23.46 Gbps RDMA host read, 30.00 Gbps tile write, for 3.50 seconds.
host -> buffer -> tile:  55.78 Gbps RDMA host write, 26.40 Gbps tile read, for 3.97 seconds.
host -> buffer <- tile:  21.75 Gbps RDMA host write, 24.63 Gbps tile write, for 4.26 seconds.
host <- buffer -> tile:  40.38 Gbps RDMA host read, 26.97 Gbps tile read, for 3.89 seconds.
"""
PAGE_TILE = """\
Running test sequence 1/1
buffer <- tile:  37.38 Gbps tile write, for 2.80 seconds.
buffer -> tile:  51.92 Gbps tile read, for 2.02 seconds.
"""
PAGE_HOST = """\
Running test sequence 1/1
host -> buffer:  90.72 Gbps RDMA host write, for 5.01 seconds.
host <- buffer:  74.85 Gbps RDMA host read, for 5.00 seconds.
"""
CONFIGURATION = {
    "number_of_ipus": "1",
    "tile_transfers_enabled": "true",
    "tiles_per_ipu": "32",
    "transfer_size_64byte_blocks": "4",
    "iterations": "100000",
    "host_transfers_enabled": "true",
}
DESCRIPTIONS = {
    "host_from_buffer_from_tile": "host <- buffer <- tile",
    "host_to_buffer_to_tile": "host -> buffer -> tile",
    "host_to_buffer_from_tile": "host -> buffer <- tile",
    "host_from_buffer_to_tile": "host <- buffer -> tile",
}
FIELDS = [
    "description", "duration_seconds", "host_data_transferred_bytes",
    "tile_data_transferred_bytes", "host_transfer_speed_gbps", "tile_transfer_speed_gbps",
]  # fmt: skip
QUICK = ("-i", "1000")
LINE = re.compile(
    r"(?P<test>.+):  "
    r"(?:(?P<host>\d+\.\d\d) Gbps RDMA host (?P<host_does>read|write))?(?:, )?"
    r"(?:(?P<tile>\d+\.\d\d) Gbps tile (?P<tile_does>read|write))?"
    r", for (?P<seconds>\d+\.\d\d) seconds\."
)


def read_lines(out):
    """What a script that greps the text gets: the figures of each test, sequence by sequence."""
    sequences = []
    for line in out.splitlines():
        if line.startswith("Running test sequence "):
            sequences.append({})
            continue
        found = LINE.fullmatch(line)
        assert found, line
        sequences[-1][found["test"]] = found.groupdict()
    return sequences


@pytest.fixture
def tool(capfd):
    def run(*arguments, on="ipu-m2000"):
        return speak(capfd, "gc-hosttraffictest", *map(str, arguments), on=where(on))

    return run


def shape(out):
    """The text with every figure replaced."""
    return re.sub(r"\d+\.\d\d", "#", out)


class TestThePage:
    @pytest.mark.parametrize(
        ("arguments", "page"), [((), PAGE_TEXT), (("--tile",), PAGE_TILE), (("--host",), PAGE_HOST)]
    )
    def test_its_text_is_printed_as_there(self, tool, arguments, page):
        spoken = tool("--device", 0, *arguments)
        assert spoken.code == 0
        assert shape(spoken.out) == shape(page)
        assert spoken.err == "SIMULATED ipu-m2000\n"

    @pytest.mark.parametrize(("option", "page"), [("--tile", PAGE_TILE), ("--host", PAGE_HOST)])
    def test_figures_of_a_side_alone_are_the_pages(self, tool, option, page):
        (measured,), (printed,) = read_lines(tool("-d", 0, option).out), read_lines(page)
        for test, figures in printed.items():
            for side in ("host", "tile"):
                if figures[side] is not None:
                    assert float(measured[test][side]) == pytest.approx(
                        float(figures[side]), rel=0.005
                    )
            assert float(measured[test]["seconds"]) == pytest.approx(
                float(figures["seconds"]), rel=0.01
            )

    def test_both_at_once_get_less_in_all_than_the_host_alone_as_there(self, tool):
        (measured,), (printed,) = read_lines(tool("-d", 0).out), read_lines(PAGE_TEXT)
        for test, figures in printed.items():
            ours, theirs = (
                float(one["host"]) + float(one["tile"]) for one in (measured[test], figures)
            )
            assert ours < 90
            assert ours == pytest.approx(theirs, rel=0.21)

    def test_its_json_has_these_keys_in_this_order_and_only_strings(self, tool):
        spoken = tool("-d", 0, "-j")
        assert spoken.code == 0
        document = json.loads(spoken.out)
        assert list(document) == ["configuration", "repeat_0"]
        assert list(document["configuration"].items()) == list(CONFIGURATION.items())
        assert [(k, v["description"]) for k, v in document["repeat_0"].items()] == list(
            DESCRIPTIONS.items()
        )
        for test in document["repeat_0"].values():
            assert list(test) == FIELDS
            assert all(isinstance(value, str) for value in test.values())
            assert test["tile_data_transferred_bytes"] == "13107200000"
            assert re.fullmatch(r"\d+", test["host_data_transferred_bytes"])
        assert spoken.out == json.dumps(document, indent=4) + "\n"

    def test_its_figures_agree_with_each_other_as_the_pages_do(self, tool):
        for test in json.loads(tool("-d", 0, "-j").out)["repeat_0"].values():
            seconds = float(test["duration_seconds"])
            for side in ("host", "tile"):
                moved = int(test[f"{side}_data_transferred_bytes"])
                speed = test[f"{side}_transfer_speed_gbps"]
                assert moved * 8e-9 / seconds == pytest.approx(float(speed), rel=1e-6)
                assert format(float(speed), ".17g") == speed


class TestOptions:
    @pytest.mark.parametrize(
        ("arguments", "tests"),
        [
            (["--tile-read"], ["buffer -> tile"]),
            (["--tile-write"], ["buffer <- tile"]),
            (["--host-read"], ["host <- buffer"]),
            (["--host-write"], ["host -> buffer"]),
            (["--tile", "--host"], list(DESCRIPTIONS.values())),
            (["--tile-read", "--host-write"], ["host -> buffer -> tile"]),
            (["--tile", "--host-read"], ["host <- buffer <- tile", "host <- buffer -> tile"]),
        ],
    )
    def test_which_transfers_are_measured(self, tool, arguments, tests):
        spoken = tool("-d", 0, *QUICK, "--test-duration", 0.1, *arguments)
        (sequence,) = read_lines(spoken.out)
        assert (spoken.code, list(sequence)) == (0, tests)
        document = json.loads(tool("-d", 0, *QUICK, "--test-duration", 0.1, "-j", *arguments).out)
        assert [test["description"] for test in document["repeat_0"].values()] == tests
        for side in ("tile", "host"):
            enabled = document["configuration"][f"{side}_transfers_enabled"]
            assert enabled == str(any(side in test for test in tests)).lower()

    def test_repeats_are_numbered(self, tool):
        out = tool("-d", 0, *QUICK, "-R", 3, "--tile-read").out
        heads = [line for line in out.splitlines() if line.startswith("Running")]
        assert heads == [f"Running test sequence {n}/3" for n in (1, 2, 3)]
        document = json.loads(tool("-d", 0, *QUICK, "-R", 2, "-j").out)
        assert list(document) == ["configuration", "repeat_0", "repeat_1"]
        assert document["repeat_0"] != document["repeat_1"], "each is measured anew"

    @pytest.mark.parametrize(("tiles", "iterations"), [(1, 1), (7, 1000), (32, 128), (32, 4096)])
    def test_so_many_transfers_a_tile_are_made(self, tool, tiles, iterations):
        spoken = tool("-d", 1, "-n", tiles, "-i", iterations, "-p", 2, "-j")
        document = json.loads(spoken.out)
        assert document["configuration"]["tiles_per_ipu"] == str(tiles)
        assert document["configuration"]["transfer_size_64byte_blocks"] == "2"
        moved = {test["tile_data_transferred_bytes"] for test in document["repeat_0"].values()}
        assert moved == {str(tiles * iterations * 4096)}

    def test_a_host_test_lasts_as_long_as_asked(self, tool):
        (sequence,) = read_lines(tool("-d", 0, "--host", "--test-duration", 2).out)
        for test in sequence.values():
            assert 2 <= float(test["seconds"]) < 2.1

    @pytest.mark.parametrize(
        "harmless", ["-r", "--no-timeout", "--suppress-failure-reset", "--dump-tile-overview"]
    )
    def test_what_changes_nothing_is_accepted(self, tool, harmless):
        spoken = tool("-d", 0, *QUICK, harmless)
        assert spoken.code == 0
        assert len(read_lines(spoken.out)[0]) == 4

    def test_verbose_shows_a_bar_and_more(self, tool):
        spoken = tool("-d", 0, *QUICK, "-v")
        assert "Graphcore GC200; 32 tiles, 4 tests" in spoken.out
        assert "  Tile data transferred: 131072000 bytes\n" in spoken.out
        bars = re.findall(r"^\[=+ *\] +(\d+)%$", spoken.err, re.MULTILINE)
        assert bars == ["25", "50", "75", "100"]
        spoken = tool("-d", 0, *QUICK, "-v", "-j")
        assert list(json.loads(spoken.out)) == ["configuration", "repeat_0"]

    @pytest.mark.parametrize("asked", ["-h", "--help"])
    def test_help_names_every_option(self, tool, asked):
        spoken = tool("--nonsense", asked)
        assert spoken.code == 0
        for option in (
            "--json-output", "--device-id", "--num-tiles", "--remote-buffers", "--payload-blocks",
            "--iterations", "--test-duration", "--tile-read", "--tile-write", "--tile",
            "--host-read", "--host-write", "--host", "--min-tile-bandwidth",
            "--min-host-bandwidth", "--no-timeout", "--suppress-failure-reset", "--verbose",
            "--use-secondary", "--dump-tile-overview", "--help", "--version", "--repeat",
        ):  # fmt: skip
            assert f"{option} " in spoken.out or f"{option}\n" in spoken.out, option

    def test_version(self, tool):
        assert tool("--version").out.startswith("gc-hosttraffictest")


class TestFailures:
    @pytest.mark.parametrize(
        ("limit", "failing"),
        [
            (("--min-tile-bandwidth", "24"), 0),
            (("--min-tile-bandwidth", "28"), 2),
            (("--min-host-bandwidth", "32"), 3),
            (("--min-host-bandwidth", "35", "--min-tile-bandwidth", "35"), 4),
        ],
    )
    def test_a_bandwidth_that_is_not_reached_fails(self, tool, limit, failing):
        spoken = tool("-d", 0, *QUICK, *limit)
        assert spoken.code == (1 if failing else 0)
        assert len(read_lines(spoken.out)[0]) == 4
        assert spoken.err.count("ERROR: ") == failing
        spoken = tool("-d", 0, *QUICK, "-j", *limit)
        assert spoken.code == (1 if failing else 0)
        tests = json.loads(spoken.out)["repeat_0"].values()
        assert sum("error" in test for test in tests) == failing
        assert all("expected" in test["error"] for test in tests if "error" in test)

    def test_a_test_that_breaks_says_so_in_its_field_and_others_go_on(self, capfd):
        broken = where("ipu-m2000", "crash sim:0 cells=1")
        spoken = speak(capfd, "gc-hosttraffictest", "-d", "0", *QUICK, "-j", on=broken)
        assert spoken.code != 0
        tests = json.loads(spoken.out)["repeat_0"]
        errors = [name for name, test in tests.items() if "error" in test]
        assert errors == ["host_to_buffer_to_tile"]
        assert "duration_seconds" not in tests[errors[0]]

    def test_a_device_that_is_not_there(self, tool):
        with pytest.raises(InputError, match="unknown device '9'"):
            tool("-d", 9)

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ([], "the option '--device-id' is required but missing"),
            (["-d"], "the required argument for option '--device-id' is missing"),
            (["-d", "x"], "the argument ('x') for option '--device-id' is invalid"),
            (["-d", "0", "--frob"], "unrecognised option '--frob'"),
            (["-d", "0", "frob"], "too many positional options"),
            (["-d", "0", "-d", "1"], "option '--device-id' cannot be specified more than once"),
            (["-d", "0", "--ti"], "option '--ti' is ambiguous"),
            (["-d", "0", "--ver"], "option '--ver' is ambiguous"),
            (["-d", "0", ""], "too many positional options"),
            (["-d", "0", "-i", "1_000"], "('1_000') for option '--iterations' is invalid"),
            (["-d", "0", "--test-duration", "1_0"], "('1_0') for option '--test-duration' is"),
            (["-d", "0", "-n", "33"], "('33') for option '--num-tiles' is invalid"),
            (["-d", "0", "-n", "0"], "('0') for option '--num-tiles' is invalid"),
            (["-d", "0", "-p", "3"], "('3') for option '--payload-blocks' is invalid"),
            (["-d", "0", "-i", "0"], "('0') for option '--iterations' is invalid"),
            (["-d", "0", "-R", "0"], "('0') for option '--repeat' is invalid"),
            (["-d", "0", "--test-duration", "nan"], "'--test-duration' is invalid"),
            (["-d", "0", "--host", "--min-tile-bandwidth", "1"], "no tile transfers"),
            (["-d", "0", "--tile", "--min-host-bandwidth", "1"], "no host transfers"),
            (["-d", "0", "--use-secondary"], "only a C600 has a secondary PCIe interface"),
        ],
    )
    def test_a_wrong_command_line(self, tool, arguments, said):
        spoken = tool(*arguments)
        assert (spoken.code, spoken.out) == (1, "")
        assert said in spoken.err
        assert spoken.err.startswith("gc-hosttraffictest: ")


@given(st.lists(st.text(max_size=8) | st.sampled_from(["-d", "0", "-n", "-j", "--tile", "-h"])))
def test_any_command_line_is_read_or_refused(arguments):
    try:
        assert isinstance(parse(arguments), HostTrafficOptions | str)
    except UsageError as error:
        assert str(error)


@given(st.integers(1, 10**9), st.integers(1, 4096))
def test_transfers_are_split_exactly_or_into_a_few_more(count, most):
    each, times = split(count, most)
    assert 1 <= each <= most
    assert count <= each * times < count + times
    assert each > min(count, most) // 4
