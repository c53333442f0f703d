"""The README and the pages show what commands print today (`make screens` writes it anew)."""

import os
import runpy
from pathlib import Path

import pytest

from command_kit import called
from transcript_shell import words_of

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


class Quickly(SCREENS["Shell"]):
    """Calls linkgauge in this process."""

    def run(self, command):
        first, *words = words_of(command.replace("\\\n", " "), self.folder)
        if first != "linkgauge":
            return super().run(command)
        return called(*words, cwd=self.folder, COLUMNS=100, LINKGAUGE_HISTORY="history.db")


@pytest.mark.parametrize("page", SHOWING, ids=str)
def test_a_page_shows_what_its_commands_print(page):
    now = SCREENS["with_screens"]((ROOT / page).read_text("utf-8"), Quickly)
    assert golden(ROOT / page, now) == now


def test_the_readme_and_the_first_diagnosis_have_screens():
    assert {Path("README.md"), Path("docs/first-diagnosis.md")} <= set(SHOWING)


def test_the_picture_is_what_its_command_prints_and_says_that_it_is_simulated():
    now = SCREENS["picture"]()
    assert golden(SCREENS["PICTURE"], now) == now
    assert "SIMULATED" in now


def test_every_console_block_is_checked():
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        text = page.read_text("utf-8")
        assert text.count("```console") == len(SCREENS["SCREEN"].findall(text)), page.name
