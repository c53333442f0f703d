"""What `make dist` makes: the sdist has what building takes, wheels run where their names say.

LINKGAUGE_CAMPAIGN=full builds all of them, some minutes; `.ci/run` makes and tries this machine's.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from email import message_from_string

import pytest
from packaging.metadata import Metadata
from trove_classifiers import classifiers

import linkgauge
from dist_kit import ROOT, check_wheel, dist, wheel_of

FULL = os.environ.get("LINKGAUGE_CAMPAIGN") == "full"
LONG = pytest.mark.skipif(not FULL, reason="takes minutes: LINKGAUGE_CAMPAIGN=full")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """The sdist of the tree as it is."""
    folder = tmp_path_factory.mktemp("sdist")
    build = "from scikit_build_core.build import build_sdist; import sys; build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, folder], check=True, cwd=ROOT, timeout=60,
                   capture_output=True)  # fmt: skip
    (path,) = folder.iterdir()
    return path


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git knows what is in the tree")
def test_the_sdist_has_the_tree_and_nothing_else(sdist):
    """With its tests, and all that `make` takes."""
    assert sdist.name == f"linkgauge-{linkgauge.__version__}.tar.gz"
    with tarfile.open(sdist) as tar:
        names = {member.name.partition("/")[2] for member in tar if not member.isdir()}
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, check=True, capture_output=True, text=True)  # fmt: skip
    assert names == {"PKG-INFO", *listed.stdout.split("\0")} - {""}


def test_its_metadata_say_what_it_is(sdist):
    with tarfile.open(sdist) as tar:
        text = tar.extractfile(f"linkgauge-{linkgauge.__version__}/PKG-INFO").read().decode()
    metadata = message_from_string(text)
    Metadata.from_email(text, validate=True)  # by what PyPI reads it with
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Keywords"]
    assert metadata.get_all("Classifier")
    assert set(metadata.get_all("Classifier")) <= classifiers


def test_there_is_one_version_and_the_changelog_begins_with_it():
    first = re.search(
        r"^## \[(\S+)\] - (unreleased|\d{4}-\d{2}-\d{2})$",
        (ROOT / "CHANGELOG.md").read_text(),
        re.MULTILINE,
    )
    assert first[1] == linkgauge.__version__
    stating = re.compile(r"(?:version|__version__) *= *[\"']\d+\.\d+\.\d+[\"']")
    places = [ROOT / "pyproject.toml", ROOT / "CMakeLists.txt", *(ROOT / "src").rglob("*.py")]
    stated = [path for path in places if stating.search(path.read_text("utf-8"))]
    assert stated == [ROOT / "src/linkgauge/__init__.py"]


def test_a_cpu_that_it_has_no_compiler_for_is_one_line():
    done = dist("vax")
    assert done.returncode == 2
    assert done.stderr == "dist: no native/toolchains/vax.cmake: give aarch64, riscv64\n"


@LONG
def test_the_sdist_builds_and_installs_with_pip_and_with_pipx(sdist, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    pip = [tmp_path / "venv/bin/python", "-m", "pip", "install", "--quiet"]
    constraints = ["--constraint", ROOT / "constraints.txt"]
    subprocess.run([*pip, *constraints, "pipx"], check=True, timeout=600)
    places = {"PIPX_HOME": "pipx", "PIPX_BIN_DIR": "bin", "PIPX_MAN_DIR": "man"}
    environment = {**os.environ, **{name: str(tmp_path / one) for name, one in places.items()}}
    subprocess.run([tmp_path / "venv/bin/pipx", "install", sdist], check=True, timeout=1200,
                   env=environment)  # fmt: skip
    subprocess.run([*pip, *constraints, sdist], check=True, timeout=1200)
    for command in (tmp_path / "venv/bin/linkgauge", tmp_path / "bin/linkgauge"):
        said = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
        assert linkgauge.__version__ in said.stdout
    shutil.unpack_archive(sdist, tmp_path / "unpacked")
    subprocess.run([*pip, *constraints, "pytest", "hypothesis"], check=True, timeout=600)
    done = subprocess.run(
        [tmp_path / "venv/bin/python", "-m", "pytest", "tests/model"],
        cwd=tmp_path / f"unpacked/linkgauge-{linkgauge.__version__}",
        capture_output=True, text=True, check=False, timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]


@LONG
@pytest.mark.skipif(platform.machine() != "x86_64", reason="auditwheel is pinned for x86-64 alone")
def test_the_wheel_of_this_machine_needs_nothing_but_the_c_library(tmp_path):
    done = dist()
    assert done.returncode == 0, done.stdout + done.stderr
    check_wheel(wheel_of("x86_64"), "x86_64", tmp_path)
