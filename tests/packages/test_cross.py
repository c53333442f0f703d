"""Cross-built wheels: their names, what their modules need, and that the other CPU's Python loads
them.

That Python is Debian's, unpacked from packages that debootstrap fetches, and run by qemu-user. All
of it takes LINKGAUGE_CAMPAIGN=full.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dist_kit import check_wheel, dist, wheel_of

FULL = os.environ.get("LINKGAUGE_CAMPAIGN") == "full"
DEBIAN = {"aarch64": "arm64", "riscv64": "riscv64"}
MIRROR = os.environ.get("LINKGAUGE_DEBIAN", "http://deb.debian.org")
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
SUITES = ("bookworm",) if sys.version_info < (3, 12) else ("trixie", "sid")
"""Debian 12 has Python 3.11, which takes a wheel of its own; later ones have 3.13, and riscv64."""

pytestmark = pytest.mark.skipif(not FULL, reason="takes minutes: LINKGAUGE_CAMPAIGN=full")


def needs(*commands):
    missing = [command for command in commands if shutil.which(command, path=PATH) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")


@pytest.fixture(scope="module", params=DEBIAN)
def cross_built(request):
    """The CPU and its wheel."""
    cpu = request.param
    done = dist(cpu)
    assert done.returncode == 0, done.stdout + done.stderr
    return cpu, wheel_of(cpu)


def test_its_name_says_where_it_runs(cross_built, tmp_path):
    cpu, wheel = cross_built
    check_wheel(wheel, cpu, tmp_path)


def python_of(cpu: str, folder: Path) -> Path:
    """Debian's Python for the CPU, with the libraries that it needs, below the folder."""
    bootstrap = ["debootstrap", f"--arch={DEBIAN[cpu]}", "--variant=minbase", "--download-only",
                 "--include=python3"]  # fmt: skip
    for suite in SUITES:
        done = subprocess.run(
            [*bootstrap, suite, folder / suite, f"{MIRROR}/debian"],
            env={**os.environ, "PATH": PATH},
            capture_output=True, text=True, check=False, timeout=900,
        )  # fmt: skip
        if done.returncode == 0:
            break
    else:
        pytest.skip(f"debootstrap cannot fetch {suite}: {done.stdout.splitlines()[-1]}")
    root = folder / "root"
    for package in sorted((folder / suite / "var/cache/apt/archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", package, root], check=True, capture_output=True)
    (python,) = (path for path in (root / "usr/bin").glob("python3.*") if not path.is_symlink())
    return python


def test_a_python_of_that_cpu_loads_its_module_and_copies(cross_built, tmp_path):
    cpu, wheel = cross_built
    needs("debootstrap", f"qemu-{cpu}", "dpkg-deb")
    if (cpu, SUITES) == ("riscv64", ("bookworm",)):
        pytest.skip("Debian 12 has no riscv64: run the tests with Python 3.12 or newer")
    python = python_of(cpu, tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "unpacked")
    check = Path(__file__).with_name("module_check.py")
    done = subprocess.run(
        [f"qemu-{cpu}", "-L", tmp_path / "root", python, "-I", check, tmp_path / "unpacked"],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "copied by" in done.stdout
    assert "refused: " in done.stdout
