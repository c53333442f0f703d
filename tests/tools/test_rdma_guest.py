"""tools/rdma-guest runs the tests of RDMA in a machine whose kernel has rxe.

LINKGAUGE_CAMPAIGN=full: some minutes where the machine is emulated, for want of KVM."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUEST = ROOT / "tools" / "rdma-guest"
PACKAGES = {
    "qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "modprobe": "kmod",
    "apt-get": "apt", "ib_write_bw": "perftest",
}  # fmt: skip
SECONDS = 1500


def guest(*command, **variables):
    return subprocess.run(
        [GUEST, *command], cwd=ROOT, env={**os.environ, **variables}, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip


@pytest.fixture
def needed():
    if os.environ.get("LINKGAUGE_CAMPAIGN") != "full":
        pytest.skip("takes minutes: LINKGAUGE_CAMPAIGN=full")
    if os.getuid() != 0:
        pytest.skip("the guest reads this machine's files as root")
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    for program, package in PACKAGES.items():
        if shutil.which(program, path=path) is None:
            pytest.skip(f"no {program} (Debian: {package})")


def test_without_a_command_it_says_so():
    ended = guest()
    assert ended.returncode == 2
    assert ended.stdout == "rdma-guest: give a command\n"


def test_what_the_command_writes_beside_it_stays_and_its_exit_code_is_the_guests(needed, tmp_path):
    ended = subprocess.run(
        [GUEST, "sh", "-c", "echo said; id -u >inside; touch /usr/outside; exit 7"], cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 7, ended.stderr
    assert "said\n" in ended.stdout
    assert (tmp_path / "inside").read_text() == "0\n"
    assert not Path("/usr/outside").exists()


def test_ranks_and_perftest_move_bytes_over_rxe(needed):
    ended = guest(
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
        "tests/cluster/test_rdma.py",
        LINKGAUGE_REQUIRE="rdma", LINKGAUGE_GUEST_SECONDS=str(SECONDS),
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout
    assert "3 passed" in ended.stdout


def test_faults_of_a_wire_below_rxe_are_named(needed):
    ended = guest(
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
        "tests/cluster/test_rdma_faults.py",
        LINKGAUGE_REQUIRE="rdma", LINKGAUGE_GUEST_SECONDS=str(SECONDS),
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout
    assert "1 passed" in ended.stdout


def test_faults_of_a_network_are_named_in_a_kernel_that_has_netem(needed):
    ended = guest(
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
        "tests/cluster/test_network_faults.py", "-k", "all_but_one",
        LINKGAUGE_REQUIRE="namespaces", LINKGAUGE_FAULT_SIZE="32M",
        LINKGAUGE_FAULT_SECONDS=str(2 * SECONDS - 300), LINKGAUGE_GUEST_SECONDS=str(2 * SECONDS),
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout
    assert "1 passed" in ended.stdout
