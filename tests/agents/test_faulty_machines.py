"""A program of 60 lines asks `linkgauge mcp` about captured machines, and is told their faults."""

import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import linkgauge
from judge.test_doctor_trees import GPU, POLICY, WRONG

pytest.importorskip("mcp")
ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "contrib/mcp/find_faults.py"
MACHINES = ROOT / "tests/data/machines"
BENCHMARKS = (
    "host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "device_to_device_memcpy_write_ce",
    "host_to_host_memcpy_read_cpu",
)  # fmt: skip
CARD = "0000:1b:00.0|sim:0|GPU 0"
CHANGED = {
    "relaxed-ordering": CARD, "aspm": CARD, "aspm above": CARD, "aspm policy": "",
    "bar1": CARD, "ecc-off": CARD, "power-limit": CARD, "gone": "", "near-node": CARD,
}  # fmt: skip
"""What is changed in the files of a healthy machine, and the part that has it ("": the machine). A
port's register is about the link to its card."""
BROKEN = {
    "slow sim:3 rate=50%": ("slow", "sim:3"),
    "slow host:0-sim:0 rate=60%": ("slow|link-speed|link-width", "sim:0"),
    "slow sim:2-nvswitch rate=50%": ("slow", "sim:2-nvswitch"),
    "slow host:1 rate=50%": ("slow", "host:1"),
    "drift sim:4 per_cell=-2%": ("drift", "sim:4"),
    "stall sim:2 every=4 for=0.1": ("stall", "sim:2"),
    "flip sim:1": ("wrong-bytes", "sim:1"),
    "lost sim:5 cells=4": ("lost", "sim:5"),
    "crash sim:6": ("crash", "sim:6"),
    "nomem sim:7": ("out-of-memory", "sim:7"),
}
"""A fault of the machine while a run was made, and the check and the part that tell of it, as
docs/doctor-results.md has them."""
TOUCHED = re.compile(
    rf"({GPU}|{Path(GPU).parent})/(config|numa_node)|{POLICY}|linkgauge/accelerators.json"
    r"|sys/bus/pci/devices/0000:1b:00.0"
)
MOST_CALLS, LEAST_FOUND = 3, 18


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    """The path of each machine, with the check and the part of its fault."""
    folder = tmp_path_factory.mktemp("captured")
    made = {str(MACHINES / "host.tgz"): ("link-.*|vm.*", ".*")}
    for number, (wrong, part) in enumerate(CHANGED.items()):
        path = folder / f"{number}.tgz"
        capture_with(wrong, folder / str(number), path)
        made[str(path)] = (wrong.partition(" ")[0], part or ".*")
    for fault, expected in BROKEN.items():
        run = linkgauge.run(
            *BENCHMARKS, machine="dgx-h200-8", size="256M", samples=60, faults=[fault],
            out=folder / "runs",
        )  # fmt: skip
        made[str(run.folder)] = expected
    return made


def capture_with(wrong, tree, path):
    """Writes the healthy capture with this change. Only files that changes touch are unpacked."""
    with tarfile.open(MACHINES / "dgx-h200-8.tgz") as healthy:
        members = healthy.getmembers()
        touched = [one for one in members if TOUCHED.fullmatch(one.name)]
        healthy.extractall(tree, touched, filter="tar")
        WRONG[wrong](tree)
        with tarfile.open(path, "w:gz", compresslevel=1) as made:
            for one in members:
                if one not in touched:
                    made.addfile(one, healthy.extractfile(one) if one.isfile() else None)
            for one in sorted(tree.rglob("*")):
                if one.is_symlink() or one.is_file():
                    made.add(one, one.relative_to(tree), recursive=False)


def asked(*paths):
    linkgauge_here = Path(sys.executable).with_name("linkgauge")
    done = subprocess.run(
        [sys.executable, PROGRAM, *paths], capture_output=True, text=True, check=True, timeout=300,
        env={**os.environ, "LINKGAUGE": str(linkgauge_here)},
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]


def names(answer, check, part):
    return any(
        re.fullmatch(check, one.get("check", "")) and re.search(rf"({part})(?!\d)", one["subject"])
        for one in answer["faults"]
        if "check" in one
    )


def test_the_program_is_of_60_lines():
    assert len(PROGRAM.read_text().splitlines()) <= 60


def test_the_fault_is_in_the_answer_of_three_calls(captured):
    assert len(captured) == 20
    answers = asked(*captured)
    assert max(one["calls"] for one in answers) <= MOST_CALLS
    missed = {
        str(expected): one
        for one, expected in zip(answers, captured.values(), strict=True)
        if not names(one, *expected)
    }
    assert len(captured) - len(missed) >= LEAST_FOUND, missed


def test_a_healthy_machine_has_none_of_these_faults(captured):
    (healthy,) = asked(MACHINES / "dgx-h200-8.tgz")
    assert [wrong for wrong, _ in captured.values() if names(healthy, wrong, ".*")] == []


def test_a_file_of_another_kind_is_refused_in_words(tmp_path):
    (answer,) = asked(tmp_path / "nothing")
    assert (answer["calls"], "faults" in answer) == (3, False)
    assert "cannot read" in answer["error"]
