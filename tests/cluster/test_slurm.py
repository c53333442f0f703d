"""Ranks that srun starts, on a Slurm of this test's own: one node, no accounting."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from launch_kit import environment, harmed

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch")
FOUND = {name: shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") for name in PROGRAMS}
RUN = ("run", "multinode_bisect_write_ce", "--size", "64K", "--samples", "1")
CONFIGURATION = """
ClusterName=one
SlurmctldHost=localhost
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
NodeName=localhost CPUs=64 RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """Runs `srun`, or another of its commands, with these arguments."""
    if None in FOUND.values() or os.getuid() != 0:
        why = "Slurm is not installed (Debian: slurm-wlm, munge), or may not be started"
        if "slurm" in os.environ.get("LINKGAUGE_REQUIRE", ""):
            pytest.fail(why)
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("slurm")
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    configuration = folder / "slurm.conf"
    configuration.write_text(CONFIGURATION.format(folder=folder, ports=free_ports(2)))
    variables = environment(SLURM_CONF=str(configuration))
    own = [f"--{name}={folder}/munge.{name}" for name in ("socket", "pid-file", "log-file")]
    started = [
        subprocess.Popen(
            [FOUND[name], *options], env=variables, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for name, options in (
            ("munged", ["-F", "-f", f"--key-file={key}", f"--seed-file={folder}/seed", *own]),
            ("slurmctld", ["-D"]),
            ("slurmd", ["-D", "-N", "localhost"]),
        )
    ]  # fmt: skip

    def srun(*arguments, seconds=60, command="srun", **more):
        return subprocess.run(
            [FOUND[command], *arguments], env=variables | more, capture_output=True, text=True,
            timeout=seconds, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip

    try:
        deadline = time.monotonic() + 30
        while srun("--immediate=1", "true").returncode != 0:
            if time.monotonic() > deadline:
                pytest.skip("a Slurm of one's own does not start here")
            time.sleep(0.2)
        yield srun
    finally:
        for one in started:
            one.kill()
            one.wait()


def program(folder, code="from linkgauge.__main__ import main\nmain()\n"):
    folder.joinpath("program.py").write_text(code)
    return [sys.executable, str(folder / "program.py")]


@pytest.mark.parametrize("how", [("--machine", "ppu-2x2"), ("--backend", "mpi")])
def test_its_ranks_measure_together(slurm, tmp_path, how):
    """With MPI by Slurm's own interface to MPICH."""
    given = [*program(tmp_path), *RUN, *how, "--out", str(tmp_path / "out")]
    ended = slurm("--mpi=pmi2", "-n", "4", *given)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("results: ") == 1
    assert "@3 -> " in ended.stdout


def test_a_rank_that_dies_is_named_where_srun_lets_the_others_live(slurm, tmp_path):
    code = harmed(1, "SIGKILL", "Begin", 1).replace('"PMI_RANK"', '"SLURM_PROCID"')
    given = [*program(tmp_path, code), *RUN, "--machine", "ppu-2x2", "--out", str(tmp_path / "out")]
    ended = slurm("--kill-on-bad-exit=0", "-n", "3", *given)
    assert ended.returncode == 137, "srun's own, of the rank that was killed"
    assert "lost: rank 1 (" in ended.stdout
    assert "tasks 0,2: E" in ended.stderr or ended.stderr.count("Exited with exit code 3") == 2


def test_the_batch_file_of_the_examples_checks_the_node_and_measures(slurm, tmp_path):
    """On one node instead of two, and on a simulated machine."""
    file = Path(__file__).parents[2] / "examples" / "launchers" / "linkgauge.sbatch"
    here = ("--wait", "--nodes=1", "--ntasks-per-node=2", f"--output={tmp_path}/said.txt")
    ended = slurm(
        *here, str(file), "--machine", "ppu-2x2", "--size", "64K", "--samples", "1",
        "--out", str(tmp_path / "out"),
        command="sbatch", seconds=120, CHECK_OPTIONS="--machine ppu-2x2",
        LINKGAUGE=str(Path(sys.executable).with_name("linkgauge")),
    )  # fmt: skip
    said = (tmp_path / "said.txt").read_text()
    assert ended.returncode == 0, said + ended.stderr
    assert "ok: " in said
    assert "multinode_device_to_device_memcpy_write_ce" in said
    assert list(tmp_path.glob("out/*/nodes/*/run.json"))
