"""`linkgauge as gc-hosttraffictest` is what scripts around Graphcore's tool expect.

The readers here are written from the manual page's own examples and share no code with the printer.
"""

import json
import re

import pytest

from compat_kit import spoken

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
QUICK = "-d 0 -i 1000"
LINE = re.compile(
    r"(?P<test>.+):  "
    r"(?:(?P<host>\d+\.\d\d) Gbps RDMA host (?P<host_does>read|write))?(?:, )?"
    r"(?:(?P<tile>\d+\.\d\d) Gbps tile (?P<tile_does>read|write))?"
    r", for (?P<seconds>\d+\.\d\d) seconds\."
)


def tool(words, **more):
    return spoken("gc-hosttraffictest", words, on="ipu-m2000", **more)


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


def shape(out):
    """The text with every figure replaced."""
    return re.sub(r"\d+\.\d\d", "#", out)


@pytest.mark.parametrize(
    ("words", "page"), [("", PAGE_TEXT), ("--tile", PAGE_TILE), ("--host", PAGE_HOST)]
)
def test_text_and_figures_are_the_pages(words, page):
    """Both sides at once get less in all than the host alone, as there."""
    done = tool(f"--device 0 {words}")
    assert (done.returncode, done.stderr.strip()) == (0, "SIMULATED ipu-m2000")
    assert shape(done.stdout) == shape(page)
    (measured,), (printed,) = read_lines(done.stdout), read_lines(page)
    for test, figures in printed.items():
        ours, theirs = (
            {side: float(one[side]) for side in ("host", "tile") if one[side]}
            for one in (measured[test], figures)
        )
        assert ours.keys() == theirs.keys()
        if words:
            assert ours == pytest.approx(theirs, rel=0.005)
            seconds = float(measured[test]["seconds"]), float(figures["seconds"])
            assert seconds[0] == pytest.approx(seconds[1], rel=0.01)
        else:
            assert sum(ours.values()) < 90
            assert sum(ours.values()) == pytest.approx(sum(theirs.values()), rel=0.21)


@pytest.mark.parametrize(("tiles", "iterations"), [(1, 1), (7, 1000), (32, 128), (32, 4097)])
def test_so_many_transfers_a_tile_are_made_or_a_few_more(tiles, iterations):
    document = json.loads(tool(f"-d 1 -n {tiles} -i {iterations} -p 2 -j").stdout)
    assert document["configuration"]["tiles_per_ipu"] == str(tiles)
    assert document["configuration"]["transfer_size_64byte_blocks"] == "2"
    (moved,) = {test["tile_data_transferred_bytes"] for test in document["repeat_0"].values()}
    assert iterations <= int(moved) / 4096 / tiles <= iterations * 1.01


def test_a_test_that_breaks_says_so_in_its_field_and_others_go_on():
    done = tool(f"{QUICK} -j", faults=["crash sim:0 cells=1"])
    assert done.returncode != 0
    tests = json.loads(done.stdout)["repeat_0"]
    (name,) = (name for name, test in tests.items() if "error" in test)
    assert name == "host_to_buffer_to_tile"
    assert "duration_seconds" not in tests[name]
