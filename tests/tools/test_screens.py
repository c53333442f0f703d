"""The README and the pages show what commands print today (`make screens` writes it anew)."""

import os
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCREENS = runpy.run_path(str(ROOT / "tools" / "screens"))
SHOWING = [
    page.relative_to(ROOT)
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if SCREENS["SCREEN"].search(page.read_text("utf-8"))
]


def golden(path, now):
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(now, "utf-8")
    return path.read_text("utf-8")


@pytest.mark.parametrize("page", SHOWING, ids=str)
def test_a_page_shows_what_its_commands_print(page):
    now = SCREENS["with_screens"]((ROOT / page).read_text("utf-8"))
    assert golden(ROOT / page, now) == now


def test_the_readme_and_the_first_diagnosis_have_screens():
    assert {Path("README.md"), Path("docs/first-diagnosis.md")} <= set(SHOWING)


def test_the_picture_is_what_its_command_prints_and_says_that_it_is_simulated():
    now = SCREENS["picture"]()
    assert golden(SCREENS["PICTURE"], now) == now
    assert "SIMULATED" in now


def test_the_picture_loads_nothing():
    addresses = set(re.findall(r"https?://[^\"' )]+", SCREENS["PICTURE"].read_text("utf-8")))
    assert addresses == {"http://www.w3.org/2000/svg"}


def test_every_console_block_is_checked():
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        text = page.read_text("utf-8")
        assert text.count("```console") == len(SCREENS["SCREEN"].findall(text)), page.name


def test_a_block_is_cut_as_its_comment_says():
    page = "<!-- screen head=2 tail=1 -->\n```console\n$ seq 9\nold\n$ echo $?\n```\n"
    shown = "$ seq 9\n1\n2\n…\n9\n$ echo $?\n0\n"
    assert SCREENS["with_screens"](page) == page[:41] + shown + "```\n"


def test_a_block_begins_where_its_comment_says_if_that_line_is_there():
    page = "<!-- screen from=verdict: tail=1 -->\n```console\n$ printf 'a\\nverdict: b\\nc\\n'\n```"
    assert SCREENS["with_screens"](page).splitlines()[3:] == ["…", "verdict: b", "c", "```"]
    page = page.replace("verdict: b", "b")
    assert SCREENS["with_screens"](page).splitlines()[3:] == ["…", "c", "```"]


def test_an_exit_code_is_that_of_the_command_before(tmp_path):
    shell = SCREENS["Shell"](tmp_path)
    assert shell.output("echo left; exit 4") == ["left"]
    assert shell.output("echo $?") == ["4"]


def test_a_command_that_prints_nothing_is_an_error(tmp_path):
    with pytest.raises(SystemExit, match="why"):
        SCREENS["Shell"](tmp_path).output("echo why >&2")
