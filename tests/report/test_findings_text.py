"""Findings as people and programs see them."""

import json

from msgspec.structs import replace

from linkgauge.judge.findings import Finding
from linkgauge.report.findings_text import Diagnosis, diagnosis_document, finding_lines
from linkgauge.report.run_text import make_console


def finding(number, check="iommu", remedy=("sudo mend",)):
    return Finding(
        check=check, severity="warn", subject=f"sim:{number}", found="[bold]it is off", why="so",
        remedy=remedy, cells=tuple(f"b (0, {n})" for n in range(8)),
    )  # fmt: skip


def shown(*findings):
    console = make_console()
    with console.capture() as text:
        for line in finding_lines(findings):
            console.print(line)
    return text.get()


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
    assert "to mend it: as iommu above" in text


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
