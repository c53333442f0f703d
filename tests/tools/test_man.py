"""tools/man: a page of each command, whose words are those of its help."""

import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

from command_kit import called
from linkgauge.cli.main import COMMANDS

TOOL = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "man"))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("man")
    TOOL["main"](folder)
    return folder


def plain(page):
    """Its words as a person reads them."""
    text = re.sub(r"\\f[BR]", "", page.read_text("ascii"))
    text = re.sub(r"\\\[u([0-9A-F]+)\]", lambda one: chr(int(one[1], 16)), text)
    return " ".join(re.sub(r"^\.[A-Z]+ ?", "", text.replace(r"\-", "-"), flags=re.MULTILINE)
                    .replace(r"\e", "\\").replace(r"\&", "").split())  # fmt: skip


def test_there_is_a_page_of_each_command_and_the_same_one_each_time(pages):
    made = {page.name: page.read_text() for page in pages.iterdir()}
    assert made.keys() == {"linkgauge.1", *(f"linkgauge-{name}.1" for name in COMMANDS)}
    assert made == {f"{name}.1": text for name, text in TOOL["pages"]()}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_says_what_the_help_says(pages, name):
    _, *blocks = called(name, "--help", COLUMNS=100).stdout.split("\n\n")
    text = plain(pages / f"linkgauge-{name}.1")
    lines = [line for block in blocks for line in block.splitlines() if not line.endswith(":")]
    missing = [word for line in lines for word in line.split() if word not in text]
    assert missing == []


def test_what_roff_would_take_as_its_own_is_shown():
    escaped = TOOL["escaped"]
    assert escaped(".so file\n'quoted' a\\b --x ×") == (
        "\\&.so file\n\\&'quoted' a\\eb \\-\\-x \\[u00D7]"
    )


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_groff_finds_no_fault(pages):
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", *sorted(pages.iterdir())],
                          capture_output=True, text=True, check=False, timeout=60)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="needs mandoc")
def test_mandoc_misses_nothing_but_a_date(pages):
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *sorted(pages.iterdir())],
                          capture_output=True, text=True, check=False, timeout=60)  # fmt: skip
    assert [line for line in done.stdout.splitlines() if "missing date" not in line] == []
