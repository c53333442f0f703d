"""Public questions, and what their maintainers answered (tests/data/judge/questions)."""

import re
from pathlib import Path

import pytest
import yaml

from command_kit import called

QUESTIONS = Path(__file__).parents[1] / "data/judge/questions"
ASKED = yaml.safe_load((QUESTIONS / "questions.yml").read_text())


@pytest.mark.parametrize("asked", ASKED, ids=[one["name"] for one in ASKED])
def test_answer(asked):
    files = sorted((QUESTIONS / asked["name"]).iterdir())
    done = called("judge", *files)
    answer = re.sub(r"\n {4}", " ", done.stdout + done.stderr)  # long lines are wrapped
    for said in asked["says"]:
        assert re.search(said, answer), answer
    if asked["verdict"] == "none":
        assert done.returncode == 2
        return
    words = "ok|low|fail|warn|perhaps low|not judged"
    verdict = re.search(rf"^verdict:\s+({words})", done.stdout, re.MULTILINE)[1]
    assert verdict in asked["verdict"].split(" or "), done.stdout
    assert done.returncode == (verdict in ("low", "fail")), done.stdout


def test_all_are_listed():
    folders = {one.name for one in QUESTIONS.iterdir() if one.is_dir()}
    assert folders == {one["name"] for one in ASKED}
