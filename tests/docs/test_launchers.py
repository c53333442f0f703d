"""The examples of launchers do what docs/launchers.md says, as far as one machine can show."""

import re
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from launch_kit import HERE, environment
from linkgauge.cli.main import application

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "launchers"
PAGE = (ROOT / "docs" / "launchers.md").read_text("utf-8")
LINKGAUGE = str(HERE / "linkgauge")
COMMANDS = application().loaded()
SIMULATED = ("--machine", "ppu-2x2")


def manifest(name):
    return yaml.safe_load((FOLDER / f"kubernetes-{name}.yaml").read_text())


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_the_page_shows_each_file_as_it_is(path):
    kind = "yaml" if path.suffix == ".yaml" else "sh"
    assert f"`examples/launchers/{path.name}`:\n\n```{kind}\n{path.read_text()}```\n" in PAGE


@pytest.mark.parametrize("name", ["job", "check"])
def test_kubernetes_takes_it(name):
    kubernetes_validate.validate(manifest(name), "1.31", strict=True)


@pytest.mark.parametrize("role", ["Launcher", "Worker"])
def test_kubernetes_takes_the_pods_of_the_mpijob(role):
    replicas = manifest("mpijob")["spec"]["mpiReplicaSpecs"][role]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, **replicas["template"]}
    kubernetes_validate.validate(pod, "1.31", strict=True)


def words():
    """What the manifests' containers type, with an example for what Kubernetes sets."""
    job = manifest("job")["spec"]["template"]["spec"]["containers"][0]
    yield job["args"][0].removeprefix("exec ").replace("$JOB_COMPLETION_INDEX", "3").split()
    mpi = manifest("mpijob")["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    yield mpi["containers"][0]["args"]
    check = manifest("check")["spec"]["initContainers"][0]
    yield [*check["command"], *check["args"]]


@pytest.mark.parametrize("typed", [*words()], ids=lambda typed: typed[1])
def test_linkgauge_takes_what_the_containers_type(typed):
    assert typed[0] == "linkgauge"
    COMMANDS[typed[1]].make_context(typed[1], list(typed[2:]))


def run(*words, cwd, **variables):
    return subprocess.run(
        list(map(str, words)), cwd=cwd, env=environment(**{"LINKGAUGE": LINKGAUGE, **variables}),
        capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.skipif(not (HERE / "mpiexec").exists(), reason="no MPICH wheel for this platform")
def test_mpirun_measures_between_ranks(tmp_path):
    (tmp_path / "hosts").write_text("localhost:2\n")
    options = (*SIMULATED, "--size", "64K", "--samples", "1", "--out", tmp_path / "out")
    done = run(FOLDER / "mpirun.sh", "hosts", 2, *options, cwd=tmp_path, MPIEXEC=HERE / "mpiexec")
    assert done.returncode == 0, done.stderr
    assert "multinode_device_to_device_memcpy_write_ce" in done.stdout
    assert list(tmp_path.glob("out/*/nodes/*/run.json"))


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        ("", 0, "ok: "),
        ("slow host:0 rate=93%", 1, "not ok: [^;]* 7.[0-9]% less than the baseline"),
        ("lost sim:3 cells=2", 1, "not ok: fail lost sim:3"),
    ],
)
def test_the_epilog_holds_a_node_against_its_prolog(tmp_path, fault, code, said):
    """A memory that lost 7 % is still healthy by itself: only the prolog's figures tell."""
    node = {
        "SLURM_JOB_ID": "7", "LINKGAUGE_JOBS": str(tmp_path / "jobs"),
        "CHECK_OPTIONS": "--machine dgx-h200-8 --devices 8",
    }  # fmt: skip
    before = run(FOLDER / "prolog.sh", cwd=tmp_path, **node)
    assert (before.returncode, before.stdout[:4]) == (0, "ok: ")
    assert [*(tmp_path / "jobs/7").rglob("journal.jsonl")]
    later = tmp_path / "linkgauge"
    later.write_text(f'#!/bin/sh\nexec {LINKGAUGE} "$@"{fault and f" --fault {fault!r}"}\n')
    later.chmod(0o755)
    after = run(FOLDER / "epilog.sh", cwd=tmp_path, **node, LINKGAUGE=str(later))
    assert (after.returncode, bool(re.match(said, after.stdout))) == (code, True), after.stdout
    assert not (tmp_path / "jobs/7").exists()


def test_an_epilog_without_a_prolog_judges_the_node_alone(tmp_path):
    done = run(
        FOLDER / "epilog.sh", cwd=tmp_path, LINKGAUGE_JOBS=str(tmp_path / "none"),
        CHECK_OPTIONS="--machine dgx-h200-8",
    )  # fmt: skip
    assert (done.returncode, done.stdout[:4]) == (0, "ok: ")
