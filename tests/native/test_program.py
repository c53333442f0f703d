"""The test program of native/, without Python: on this CPU, and on others that qemu stands for.

What it takes for those (.ci/run installs it) is either there, or its absence is said. With
LINKGAUGE_REQUIRE=qemu in the environment, it must be there.
"""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "native/test"
REQUIRED = "qemu" in os.environ.get("LINKGAUGE_REQUIRE", "")
EMULATED = {"aarch64-linux-gnu": "qemu-aarch64", "riscv64-linux-gnu": "qemu-riscv64"}
REFUSED = re.compile(r"mbind: |move_pages|huge page pool: |one CPU")
"""What a system may refuse, by the system's own words."""


def build_and_run(*how: str) -> list[str]:
    """The program's lines. Building it takes some 10 s, once."""
    make = ["make", "--silent", "-j2", "-C", str(FOLDER), *how]
    built = subprocess.run(make, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    ran = subprocess.run([*make, "run"], capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.splitlines()


def check(lines: list[str]) -> None:
    skipped = [line for line in lines if line.startswith("skip ")]
    assert all(REFUSED.search(line) for line in skipped), skipped
    passed = sum(line.startswith("ok ") for line in lines)
    assert lines[-1] == f"{passed} passed, 0 failed, {len(skipped)} skipped"
    assert passed >= 16


def test_the_native_code_passes_its_tests_on_this_cpu() -> None:
    if shutil.which("make") is None or shutil.which("g++") is None:
        pytest.skip("needs make and g++")
    check(build_and_run("TARGET=native"))


def test_the_native_code_does_nothing_that_the_language_leaves_undefined() -> None:
    if shutil.which("make") is None or shutil.which("g++") is None:
        pytest.skip("needs make and g++")
    for library in ("libasan.so", "libubsan.so"):
        asked = ["g++", f"-print-file-name={library}"]
        found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        if not found.startswith("/"):
            pytest.skip(f"needs {library}, which comes with g++ or beside it")
    check(build_and_run("SANITIZE=address,undefined"))


@pytest.mark.parametrize("target", EMULATED)
def test_the_native_code_passes_its_tests_on_another_cpu(target: str) -> None:
    missing = [tool for tool in (f"{target}-g++", EMULATED[target]) if shutil.which(tool) is None]
    if missing and not REQUIRED:
        pytest.skip(f"needs {' and '.join(missing)} (Debian: g++-{target}, qemu-user)")
    assert not missing
    if target.startswith(platform.machine()):
        pytest.skip("this is that CPU")
    check(build_and_run(f"TARGET={target}"))
