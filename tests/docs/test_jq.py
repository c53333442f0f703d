"""The line of jq that docs/ci.md gives prints what is wrong with a run, and nothing of a healthy
one."""

import shlex
import shutil
import subprocess

import pytest

from command_kit import called
from docs_kit import PAGES

CASES = {
    "finding": ("--machine", "vm-degraded"),
    "low": ("--machine", "dgx-h200-8", "--fault", "slow sim:3 rate=25%"),
    "bytes": ("--machine", "dgx-h200-8", "--fault", "flip sim:3"),
    "healthy": ("--machine", "dgx-h200-8"),
}


def lines():
    (page,) = (page for page in PAGES if page.name == "ci.md")
    text = page.read_text("utf-8")
    block = next(one for one in text.split("```sh\n")[1:] if "\njq -r " in one)
    export, _, jq = block.partition("```")[0].partition("\njq ")
    return export, f"jq {jq}".strip()


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@pytest.mark.parametrize("case", CASES)
def test_the_documented_line_prints_what_is_wrong(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    export, jq = lines()
    few = ("host_to_device_memcpy_ce", "--profile", "quick", "--no-report")
    done = called("run", *few, *CASES[case], "--label", "job", LINKGAUGE_HISTORY="none")
    assert done.returncode == (0 if case == "healthy" else 1), done.stderr
    words = shlex.split(export)
    assert called(words[1], "job", *words[2:]).returncode == 0
    printed = subprocess.run(
        shlex.split(jq), capture_output=True, text=True, check=True, timeout=60
    ).stdout.splitlines()
    kinds = {line.split("\t")[0] for line in printed}
    cells = [line for line in printed if "host_to_device_memcpy_ce\t" in line]
    if case == "healthy":
        assert printed == []
    elif case == "finding":
        assert "fail" in kinds
        (cell,) = cells
        assert cell.split("\t")[4] == "degraded", (
            "the finding fails this run, the link's figure fits"
        )
    else:
        (cell,) = cells
        assert cell.split("\t")[2:4] == ["0", "3"]
