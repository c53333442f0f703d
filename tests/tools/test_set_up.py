"""What `make run` prints while it sets up, and where the system lacks something."""

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PYTHON = f"""#!/bin/sh
case "$*" in
    *Python.h*) [ -z "$NO_HEADERS" ]; exit ;;
    *cuda-extra*) echo "$CUDA"; exit ;;
    *libc_ver*) [ -z "$STRANGE" ]; exit ;;
    *-m*venv*) exec {sys.executable} -c 'import sys' ;;
esac
exec {sys.executable} "$@"
"""
PIP = """#!/bin/sh
echo "$@" >>"$CALLS"
case "$*" in *"$REFUSED"*) [ -n "$REFUSED" ] && { echo "ERROR: no $REFUSED here"; exit 1; } ;; esac
case "$*" in *"$SLOW"*) [ -n "$SLOW" ] && sleep 0.5 ;; esac
echo noise of pip
"""


def executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def tree(tmp_path):
    """A checkout with an environment whose pip only notes what it is asked for."""
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "tools", tree / "tools")
    shutil.copy(ROOT / "pyproject.toml", tree)
    executable(tree / ".venv/bin/python", PIP)
    return tree


@pytest.fixture
def set_up(tree, tmp_path):
    """Runs the script in that checkout."""
    calls = tmp_path / "calls"
    calls.touch()

    def run(*more, **environment):
        variables = {"REFUSED": "", "SLOW": "", "CUDA": "", **environment, "CALLS": str(calls)}
        done = subprocess.run(
            [tree / "tools/set-up", ".venv", *more], capture_output=True, text=True, timeout=60,
            env=os.environ | {"PYTHON": str(executable(tmp_path / "python", PYTHON))} | variables,
            check=False,
        )  # fmt: skip
        assert done.stdout == ""
        return done.returncode, done.stderr, calls.read_text()

    return run


def test_each_step_is_a_line_with_what_is_installed_and_how_long_it_takes(set_up):
    code, printed, calls = set_up()
    assert code == 0, printed
    first, *steps = printed.splitlines()
    assert first == "Bringing .venv up to date:"
    for step in steps:
        assert re.fullmatch(r"  .+ \(about \d+ s\) done: \d+ s|  no NVIDIA driver found: .*", step)
    assert "noise" not in printed
    digests = "--require-hashes --no-deps --only-binary :all: -r constraints-hashes.txt"
    for needed in ("scikit-build-core", digests, "numpy>=", "pocl-binary-distribution>="):
        assert needed in calls
    assert calls.splitlines()[-1].endswith("--no-build-isolation --no-deps --editable .")
    assert "pytest" not in calls


def test_where_no_digests_are_known_versions_are_pinned_alone(set_up):
    _, _, calls = set_up(STRANGE="1")
    assert "-c constraints.txt click>=" in calls
    assert "--require-hashes" not in calls


def needed(requirements):
    """The names of these packages here, and of all that they need in turn."""
    for one in map(Requirement, requirements or ()):
        if one.marker is None or one.marker.evaluate({"extra": ""}):
            yield canonicalize_name(one.name)
            yield from needed(requires(one.name))


def test_digests_are_of_the_versions_that_are_pinned_and_of_all_that_is_imported():
    lines = (ROOT / "constraints-hashes.txt").read_text().replace("\\\n", "").splitlines()[1:]
    pinned = set((ROOT / "constraints.txt").read_text().lower().splitlines())
    found = set()
    for version, *hashes in map(str.split, lines):
        assert version in pinned, "tools/hashes makes the file anew"
        assert hashes
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", one) for one in hashes)
        found.add(canonicalize_name(version.partition("==")[0]))
    assert found >= set(needed(requires("linkgauge")))


def test_a_driver_decides_which_bindings_are_installed(set_up):
    _, printed, calls = set_up(CUDA="cuda12")
    assert "NVIDIA driver found: bindings of CUDA 12 (about" in printed
    assert "-c constraints-cuda12.txt cuda-bindings>=12.8,<13" in calls


def test_opencl_may_be_missing(set_up):
    code, printed, calls = set_up(REFUSED="pyopencl")
    assert code == 0
    assert "ERROR: no pyopencl here\n  continuing without: OpenCL" in printed
    assert "--editable" in calls


def test_what_is_needed_may_not_and_its_output_is_shown(set_up):
    code, printed, _ = set_up(REFUSED="--editable")
    assert code == 2
    assert "noise" not in printed
    assert printed.splitlines()[-2] == "ERROR: no --editable here"
    assert printed.splitlines()[-1].startswith("set-up: native module")


def test_missing_headers_are_named_with_the_remedy(set_up):
    code, printed, _ = set_up(NO_HEADERS="1")
    assert code == 2
    assert "no Python.h for" in printed
    assert "sudo apt-get install python3-dev" in printed
