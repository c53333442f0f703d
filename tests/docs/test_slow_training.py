"""The page for a slow training: its commands run or are refused as it says."""

import re
from pathlib import Path

from command_kit import called
from docs_kit import ROOT, in_blocks, words

PAGE = (ROOT / "docs/slow-training.md").read_text()


def test_a_described_machine_is_refused_with_what_to_run_instead(tmp_path):
    done = called("ai", "training", "--machine", "8 x H100 SXM")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "AI workloads are not simulated" in line
    assert line.endswith("linkgauge scale all_reduce --machine '8 x H100 SXM'")
    scale = words(line.rpartition("linkgauge scale ")[2])
    told = called("scale", *scale, "--size", "64K", "--no-report", cwd=tmp_path)
    assert told.returncode in (0, 1), told.stderr


def test_the_option_that_is_refused_is_not_offered():
    assert "--machine" not in called("ai", "--help").stdout


def test_the_first_command_judges_a_log(tmp_path):
    texts = re.findall(r"```text\n(.*?)```", (ROOT / "docs/judge.md").read_text(), re.DOTALL)
    Path(tmp_path / "nccl.log").write_text(texts[0])
    Path(tmp_path / "topo.txt").write_text(texts[1])
    first = next(one for one in in_blocks(PAGE) if one.startswith("judge"))
    done = called(*words(first.partition("#")[0]), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "6 ok" in done.stdout


def test_the_simulated_examples_find_the_link(tmp_path):
    (scale,) = (
        words(one) for one in in_blocks(PAGE) if one.startswith("scale") and "--fault" in one
    )
    done = called(*scale, "--size", "64M", "--no-report", cwd=tmp_path)
    assert done.returncode == 1, done.stdout
    assert "sim:2" in done.stdout
