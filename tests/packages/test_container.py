"""The Containerfile: pinned, and its RUN lines do what they say.

LINKGAUGE_CAMPAIGN=full carries it out in roots that debootstrap makes, as root, in ten minutes.
"""

import os
import re
import shutil
from pathlib import Path

import pytest

import linkgauge
from container_kit import Root, debian, expanded, instructions, stages

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Containerfile").read_text()
FULL = os.environ.get("LINKGAUGE_CAMPAIGN") == "full"
MIRROR = os.environ.get("LINKGAUGE_DEBIAN", "")
"""A mirror to use instead of snapshot.debian.org, for networks that reach that alone."""


def test_lines_go_on_and_comments_do_not_count():
    text = "# a\nRUN one && \\\n    # between\n    two\n\nWORKDIR /x\n"
    assert list(instructions(text)) == [("RUN", "one && two"), ("WORKDIR", "/x")]
    assert expanded("a${B}c$D$E", {"B": "b", "D": "d"}) == "abcd"


def test_images_packages_and_archives_are_pinned():
    _, found = stages(TEXT)
    assert len(found) == 2
    days = {re.fullmatch(r"docker\.io/library/debian:(\w+)-(\d{8})-slim", one.image).groups()
            for one in found}  # fmt: skip
    ((suite, day),) = days
    archives = re.findall(r"snapshot\.debian\.org/archive/[\w-]+/(\d{8})T", TEXT)
    assert archives == [day] * 4
    assert set(re.findall(r" (bookworm|trixie)(?=[- ])", TEXT)) == {suite}
    for one in (one for stage in found for one in stage.instructions if one.word == "RUN"):
        for install in re.findall(r"pip install[^&]*", one.rest):
            assert "--constraint constraints.txt" in install


def test_what_it_copies_is_there():
    _, found = stages(TEXT)
    copied = [one.rest.split()[:-1] for stage in found for one in stage.instructions
              if one.word == "COPY" and not one.rest.startswith("--from")]  # fmt: skip
    assert [name for names in copied for name in names if not (ROOT / name).exists()] == []


def trust(folder):
    """What pip needs in a network whose proxy has a certificate of its own."""
    if not (bundle := os.environ.get("PIP_CERT")):
        return {}
    shutil.copy(bundle, folder / "proxy.crt")
    return {"PIP_CERT": "/proxy.crt"}


@pytest.fixture
def roots(tmp_path):
    """A root for each stage."""
    if not FULL:
        pytest.skip("takes ten minutes: LINKGAUGE_CAMPAIGN=full")
    if os.getuid() != 0:
        pytest.skip("chroot needs root")
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    if shutil.which("debootstrap", path=path) is None:
        pytest.skip("needs debootstrap (Debian's package of that name)")
    _, found = stages(TEXT)
    given = {"CUDA": "cuda13"}
    if MIRROR:
        given |= {"ARCHIVE": f"{MIRROR}/debian", "SECURITY": f"{MIRROR}/debian-security"}
    made = []
    for number, stage in enumerate(found):
        folder = tmp_path / f"stage{number}"
        debian(
            folder, stage.image.partition(":")[2].partition("-")[0], tarball=tmp_path / "base.tar"
        )
        shutil.copy("/etc/resolv.conf", folder / "etc/resolv.conf")
        made.append(Root(folder, ROOT, given, trust(folder)))
    yield list(zip(found, made, strict=True))
    shutil.rmtree(tmp_path, ignore_errors=True)


def test_its_run_lines_make_a_linkgauge_that_measures(roots):
    named = {}
    for stage, root in roots:
        for one in stage.instructions:
            root.carry_out(one, named)
        named[stage.name] = root
    _, last = roots[-1]
    assert linkgauge.__version__ in last.run("linkgauge --version")
    assert "verdict" in last.run(
        "linkgauge run host_to_host_memcpy_copy_cpu --size 1M --samples 3 --no-report 2>&1 || true"
    )
    assert "devices" in last.run("linkgauge --help")
