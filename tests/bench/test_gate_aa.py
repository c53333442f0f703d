"""Alike runs against each other: what a campaign prints and keeps, and how one is judged again."""

import json
import subprocess
import sys

import pytest

import gate_aa


@pytest.fixture
def commands(monkeypatch):
    """The commands that the campaign ran; each gate finds what `codes` says, by pair."""
    made, codes = [], {}

    def run(folder, *words):
        made.append(words)
        if words[0] == "run":
            (folder / "results" / "cpu" / words[4]).mkdir(parents=True)
            return subprocess.CompletedProcess(words, codes.get(("run", words[4]), 0), "", "")
        code = codes.get(("gate", words[2]), 0)
        verdict = {0: "ok", 1: "regression", 3: "inconclusive"}.get(code)
        cell = {"benchmark": "copy", "row": "0", "column": "1"}
        cells = [{"verdict": verdict, "loss": 0.07, "cell": cell}, {"verdict": "ok", "loss": 0.0}]
        return subprocess.CompletedProcess(words, code, json.dumps({"cells": cells}), "")

    monkeypatch.setattr(gate_aa, "linkgauge", run)
    return made, codes


def main(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["gate_aa.py", *map(str, words)])
    return gate_aa.main()


def rows(capsys):
    return [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")][1:]


def test_each_pair_is_said_and_counted(commands, tmp_path, monkeypatch, capsys):
    made, codes = commands
    codes.update({("gate", "idle1-a"): 3})
    assert main(monkeypatch, "--pairs", 2, "--loaded", 0, "--keep", tmp_path, "--size", "1M") == 0
    out = capsys.readouterr().out
    assert "idle 0: exit 0; 2 ok\n" in out
    assert out.endswith("| 2 idle | 1 | 0 | 1 | 0 |\n")
    assert made[0] == ("run", "--profile", "quick", "--label", "idle0-a", "--size", "1M")
    assert "--rerun" in made[2]


def test_a_kept_campaign_is_judged_again_without_measuring(commands, tmp_path, monkeypatch, capsys):
    made, codes = commands
    names = ("idle0-a", "idle0-b", "idle0-b-again", "idle10-a", "idle10-b", "idle2-a", "idle2-b",
             "loaded0-a", "loaded0-b", "idle11-a", "other")  # fmt: skip
    for name in names:
        (tmp_path / "results" / "cpu" / name).mkdir(parents=True)
    codes.update({("gate", "loaded0-a"): 3})
    assert main(monkeypatch, "--judge", tmp_path) == 0
    assert [words[2] for words in made] == ["idle0-a", "idle2-a", "idle10-a", "loaded0-a"]
    assert not any("--rerun" in words or words[0] == "run" for words in made)
    assert rows(capsys) == ["| 3 idle | 3 | 0 | 0 | 0 |", "| 1 loaded | 0 | 0 | 1 | 0 |"]
