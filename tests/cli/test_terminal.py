"""What arrives on a terminal while a command runs, and what stays there."""

import os
import re
import shutil
import subprocess
import sys
import time

import pytest

from terminal_kit import BAR, GARBAGE, LIMIT, on_terminal

QUICK = ["--machine", "ppu-8", "--profile", "quick"]
COMMANDS = {
    "run": ["run", *QUICK],
    "scale": ["scale", "all_reduce", "--machine", "ppu-8"],
    "latency": ["latency", "--machine", "ppu-8"],
    "copy": ["copy", "sim:0 -> sim:1 by ce", "--machine", "ppu-8", "--samples", "4000"],
    "traffic": ["traffic", "--machine", "ppu-8", "--duration", "1s"],
    "vary": [
        "vary", "--prefix", "device_to_device_memcpy_read", *QUICK,
        "--engine", "ce", "--engine", "sm", "--rounds", "8",
    ],
}  # fmt: skip
AI = ["ai", "inference", "--model", "10m", "--batch", "1", "--prompt", "16"]
SLOW = ["run", "--machine", "dgx-h200-8"]
"""A run that takes seconds, so that it can be interrupted."""


def wide(shown, columns):
    """Lines that are wider than the window, but for a single word, which is not broken."""
    return [line for line in shown.lines if len(line) > columns and " " in line.strip()]


def clean(shown, columns):
    for screen in (*shown.bars, shown.last):
        assert not GARBAGE.search(screen)
    assert not wide(shown, columns)
    assert not BAR.search(shown.last), "the bar is gone"
    assert "━" not in shown.last


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize(
    "arguments", [*COMMANDS.values(), pytest.param(AI, marks=pytest.mark.ai)], ids=[*COMMANDS, "ai"]
)
def test_a_bar_is_one_line_and_leaves_nothing(tmp_path, arguments, columns):
    shown = on_terminal(*arguments, columns=columns, cwd=tmp_path)
    assert shown.code == 0
    assert shown.had_bar
    clean(shown, columns)


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "--machine", "ppu-8"],
        ["watch", "--machine", "ppu-8", "--probes", "2", "--every", "1s", "--budget", "0.9"],
        ["doctor", "--machine", "ppu-8"],
    ],
    ids=["check", "watch", "doctor"],
)
def test_a_command_without_a_bar_is_as_clean(tmp_path, arguments):
    """Its lines are events or a condition, one line each however long, so that programs read
    them."""
    shown = on_terminal(*arguments, columns=80, cwd=tmp_path)
    assert shown.code == 0
    clean(shown, 1 << 30)


def test_a_run_ends_with_its_verdict_in_five_lines(tmp_path):
    slow = ["--fault", "slow sim:0 rate=25%", "--machine", "dgx-h200-8", "--profile", "quick"]
    shown = on_terminal("run", *slow, columns=110, cwd=tmp_path)
    assert shown.code == 1
    ends = shown.last.rpartition("\n\n")[2].splitlines()
    assert [line.partition(":")[0] for line in ends] == [
        "verdict", "why", "on server", "next", "results",
    ]  # fmt: skip
    assert not re.search(r"^(unseen|precision|skip|note)\b", shown.last, re.MULTILINE)
    more = on_terminal("show", "-v", "default", cwd=tmp_path).last
    assert re.search(r"^skip ", more, re.MULTILINE)
    assert re.search(r"^undetectable: ", more, re.MULTILINE)


def test_no_more_time_is_left_than_the_budget_has(tmp_path):
    """Without it, the first repetitions of a host's many cells would promise minutes."""
    host = ["run", "--backend", "host", "--size", "4M", "--no-report", "--budget", "8s"]
    shown = on_terminal(*host, cwd=tmp_path)
    left = [
        found for screen in shown.bars for found in re.findall(r" left (\d+):(\d\d):(\d\d)", screen)
    ]
    assert left
    assert all(int(h) * 3600 + int(m) * 60 + int(s) <= 8 for h, m, s in left)
    clean(shown, 100)


def test_no_color_leaves_the_bar_and_takes_its_colours(tmp_path):
    shown = on_terminal(*COMMANDS["scale"], cwd=tmp_path, NO_COLOR=1)
    assert shown.had_bar
    clean(shown, 100)
    assert not re.search(r"\x1b\[[0-9;]*(3[0-7]|38;|9[0-7])[0-9;]*m", shown.written)


def test_a_dumb_terminal_gets_plain_lines(tmp_path):
    shown = on_terminal(*COMMANDS["run"], cwd=tmp_path, TERM="dumb")
    assert shown.code == 0
    assert not shown.had_bar
    assert "\x1b" not in shown.written
    assert not shown.written.startswith(("\r", "\n"))
    clean(shown, 100)


def test_a_document_on_stdout_leaves_the_bar_on_the_terminal(tmp_path):
    """The document's lines are as long as they are."""
    one = ["all_to_one_write_ce", "device_to_device_memcpy_read_ce", "--samples", "300"]
    shown = on_terminal(*COMMANDS["run"], *one, "--json", cwd=tmp_path)
    assert shown.had_bar
    clean(shown, 1 << 30)


def test_what_others_print_stands_above_the_bar(tmp_path):
    """A remark while the bar is shown: fault words of a simulated machine that hang a worker."""
    shown = on_terminal(*COMMANDS["run"], "--fault", "crash sim:1", cwd=tmp_path)
    assert shown.had_bar
    clean(shown, 100)


def test_a_bar_survives_ctrl_c(tmp_path):
    shown = on_terminal(*SLOW, cwd=tmp_path, when="/", typed=b"\x03")
    assert shown.code == 130
    clean(shown, 100)
    assert "interrupted" in shown.last
    assert "--resume" in shown.last


@pytest.mark.parametrize("columns", [70, 50, 30])
def test_a_bar_becomes_narrower_with_the_window(tmp_path, columns):
    shown = on_terminal(*SLOW, when="/", narrowed=columns, cwd=tmp_path)
    assert shown.code == 0
    for screen in (*shown.bars, shown.last):
        assert not GARBAGE.search(screen)
    assert not BAR.search(shown.last)
    assert len([line for line in shown.lines if BAR.search(line) and len(line) <= columns]) > 1


def _tmux(*words):
    return subprocess.run(
        ["tmux", "-L", f"linkgauge-{os.getpid()}", *words],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


def test_a_terminal_that_folds_lines_keeps_no_part_of_the_bar(tmp_path):
    """Most terminals fold what stands there when their window becomes narrower; tmux does. It moves
    lines at the top of its screen out of sight, so some lines come first, as a shell's prompt."""
    if shutil.which("tmux") is None:
        if "tmux" in os.environ.get("LINKGAUGE_REQUIRE", ""):
            pytest.fail("tmux is not installed")
        pytest.skip("tmux is not installed (Debian: tmux)")
    done = tmp_path / "done"
    command = (
        "seq 3; "
        + " ".join([sys.executable, "-m", "linkgauge", *SLOW])
        + f"; echo $? >{done}; sleep 600"
    )
    _tmux("new-session", "-d", "-s", "one", "-x", "100", "-y", "30", "-c", str(tmp_path), command)
    try:
        end = time.monotonic() + LIMIT
        while not BAR.search(shown := _tmux("capture-pane", "-p")):
            assert time.monotonic() < end
            time.sleep(0.05)
        assert "━" in shown
        _tmux("resize-window", "-x", "40")
        while not done.exists():
            assert time.monotonic() < end
            time.sleep(0.1)
        last = _tmux("capture-pane", "-p", "-S", "-")
    finally:
        _tmux("kill-server")
    assert "verdict:" in last
    assert "━" not in last
    assert not BAR.search(last)
