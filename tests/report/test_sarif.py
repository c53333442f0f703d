"""Findings as SARIF: what its readers ask of a file. No package has its schema, so the rules are
written down here (OASIS SARIF 2.1.0, section 3), and another program reads it."""

import json

import pytest
from msgspec.structs import replace

from command_kit import called
from linkgauge.judge.findings import Finding
from linkgauge.model.hardware.part import Part
from linkgauge.report.sarif import diagnosis_sarif, run_sarif
from linkgauge.report.sections.findings import Diagnosis
from report.samples import RUN

FOUND = (
    Finding("clocks", "warn", Part("device", "sim:0"), "held down", "slower", ("a", "b")),
    Finding("slow", "fail", "PCIe", "25 %", cells=("c",), explained_by=("clocks of sim:0",)),
    Finding("clocks", "note", Part("device", "sim:1"), "low"),
    Finding("iommu", "unknown", "this machine", "could not be read"),
)


def check(text):
    """The only run of a log that keeps the rules."""
    log = json.loads(text)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(rules) == len(set(rules))
    for one in run["results"]:
        assert rules[one["ruleIndex"]] == one["ruleId"]
        assert one["message"]["text"]
        # 3.27.10: a level other than `none` is of a result that has failed
        assert (one["kind"] == "fail") == (one["level"] in ("error", "warning", "note"))
        assert one["kind"] in ("fail", "open")
        ((place,),) = [each["logicalLocations"] for each in one["locations"]]
        assert set(place) == {"name", "fullyQualifiedName", "kind"}
        assert all(isinstance(text, str) for text in one["partialFingerprints"].values())
    return run


def test_each_finding_is_a_result_of_its_check():
    run = check(diagnosis_sarif(Diagnosis(FOUND)))
    said = [(one["ruleId"], one["level"], one["kind"]) for one in run["results"]]
    assert said == [
        ("clocks", "warning", "fail"), ("slow", "error", "fail"), ("clocks", "note", "fail"),
        ("iommu", "none", "open"),
    ]  # fmt: skip
    first, second, *_ = run["results"]
    assert first["message"]["text"] == "sim:0: held down; slower"
    assert first["locations"][0]["logicalLocations"][0]["kind"] == "device"
    assert first["properties"] == {"remedy": ["a", "b"]}
    assert second["properties"] == {"cells": ["c"], "explained_by": ["clocks of sim:0"]}
    prints = [one["partialFingerprints"]["finding/v1"] for one in run["results"]]
    assert len(set(prints)) == len(prints)


def test_without_findings_it_is_a_log_without_results():
    assert check(diagnosis_sarif(Diagnosis(())))["results"] == []
    assert check(run_sarif(replace(RUN, results=())))["automationDetails"]["id"]


@pytest.mark.parametrize(
    "words",
    [
        ("doctor", "--machine", "vm-degraded"),
        ("copy", "host:0 -> sim:0", "--machine", "dgx-h200-8", "--size", "64M", "--samples", "6",
         "--fault", "slow sim:0 rate=25%"),
    ],
)  # fmt: skip
def test_commands_write_it_and_say_that_it_is_simulated(words):
    done = called(*words, "--sarif")
    assert done.returncode == 1
    run = check(done.stdout)
    assert run["results"]
    assert all(one["message"]["text"].endswith(" SIMULATED") for one in run["results"])
    assert run["properties"]["simulated"] == words[words.index("--machine") + 1]


def test_another_program_reads_it():
    sarif = pytest.importorskip("sarif_pydantic", reason="no wheels of pydantic for this CPU")
    text = diagnosis_sarif(Diagnosis(FOUND, "a-machine"))
    (run,) = sarif.Sarif.model_validate_json(text).runs
    assert [one.level.value for one in run.results] == ["warning", "error", "note", "none"]
    assert [one.rule_id for one in run.results] == [one.check for one in FOUND]
    broken = text.replace('"level": "error"', '"level": "bad"')
    with pytest.raises(ValueError, match="level"):
        sarif.Sarif.model_validate_json(broken)
