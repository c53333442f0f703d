"""Remedies as a script: it does nothing unread, and no name in a capture becomes a command."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.judge.findings import Finding
from linkgauge.report.fix_script import fix_script

TOUCH = "touch hacked"
HOSTILE = f"x\n{TOUCH}\n$({TOUCH})`{TOUCH}`'\"; {TOUCH}; \r\x1b[2J\u2028{TOUCH}"


def finding(*remedy, subject="x:0", **more):
    return Finding("clocks", "warn", subject, "they are low", "kernels are slow", remedy, **more)


def confirmed(script):
    assert script.count("confirmed=no\n") == 1
    return script.replace("confirmed=no\n", "confirmed=yes\n")


def sh(script, folder):
    return subprocess.run(
        ["sh"], input=script, cwd=folder, capture_output=True, text=True, timeout=30
    )


def test_unread_it_does_nothing_and_fails(tmp_path):
    done = sh(fix_script([finding("echo done")], "a machine"), tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "confirmed=yes" in done.stderr


def test_confirmed_it_runs_the_commands(tmp_path):
    done = sh(confirmed(fix_script([finding("echo done", "see to it")], "x")), tmp_path)
    assert (done.returncode, done.stdout) == (0, "done\n")


def test_what_needs_root_or_something_filled_in_is_marked():
    lines = fix_script([finding("sudo setpci -s PORT x", "sudo dmesg", "top")], "x").splitlines()
    assert lines[lines.index("# why: kernels are slow") + 1 :] == [
        "# needs root, fill in PORT:",
        "# sudo setpci -s PORT x",
        "# needs root:",
        "sudo dmesg || true",
        "# by hand:",
        "# top",
    ]


@pytest.mark.parametrize(
    "line", ["virsh shutdown a", "virsh start a", "sudo systemctl enable a.service"]
)
def test_what_a_person_does_at_the_right_moment_is_a_comment(line):
    assert f"\n# {line}\n" in fix_script([finding(line)], "x")
    assert "\nvirsh dumpxml a || true\n" in fix_script([finding("virsh dumpxml a")], "x")


def test_a_remedy_is_written_once():
    script = fix_script([finding("echo a"), finding("echo a", subject="x:1", cells=("c",))], "x")
    assert script.count("\necho a") == 1
    other = Finding("memlock", "note", "host", "less", remedy=("echo a",))
    assert "# as clocks of x:0, above" in fix_script([finding("echo a"), other], "x")


@pytest.mark.parametrize("command", ["echo {}", "virsh start {}", "# {}", "{}", "[Unit]"])
def test_hostile_text_becomes_no_command(tmp_path, command):
    remedy = (command.format(HOSTILE), HOSTILE)
    script = fix_script([finding(*remedy, subject=HOSTILE)], HOSTILE)
    assert sh(confirmed(script), tmp_path).returncode == 0
    assert not list(tmp_path.iterdir())


@given(st.lists(st.text() | st.sampled_from(["\n", "$(id)", "`id`", "';", '"', "[Unit]", "#"])))
def test_all_but_known_commands_are_comments(parts):
    text = "".join(parts)
    script = fix_script([finding(text, f"# {text}", subject=text)], text)
    own = script.partition("\nfi\n")[2]
    assert all(line.startswith("#") or not line for line in own.splitlines())
