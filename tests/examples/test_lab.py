"""examples/ci: labels and jobs of hardware.yml, the pipelines' form, and what a node's job does."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from command_kit import called
from compiled_kit import module_of

CI = Path(__file__).parents[2] / "examples/ci"
PAGE = (CI.parents[1] / "docs/hardware-lab.md").read_text()
WORKFLOW = (CI / "hardware-lab.yml").read_text()
PINNED = re.compile(r"uses: [\w/-]+@[0-9a-f]{40}  # v[\d.]+")
QUIET = {"LINKGAUGE_HISTORY": "none", "LINKGAUGE_NO_REPORT": "1"}

lab = module_of(CI / "lab.py")
GPU07 = lab.read(CI / "lab/gpu07.yml")


def asked(capsys, monkeypatch, *arguments):
    """`lab.py ARGUMENTS`: its exit code, stdout and stderr."""
    monkeypatch.setattr(sys, "argv", ["lab.py", *map(str, arguments)])
    try:
        code = lab.main()
    except SystemExit as end:
        code = end.code
    said = capsys.readouterr()
    return code, said.out, said.err


def test_labels_say_what_a_node_has():
    assert lab.labels(GPU07) == [
        "linkgauge", "host-gpu07", "arch-x86_64", "gpus-8", "driver-580", "gpu-nvidia-h200",
        "rack-3", "nightly",
    ]  # fmt: skip
    assert f"    {' '.join(lab.labels(GPU07))}\n" in PAGE
    assert lab.labels({}) == ["linkgauge"]
    assert lab.labels({"gpu": "NVIDIA A10X, Card B"})[1:] == ["gpu-nvidia-a10x", "gpu-card-b"]


@pytest.mark.parametrize("text", ["a b", "x && !y", "$(id)", "'; rm -rf /", "${{ x }}", "ä\n- b"])
def test_no_value_is_more_than_a_word_to_a_pipeline(text):
    found = lab.labels({"host": text, "gpu": text, "labels": text})
    assert all(re.fullmatch(r"[a-z0-9_.-]+", one) for one in found)


def test_each_node_has_a_job_on_itself(capsys, monkeypatch):
    files = sorted((CI / "lab").glob("*.yml"))
    code, out, _ = asked(capsys, monkeypatch, "matrix", *files)
    assert code == 0
    assert json.loads(out)["include"] == [
        {"node": name, "labels": ["self-hosted", "linkgauge", f"host-{name}"]}
        for name in ("gpu07", "sifive-rv64-01")
    ]
    code, out, _ = asked(capsys, monkeypatch, "nodes", *files, "--where", "gpu=*h200*")
    assert (code, out) == (0, "gpu07\tlinkgauge && host-gpu07\n")
    assert f"    {out}" in PAGE


def test_what_it_cannot_do_is_one_line(tmp_path, capsys, monkeypatch):
    file = CI / "lab/gpu07.yml"
    (tmp_path / "list.yml").write_text("- a\n")
    (tmp_path / "Odd name.yml").write_text("host: x\n")
    for arguments, expected in (
        (["matrix", tmp_path / "none.yml"], "cannot read"),
        (["labels", tmp_path / "list.yml"], "give lines of key: value"),
        (["nodes", tmp_path / "Odd name.yml"], "name the file in small letters"),
        (["nodes", file, "--where", "gpu"], "give KEY=PATTERN"),
        (["nodes", file, "--where", "gpu=other"], "no node with gpu=other"),
        (["check", file], "check takes two files"),
    ):
        code, out, err = asked(capsys, monkeypatch, *arguments)
        assert (code, out) == (2, "")
        assert expected in err
        assert err.count("\n") == 1


def test_the_inputs_are_the_pinned_ones():
    pinned = dict(line.split()[::-1] for line in (CI / "inputs.sha256").read_text().splitlines())
    inputs = {
        "latency.yml",
        "throughput.yml",
        *(f"lab/{path.name}" for path in (CI / "lab").iterdir()),
    }
    assert pinned == {name: hashlib.sha256((CI / name).read_bytes()).hexdigest() for name in inputs}


def test_the_workflow_has_the_form_that_github_takes():
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows",
         CI / "hardware-lab.yml"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_workflow_pins_actions_and_trusts_no_input():
    assert len(re.findall("uses: ", WORKFLOW)) == len(PINNED.findall(WORKFLOW)) == 3
    document = yaml.safe_load(WORKFLOW)
    assert document["permissions"] == {"contents": "read"}
    for job in document["jobs"].values():
        assert job["timeout-minutes"] <= 30
        for step in job["steps"]:
            # An expression in a script would be replaced before the shell reads it.
            assert "${{" not in step.get("run", "")
    needed = set(re.findall(r"matrix\.(\w+)", WORKFLOW)) - {"outputs"}
    assert needed == {"node", "labels"}


@pytest.fixture
def bench(tmp_path):
    """A repository of a lab, with a described node that is as small as can be."""
    shutil.copytree(CI, tmp_path / "ci")
    node = tmp_path / "machine.yml"
    node.write_text("""
source: a test
host: {cpu_model: Test CPU, nodes: [{cpus: 4, memory: 8G}]}
link_kinds: {x16: {kind: pcie, speed: 32, width: 16}}
devices: [{count: 1, model: Card, memory: 1G}]
links: [{kind: x16, each: sim:0, to: host:0}]
""")
    command = tmp_path / "linkgauge"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m linkgauge "$@"\n')
    command.chmod(0o755)
    return tmp_path


def measured(bench, *options):
    return subprocess.run(
        [bench / "ci/measure.sh", "gpu07", "--machine", bench / "machine.yml", *options],
        capture_output=True, text=True, check=False, timeout=120, cwd=bench,
        env={**os.environ, **QUIET, "LINKGAUGE": f"{bench}/linkgauge", "PYTHON": sys.executable},
    )  # fmt: skip


def test_a_nodes_job_keeps_a_run_and_fails_on_a_slow_link(bench):
    good = measured(bench)
    assert good.returncode == 0, good.stderr
    assert "limits alone decide" in good.stderr
    run = bench / "run.json"
    shutil.copy(run, bench / "first.json")
    (bench / "ci/baselines").mkdir()
    called("baseline", bench / "first.json", "-o", bench / "ci/baselines/gpu07.json", **QUIET)
    slow = measured(bench, "--fault", "slow sim:0-host:0 rate=50%")
    assert slow.returncode == 1, slow.stderr
    assert "gate" in slow.stderr
    assert (bench / "gate.xml").read_text().startswith("<?xml")


def test_inputs_that_nobody_reviewed_measure_nothing(bench):
    limits = bench / "ci/throughput.yml"
    limits.write_text(limits.read_text().replace("0.9", "0.1"))
    done = measured(bench)
    assert done.returncode == 2
    assert "throughput.yml: FAILED" in done.stdout
    assert not (bench / "run.json").exists()
