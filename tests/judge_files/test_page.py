"""What docs/judge.md begins with is what the command answers."""

import re
from pathlib import Path

from command_kit import called

PAGE = Path(__file__).parents[2] / "docs/judge.md"


def test_first_log_has_the_answer_that_the_page_shows(tmp_path):
    log, topology, answer = re.findall(
        r"^```\w+\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )[:3]
    (tmp_path / "nccl.log").write_text(log)
    (tmp_path / "topo.txt").write_text(topology)
    command, _, shown = answer.partition("\n")
    tried = called(*command.split()[2:], cwd=tmp_path, COLUMNS=100)
    assert tried.returncode == 0
    assert tried.stdout.rstrip() == shown.rstrip()
