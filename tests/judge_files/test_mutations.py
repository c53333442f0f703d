"""Whatever a text says, reading it ends in a run or in one line that says why not."""

import os
import random
import time
from pathlib import Path

import pytest

from command_kit import called
from fuzz_kit import mutated
from linkgauge.judge.verdict import judge
from linkgauge.model.errors import InputError
from linkgauge.rooms.judge_files.judging import run_of_texts
from linkgauge.rooms.judge_files.readers import read_text

DATA = Path(__file__).parents[1] / "data"
TEXTS = [
    *sorted((DATA / "judge").rglob("*.txt")), DATA / "nccl-tests-2xH200.txt",
    DATA / "nvbandwidth-2xH200.json",
    DATA / "sailbandwidth-examples.txt", *sorted((DATA / "perftest").glob("ib_write*.json")),
]  # fmt: skip
TRIES = max(20_000 // len(TEXTS) + 1, 100) if os.environ.get("LINKGAUGE_CAMPAIGN") == "full" else 12
"""Mutants of each text. The long campaign has 20,000 of all together."""
SEED = os.environ.get("LINKGAUGE_SEED", "judge")


@pytest.mark.parametrize("text", TEXTS, ids=[f"{one.parent.name}/{one.name}" for one in TEXTS])
def test_mutated(text):
    draw, content = random.Random(f"{SEED} {text.name}"), text.read_bytes()
    for number in range(TRIES):
        changed = mutated(content, draw).decode("utf-8", "replace")
        read = read_text(text.name, changed)
        assert all(one.understood <= one.lines for one in read)
        try:
            run = run_of_texts(read, None, "default")
            if number % 10 == 0:
                judge(run)
        except InputError as error:
            assert "\n" not in str(error)


def test_time_grows_no_faster_than_the_lines(tmp_path):
    """A log of a table of sizes again and again among lines of NCCL_DEBUG, as from a soak. 100,000
    lines take 2.4 to 3.3 s of CPU; which of these depends on the CPU."""
    table = (DATA / "nccl-tests-2xH200.txt").read_text().splitlines()
    debug = [f"node1:{n}:{n} [0] NCCL INFO Channel {n:02}/32 : 0[0] -> 1[1]" for n in range(1200)]
    lines = (table + debug) * (100_000 // (len(table) + len(debug)) + 1)

    def seconds(count):
        log = tmp_path / f"{count}.txt"
        log.write_text("\n".join(lines[:count]))
        begin = time.process_time()
        done = called("judge", log)
        assert done.returncode == 0, done.stderr
        return time.process_time() - begin

    called("judge", DATA / "nccl-tests-2xH200.txt")  # loads what is needed
    few = min(seconds(10_000) for _ in range(3))
    assert seconds(100_000) < 15 * few
