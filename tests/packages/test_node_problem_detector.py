"""contrib/kubernetes/node-problem-detector: Node Problem Detector takes the configuration, and says
of a node what the doctor does."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "contrib/kubernetes/node-problem-detector"
LINKGAUGE = Path(sys.executable).with_name("linkgauge")
CHECKOUT = os.environ.get("LINKGAUGE_NPD")


def environment(folder, *options):
    """The variables of a plug-in whose linkgauge looks at a simulated machine."""
    program = folder / "linkgauge"
    program.write_text(f'#!/bin/sh\nexec "{LINKGAUGE}" "$@" {" ".join(options)}\n')
    program.chmod(0o755)
    return {**os.environ, "LINKGAUGE": str(program)}


@pytest.mark.parametrize(
    ("machine", "code", "said"),
    [
        ("dgx-h200-8", 0, "linkgauge doctor finds no fault\n"),
        ("vm-degraded", 1, "target-speed  sim:0 (0000:01:00.0): "),
        ("nowhere", 2, "linkgauge: "),
    ],
)
def test_the_plug_in_ends_as_node_problem_detector_reads(tmp_path, machine, code, said):
    done = subprocess.run(
        [FOLDER / "links.sh"], env=environment(tmp_path, "--machine", machine), check=False,
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout[: len(said)]) == (code, said)


def test_the_files_that_the_pod_mounts_are_there():
    config = json.loads((FOLDER / "linkgauge-monitor.json").read_text())
    (rule,) = config["rules"]
    assert (FOLDER / Path(rule["path"]).name).exists()
    assert [one["type"] for one in config["conditions"]] == [rule["condition"]]
    assert "linkgauge-monitor.json, links.sh" in (FOLDER / "kustomization.yaml").read_text()


@pytest.fixture(scope="session")
def checker(tmp_path_factory):
    """A program of Node Problem Detector's own packages."""
    if CHECKOUT is None or shutil.which("go") is None:
        pytest.skip("needs go, and in LINKGAUGE_NPD a checkout of Node Problem Detector")
    own = Path(CHECKOUT) / "cmd/linkgauge_check"
    own.mkdir(exist_ok=True)
    shutil.copy(Path(__file__).with_name("npd_check.go"), own / "main.go")
    made = tmp_path_factory.mktemp("npd") / "check"
    build = ["go", "build", "-mod=vendor", "-o", made, "./cmd/linkgauge_check"]
    subprocess.run(build, cwd=CHECKOUT, check=True, timeout=1800)
    return made


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        ("dgx-h200-8", "0 LinkFault: linkgauge doctor finds no fault"),
        ("vm-degraded", "1 LinkFault: target-speed  sim:0"),
        ("nowhere", "2 LinkFault: linkgauge: "),
    ],
)
def test_node_problem_detector_takes_the_configuration(tmp_path, checker, machine, said):
    text = (FOLDER / "linkgauge-monitor.json").read_text()
    config = tmp_path / "linkgauge-monitor.json"
    config.write_text(text.replace("/config/links.sh", str(FOLDER / "links.sh")))
    done = subprocess.run(
        [checker, config], env=environment(tmp_path, "--machine", machine), check=True,
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.startswith(said), done.stderr


def test_node_problem_detector_refuses_a_plug_in_that_is_not_there(checker):
    done = subprocess.run(
        [checker, FOLDER / "linkgauge-monitor.json"], capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert 'rule path "/config/links.sh" does not exist' in done.stderr
