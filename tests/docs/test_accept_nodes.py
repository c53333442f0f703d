"""The script of the page "Accept 200 nodes" runs as it stands there, on four simulated nodes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs_kit import ROOT

PAGE = (ROOT / "docs/accept-nodes.md").read_text()
ON = """#!/bin/bash
export NODE=$1; shift; exec bash -c "$*"
"""
LINKGAUGE = f"""#!/bin/bash
case $1 in
run|check) set -- "$@" --machine "4 x H200"
    [ "$NODE" != n4 ] || set -- "$@" --fault "slow sim:2 rate=80%";;
esac
exec {sys.executable} -m linkgauge "$@"
"""
"""Each node is simulated; the last one is faulty."""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "bin").mkdir()
    script = PAGE.partition("```bash\n")[2].partition("```")[0]
    for name, text in {"accept.sh": script, "on": ON, "bin/linkgauge": LINKGAUGE}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def ran(place, step, **more):
    known = {
        "PATH": f"{place / 'bin'}:{os.environ['PATH']}", "NODES": "n1 n2 n3 n4", "ON": "./on",
        "DEVICES": "4", "SOAK": "30s", "LINKGAUGE_HISTORY": "none", "COLUMNS": "140",
        "WHAT": "--profile quick --samples 3 device_to_device_memcpy_write_ce device_local_copy",
    }  # fmt: skip
    done = subprocess.run(
        ["./accept.sh", step], cwd=place, env={**os.environ, **known, **more}, text=True,
        capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def waive(place):
    waivers = (
        "{check: slow, part: 'sim:2*', accept: '>= 70 %'", "{check: clocks, accept: warn",
        "{cell: '*', part: 'sim:2', accept: '>= 300 GB/s'",
    )  # fmt: skip
    who = "owner: ops, reason: ticket 1, until: 2099-01-01}"
    text = "".join(f"  - {one}, {who}\n" for one in waivers)
    (place / "waivers.yml").write_text(f"waivers:\n{text}")


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_the_script_runs_as_it_stands(place):
    first = ran(place, "first")
    for step in ("soak", "check", "accept"):
        assert [one for one in first.splitlines() if one.startswith(f"{step}: ")] == [
            one for one in first.splitlines() if one.startswith(f"{step}: n4 exits with 1: ")
        ]
    assert "4 nodes, 3 alike, 1 odd" in first
    assert "baseline of 3 runs" in first
    assert (place / "accept.html").exists()
    night = ran(place, "night")
    assert "night: n4 exits with 1: verdict:   low " in night
    assert "gate: n4 exits with 1: verdict:   fail: " in night
    assert "gate: n1" not in night
    card = Path(place / "tickets/n4.txt").read_text()
    assert "finding: low " in card
    assert len([*Path(place / "tickets").glob("n4-*.html")]) == 1
    metrics = (place / "linkgauge.prom").read_text()
    assert 'label="n4",simulated="true",verdict="low"} 1.0' in metrics
    waive(place)
    night = ran(place, "night", NODES="n4")
    assert night.strip() == "", "what is known is accepted"
    metrics = (place / "linkgauge.prom").read_text()
    assert 'label="n4",simulated="true",verdict="ok"} 1.0' in metrics
