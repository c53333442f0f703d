"""Findings as people and programs see them."""

import json

import pytest
from msgspec.structs import replace

from linkgauge.judge.findings import Finding
from linkgauge.report.console import make_console
from linkgauge.report.findings_text import (
    Diagnosis,
    brief_lines,
    diagnosis_document,
    finding_lines,
    groups_of,
)


def finding(number, check="iommu", remedy=("sudo mend",)):
    return Finding(
        check=check, severity="warn", subject=f"sim:{number}", found="[bold]it is off", why="so",
        remedy=remedy, cells=tuple(f"b (0, {n})" for n in range(8)),
    )  # fmt: skip


def printed(lines):
    console = make_console()
    console.width = 1000
    with console.capture() as text:
        for line in lines:
            console.print(line)
    return text.get()


def shown(*findings):
    return printed(finding_lines(findings))


def test_what_is_found_of_several_alike_is_told_once():
    text = shown(*(finding(number) for number in range(8)))
    assert (
        "warn iommu  sim:0, sim:1, sim:2, sim:3, sim:4, sim:5 and 2 more: [bold]it is off" in text
    )
    assert text.count("sudo mend") == 1
    assert "cells: b (0, 0), b (0, 1), b (0, 2), b (0, 3), b (0, 4), b (0, 5) and 2 more" in text
    assert "doctor: 8 warn" in text


def test_all_cells_are_counted_though_a_few_are_named():
    many = replace(finding(0), cells=tuple(f"b (0, {n})" for n in range(28)))
    assert "b (0, 4), b (0, 5) and 22 more\n" in shown(many)


def test_a_remedy_is_told_once():
    text = shown(finding(0), finding(0, "memlock"))
    assert text.count("sudo mend") == 1
    assert "to fix it: as iommu of sim:0, above" in text


CAUSE = replace(finding(3, "clocks"), why="kernels are slow", cells=())
SLOW = replace(finding(3, "slow"), severity="fail", explained_by=(CAUSE.name,))


def test_what_a_finding_explains_stands_below_it():
    text = shown(finding(1), CAUSE, finding(2, "memlock"), SLOW)
    places = [text.index(f"{check}  sim:") for check in ("iommu", "clocks", "slow", "memlock")]
    assert places == sorted(places)


def test_what_explains_may_be_explained_itself():
    last = replace(finding(4, "drift"), explained_by=(SLOW.name,))
    text = shown(last, SLOW, CAUSE)
    places = [text.index(f"{check}  sim:") for check in ("clocks", "drift", "slow")]
    assert min(places) == places[0]
    assert text.count("drift  sim:") == 1


@pytest.mark.parametrize(
    ("remedy", "purpose"),
    [
        (("cat /proc/cmdline", "sudo dmesg"), "to look"),
        (("# On the host:", "ps -e | head"), "to look"),
        (("cpupower frequency-info",), "to look"),
        (("sudo dmesg", "# Reseat the card."), "to fix it"),
        (("sudo cpupower frequency-set -g performance",), "to fix it"),
        (("sudo nvidia-smi -i 0 -rgc",), "to fix it"),
    ],
)
def test_what_only_looks_fixes_nothing(remedy, purpose):
    assert f"    {purpose}:\n" in shown(replace(CAUSE, remedy=remedy))


def test_in_brief_a_finding_has_its_reason_a_single_command_and_what_it_explains():
    one = replace(CAUSE, remedy=("sudo lspci -vv",))
    assert printed(brief_lines(groups_of((one, SLOW)))).splitlines() == [
        "warn clocks  sim:3: [bold]it is off",
        "    why: kernels are slow",
        "    to look: sudo lspci -vv",
        "    explains fail slow  sim:3: [bold]it is off",
    ]


def test_in_brief_warnings_of_one_check_are_told_once():
    several = [replace(finding(n), found=f"{n} times") for n in range(3)]
    groups = groups_of(several)
    assert printed(brief_lines(groups)).splitlines()[::2] == [
        "warn iommu  sim:0: 0 times", "    likewise: sim:1, sim:2",
    ]  # fmt: skip
    assert printed(brief_lines(groups[1:], groups[0])) == "warn iommu  sim:1, sim:2: as below\n"
    failed = groups_of([replace(one, severity="fail") for one in several])
    assert "as below" not in printed(brief_lines(failed[1:], failed[0]))


def logged(number, *lines):
    return replace(finding(number, "kernel-log"), lines=lines)


def test_lines_of_the_kernels_log_are_shown_with_their_own_finding():
    text = shown(logged(0, "1.5 s: NVRM: Xid 79"), logged(1, "2.5 s: NVRM: Xid 79"))
    assert text.count("warn kernel-log") == 2
    assert text.index("log: 1.5 s: NVRM: Xid 79") < text.index("sim:1")
    assert text.index("log: 2.5 s: NVRM: Xid 79") > text.index("sim:1")


def test_of_many_lines_the_first_are_shown():
    text = shown(logged(0, *(f"{n} s: x" for n in range(9))))
    assert "    log: 5 s: x\n    log: 3 more lines\n" in text
    assert "log: 6 s" not in text


def test_no_line_of_a_log_controls_the_terminal():
    text = shown(logged(0, "1 s: \x1b[2J\x9b31m\u202e[bold]x"))
    assert "log: 1 s: �[2J�31m�[bold]x\n" in text


def test_nothing_found_is_said():
    assert shown() == "doctor: nothing found\n"


def test_the_document_holds_every_finding():
    document = json.loads(diagnosis_document(Diagnosis([finding(0)])))
    assert document["schema"] == "linkgauge.findings/1"
    assert document["findings"][0]["remedy"] == ["sudo mend"]
    assert document["findings"][0]["lines"] == []
