"""The test program of native/, without Python: on this CPU, and on others that qemu stands for.

`make test-native` builds it, for all CPUs that this machine has compilers of, and with sanitizers:
that takes minutes, so only the program of this CPU is built here where it is not there yet. With
LINKGAUGE_REQUIRE=qemu in the environment (.ci/run installs it), and by `make test-long`, all are
built.
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
FULL = os.environ.get("LINKGAUGE_CAMPAIGN") == "full"
REFUSED = re.compile(r"mbind: |move_pages|huge page pool: |one CPU")
"""What a system may refuse, by the system's own words."""


def lines_of(*how: str, always: bool = False) -> list[str]:
    """The program's lines. Skips what is not built as it is to be, unless it is small or asked."""
    make = ["make", "--silent", "-j2", "-C", str(FOLDER), *how]
    if not (always or REQUIRED or FULL) and subprocess.run([*make, "-q"], check=False).returncode:
        pytest.skip("not built from these sources: run make test-native")
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
    check(lines_of("TARGET=native", always=True))


def test_the_native_code_does_nothing_that_the_language_leaves_undefined() -> None:
    if shutil.which("make") is None or shutil.which("g++") is None:
        pytest.skip("needs make and g++")
    for library in ("libasan.so", "libubsan.so"):
        asked = ["g++", f"-print-file-name={library}"]
        found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        if not found.startswith("/"):
            pytest.skip(f"needs {library}, which comes with g++ or beside it")
    check(lines_of("SANITIZE=address,undefined"))


@pytest.mark.parametrize("target", EMULATED)
def test_the_native_code_passes_its_tests_on_another_cpu(target: str) -> None:
    missing = [tool for tool in (f"{target}-g++", EMULATED[target]) if shutil.which(tool) is None]
    if missing and not REQUIRED:
        pytest.skip(f"needs {' and '.join(missing)} (Debian: g++-{target}, qemu-user)")
    assert not missing
    if target.startswith(platform.machine()):
        pytest.skip("this is that CPU")
    check(lines_of(f"TARGET={target}"))
