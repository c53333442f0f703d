"""`linkgauge as gc-hosttraffictest` is what scripts around Graphcore's tool expect.

The readers here are written from the manual page's own examples and share no code with the printer.
"""

import json

import pytest

from compat_kit import spoken

QUICK = "-d 0 -i 1000"


def tool(words, **more):
    return spoken("gc-hosttraffictest", words, on="ipu-m2000", **more)


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
