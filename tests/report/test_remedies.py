"""Remedies: what is a command, and what can never become one."""

import re
import shlex

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from linkgauge.judge.remedies import DEVICE, PORT_ABOVE
from linkgauge.report.remedies import Command, Prose, WrittenFile, as_command, steps
from linkgauge.report.remedy_text import remedy_block
from report.test_output import text_console


def shown(*remedy, width=80, indent=4):
    console = text_console(width=width)
    console.print(remedy_block(remedy, indent))
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize(
    "line",
    [
        "sudo lspci -vv | grep -E '^[0-9a-f]|LnkSta:'",
        "sudo setpci -s 0000:00:01.1 CAP_EXP+30.w=5:f",
        "cat /proc/cmdline; sudo dmesg | grep -iE 'iommu|dmar'",
        "echo 1024 | sudo tee /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
        "virsh setmem 'a; reboot' SIZE --live",
        "virsh dumpxml NAME > NAME.xml; linkgauge vm NAME.xml",
        'sudo setpci -s "${PORT:?}" CAP_EXP+10.w=20:20',
        'sudo lspci -vv -s "$DEVICE" | grep -E LnkSta:',
        DEVICE,
        PORT_ABOVE,
    ],
)
def test_commands_stay_as_they_are(line):
    assert as_command(line) == Command(as_command(line).words)
    assert as_command(line).line == line
    assert as_command(f"{line}  # so") == Command(as_command(line).words, "so")


@pytest.mark.parametrize(
    "line",
    [
        "see to power and cooling",
        "linkgauge run with these benchmarks once more; sudo dmesg | grep x; take it out",
        "virsh shutdown NAME, then virsh start NAME: the definition takes effect",
        "# sudo lspci -vv",
        "sudo lspci -s 0; rm -rf /",
        "sudo lspci -s $(reboot)",
        "sudo lspci -s `reboot`",
        "sudo lspci -s x && reboot",
        "sudo lspci -s x & reboot",
        "sudo lspci -s x\nreboot",
        "ls (reboot)",
        "echo b | sudo tee /proc/sysrq-trigger",
        "echo x | sudo tee /sys/kernel/mm/../../../etc/passwd",
        "cat x > /etc/passwd",
        "cat x > a > b",
        "sudo -u nobody ls",
        "sudo",
        "ls |",
        "",
        'sudo "$DEVICE"',
        'echo "$HOME"',
        'cat x"$DEVICE"',
        'echo x | sudo tee "$DEVICE"',
        'cat x > "${PORT:?}"',
        "sudo setpci -s $PORT CAP_EXP+10.w=20:20",
        "DEVICE=x",
        "PORT=$(reboot)",
        f"{DEVICE}; reboot",
        "cat \ue000",
    ],
)
def test_all_else_is_prose(line):
    assert as_command(line) is None


SNIPPETS = st.sampled_from([
    "sudo", "lspci", "rm", "-rf", "/", "$(reboot)", "`x`", ";", "|", "&&", "\n", "'", '"', "#", ">",
    "tee", "x y", "\\", "~", "*", "(", "reboot", " ", '"$DEVICE"', '"${PORT:?}"', "$DEVICE",
])  # fmt: skip


@given(st.lists(SNIPPETS | st.text(max_size=4), max_size=8).map(" ".join))
@example("ls ';' rm")
def test_whatever_a_line_holds_only_known_programs_start(text):
    command = as_command(text)
    if command is None:
        return
    assert "\n" not in command.line
    known = command.line.replace('"$DEVICE"', "").replace('"${PORT:?}"', "")
    assert not re.search(r"[$`\\]", known)
    for part in re.split(r"(?:^|\s)\|\s|;(?:\s|$)", " ".join(command.words)):
        program = shlex.split(part.replace("sudo ", "", 1))[0]
        assert program not in ("rm", "reboot", "x")


def test_a_unit_is_a_file_at_the_path_named_before_it():
    lines = ("# At each start, /etc/systemd/system/x.service:", "[Unit]", "A=b", "", "# then: go")
    assert list(steps(lines)) == [
        Prose("At each start, /etc/systemd/system/x.service:"),
        WrittenFile("/etc/systemd/system/x.service", ("[Unit]", "A=b", "")),
        Prose("then: go"),
    ]


def test_a_block_can_be_pasted_prose_and_files_are_comments():
    assert shown("look at it", "sudo dmesg  # all", "[Unit]", "A=b") == [
        "    # look at it",
        "    sudo dmesg  # all",
        "    #     [Unit]",
        "    #     A=b",
    ]


def test_a_long_command_goes_on_behind_a_backslash_and_its_comment_stands_before_it():
    block = shown("sudo dmesg | grep -iE 'xid|aer' x  # what the kernel says", width=30)
    assert block == [
        "    # what the kernel says",
        "    sudo dmesg | grep -iE \\",
        "      'xid|aer' x",
    ]
    joined = " ".join(line.strip().removesuffix(" \\") for line in block[1:])
    assert joined == "sudo dmesg | grep -iE 'xid|aer' x"


def test_each_line_of_long_prose_is_a_comment():
    block = shown("see to power and cooling, reset it", width=24)
    assert block == ["    # see to power and", "    # cooling, reset it"]
