"""Whatever a file holds that a command reads, or a server answers: no traceback, no hang, and no
more memory than a run takes. `make test-long` tries 300 mutations of each."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fuzz_kit
from fuzz_inputs import KINDS
from fuzz_kit import Try, table, tried

FULL = os.environ.get("LINKGAUGE_CAMPAIGN") == "full"
TESTS = Path(__file__).parents[1]
SLOW = ["serving"]
"""Each try takes seconds, most of which a sample has to last."""
QUICK = [kind for kind in KINDS if kind not in SLOW]


@pytest.mark.parametrize("kinds", [[kind] for kind in KINDS] if FULL else [SLOW, QUICK], ids=len)
def test_no_mutation_is_a_traceback_a_hang_or_takes_much_memory(kinds):
    count = 300 if FULL else 1 if kinds is SLOW else 2
    program = sys.executable, fuzz_kit.__file__, "0", str(count), *kinds
    done = subprocess.run(program, capture_output=True, text=True, check=False, cwd=TESTS)
    assert done.returncode == 0, done.stderr
    tries = [Try(**json.loads(line)) for line in done.stdout.splitlines()]
    print(table(tries))
    assert len(tries) == count * len(kinds)
    assert [f"seed {one.seed}: {one.fault}" for one in tries if one.fault] == []


def raising():
    raise KeyError("a place")


@pytest.mark.parametrize(
    ("carry_out", "fault"),
    [
        (lambda: (2, "linkgauge: one line"), None),
        (raising, "KeyError: 'a place'"),
        (lambda: time.sleep(60), "hung"),
        (lambda: (0, "Traceback of a worker"), "of a worker"),
        (lambda: (0, "error: the\n  worker broke: KeyError"), "worker broke"),
        (lambda: (3, ""), "without a word"),
    ],
)
def test_what_is_wrong_with_a_try_is_seen(carry_out, fault, monkeypatch):
    monkeypatch.setattr(fuzz_kit, "LONGEST", 4.0)
    monkeypatch.setattr(fuzz_kit, "MOST_MEMORY", 1 << 40)  # a fork has all that this process has
    found = tried("any", 0, carry_out).fault
    assert found == fault if fault is None else fault in found


WASTEFUL = """
from fuzz_kit import MOST_MEMORY, tried

print(tried("any", 0, lambda: (0, "x" * MOST_MEMORY)).fault)
"""


def test_a_try_that_takes_much_memory_is_seen():
    program = sys.executable, "-c", WASTEFUL
    done = subprocess.run(program, capture_output=True, text=True, cwd=TESTS, check=True)
    assert "it took 3" in done.stdout
    assert "MiB" in done.stdout
