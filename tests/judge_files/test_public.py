"""Outputs of public pages, answered before judge saw them (tests/data/judge/public)."""

import re
from pathlib import Path

import pytest
import yaml

from command_kit import called
from linkgauge.rooms.judge_files.readers import read_text
from reported_kit import named

PUBLIC = Path(__file__).parents[1] / "data/judge/public"
CASES = yaml.safe_load((PUBLIC / "cases.yml").read_text())
EXIT_CODE = {"ok": 0, "warn": 0, "not judged": 0, "low": 1, "fail": 1, "refused": 2}


@pytest.mark.parametrize("case", CASES, ids=[one["name"] for one in CASES])
def test_figures(case):
    """All figures of a text are read, each as the page states it, and of as many ranks."""
    texts = [(one.name, one.read_text()) for one in sorted((PUBLIC / case["name"]).iterdir())]
    logs = [log for text in texts for read in read_text(*text) for log in read.logs]
    figures = [one for log in logs for one in log.figures]
    ranks = case.get("ranks", 0)
    assert {one.ranks for one in figures} <= {0, ranks}
    found = dict(named(one, ranks) for one in figures)
    for name, figure in case["figures"].items():
        assert found[name] == pytest.approx(figure, rel=3e-3), (name, found)
    assert len(figures) == case["count"]


@pytest.mark.parametrize("case", CASES, ids=[one["name"] for one in CASES])
def test_answer(case):
    done = called("judge", *sorted((PUBLIC / case["name"]).iterdir()))
    answer = re.sub(r"\n {4,}", " ", done.stdout + done.stderr)  # long lines are wrapped
    for said in case["never"]:
        assert not re.search(said, answer, re.IGNORECASE | re.MULTILINE), answer
    told = re.search(r"^verdict:\s+(ok|low|fail|warn|not judged)\b", answer, re.MULTILINE)
    verdict = told[1] if told else "refused"
    right = [
        verdict in case["verdict"].split(" or "),
        all(re.search(said, answer, re.IGNORECASE | re.MULTILINE) for said in case["says"]),
    ]
    assert all(right) or ("half" in case and any(right)), answer
    assert done.returncode == EXIT_CODE[verdict]


def test_all_are_listed():
    assert {one.name for one in PUBLIC.iterdir() if one.is_dir()} == {one["name"] for one in CASES}
