"""What contrib/ holds for GitHub Actions, ReFrame and Ansible: each is read, and as far as this
machine has its program, run."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import linkgauge

ROOT = Path(__file__).parents[2]
CONTRIB = ROOT / "contrib"
LINKGAUGE = Path(sys.executable).with_name("linkgauge")
ACTION = yaml.safe_load((CONTRIB / "github-action/action.yml").read_text())
LOG = ROOT / "tests/data/judge/public/p53-sixteen-at-10-of-25/log.txt"
SLOW = ("--fault", "slow sim:3 rate=50%")


def program(name, package):
    """The path of a program. Skips where it is not installed."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (pip: {package})")
    return found


@pytest.fixture
def act(tmp_path):
    """Carries out the action's last step as a runner does, and returns what came of it."""
    made = tmp_path / "linkgauge/bin"
    made.mkdir(parents=True)
    (made / "linkgauge").symlink_to(LINKGAUGE)

    def acted(command, *arguments):
        files = {name: tmp_path / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        step = ACTION["runs"]["steps"][-1]
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path,
            env={**os.environ, "RUNNER_TEMP": str(tmp_path), "COMMAND": command,
                 "ARGUMENTS": "\n".join(arguments) + "\n", "LINKGAUGE_HISTORY": "none",
                 **{name: str(path) for name, path in files.items()}},
        )  # fmt: skip
        return done, *(path.read_text() if path.exists() else "" for path in files.values())

    return acted


def test_the_action_installs_its_own_checkout():
    first = ACTION["runs"]["steps"][0]
    source = first["env"]["SOURCE"].replace(
        "${{ github.action_path }}", str(CONTRIB / "github-action")
    )
    assert Path(source).resolve() == ROOT
    assert 'pip install --quiet "$SOURCE"' in first["run"]


def test_the_action_judges_a_log(act):
    done, output, summary = act("judge", str(LOG), "--machine=8 x H100 SXM")
    alone = subprocess.run([LINKGAUGE, "judge", LOG, "--machine", "8 x H100 SXM"],
                           capture_output=True, text=True, check=False, timeout=60)  # fmt: skip
    assert (done.returncode, output) == (alone.returncode, f"exit-code={alone.returncode}\n")
    assert alone.stdout.splitlines()[-1] in summary


def test_the_action_fails_where_a_run_has_lost(act, tmp_path):
    for label, faults in (("before", []), ("after", [SLOW[1]])):
        for _ in range(6):
            linkgauge.run(
                "host_to_device_memcpy_ce", machine="dgx-h200-8", size="1M", samples=3,
                faults=faults, label=label, out=tmp_path / "runs",
            )  # fmt: skip
    folder = tmp_path / "runs/simulated-dgx-h200-8"
    sides = (f"--baseline={folder / 'before'}", f"--current={folder / 'after'}")
    done, output, summary = act("gate", *sides, "--no-history")
    assert (done.returncode, output) == (1, "exit-code=1\n"), done.stdout + done.stderr
    assert "::error" in done.stdout
    assert summary.startswith("```text\n")


def test_the_action_takes_no_other_command(act):
    done, *_ = act("run", "--profile=quick")
    assert (done.returncode, "::error::" in done.stdout) == (2, True)


@pytest.mark.parametrize(("fault", "passes"), [((), True), (SLOW, False)])
def test_reframe_measures_and_judges_a_node(tmp_path, fault, passes):
    reframe = program("reframe", "reframe-hpc")
    words = ["host_to_device_memcpy_ce", "--machine", "dgx-h200-8", "--size", "64M", *fault]
    report = tmp_path / "report.json"
    done = subprocess.run(
        [reframe, "-c", CONTRIB / "reframe/linkgauge_check.py", "-S", f"linkgauge={LINKGAUGE}",
         "-S", f"options={','.join(words)}", "--prefix", tmp_path, "--report-file", report,
         "--run"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == int(not passes), done.stdout
    ((case,),) = (run["testcases"] for run in json.loads(report.read_text())["runs"])
    if not passes:
        assert "slow sim:3" in case["fail_reason"]
        return
    assert case["result"] == "pass"
    (kept,) = tmp_path.glob("output/**/run.json")
    worst = min(cell.figure for cell in linkgauge.load(kept).cells)
    ((name, value),) = ((name, one) for name, one in case["perfvalues"].items())
    assert name.endswith(":host_to_device_memcpy_ce")
    assert value[0] == pytest.approx(worst / 1e9)


def test_ansible_lint_finds_no_fault():
    lint = program("ansible-lint", "ansible-lint")
    done = subprocess.run(
        [lint, "--offline", "--profile", "production"], cwd=CONTRIB / "ansible",
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_ansible_installs_the_scripts(tmp_path):
    """All of the role but the package, which is large, and services, which need systemd."""
    play = program("ansible-playbook", "ansible-core")
    made = tmp_path / "play.yml"
    made.write_text(yaml.safe_dump([{
        "hosts": "all", "gather_facts": False, "roles": [{
            "role": str(CONTRIB / "ansible/roles/linkgauge"), "vars": {
                "linkgauge_package": "pip", "linkgauge_constraints": "", "linkgauge_slurm": True,
                "linkgauge_path": str(tmp_path / "opt"), "linkgauge_slurm_path": str(tmp_path),
            },
        }],
    }]))  # fmt: skip
    words = [play, "-i", "localhost,", "-c", "local", made, "-e"]
    words.append(f"ansible_python_interpreter={sys.executable} linkgauge_python={sys.executable}")
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout
    for name in ("prolog.sh", "epilog.sh"):
        source = (ROOT / "examples/launchers" / name).read_text()
        assert "/opt/linkgauge/bin" in source
        wanted = source.replace("/opt/linkgauge/bin", f"{tmp_path}/opt/bin")
        assert (tmp_path / name).read_text() == wanted
    again = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert "changed=0" in again.stdout
