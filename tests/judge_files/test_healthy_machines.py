"""All products and shipped machines are healthy, whatever is asked of them: `make test-long` asks
everything (healthy_kit.py), every other test run a part of it."""

import random

import pytest

from campaigns import FULL
from healthy_kit import MACHINES, Asked, alarm, alarms, drawn, everything

SOME = 20
"""Questions of every other test run."""
TOLD = ("judge", "all_gather_perf", "-b", "256M", "-e", "1G", "-f", "4", "-g", "2")


@pytest.mark.parametrize("machine", MACHINES if FULL else ["some"])
def test_no_answer_is_an_alarm(machine, tmp_path):
    asked = everything([machine]) if FULL else drawn(SOME, random.Random(82))
    assert [*alarms(asked, tmp_path)] == []


@pytest.mark.parametrize(
    "asked",
    [
        # A text of two of four in a mesh does not tell how many links join them.
        Asked("4 x H200 NVL", 1, TOLD),
        Asked("4 x V100-SXM2", 1, TOLD),
        # Of a single size, nothing tells how long 71 steps take to start.
        Asked("gb200-nvl72", 1, ("scale", "all_gather", "--gpus", "2,72", "--size", "256M")),
    ],
    ids=str,
)
def test_what_nothing_tells_is_no_alarm(asked, tmp_path):
    assert alarm(asked, tmp_path) is None
