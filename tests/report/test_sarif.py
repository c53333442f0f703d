"""Findings as SARIF: OASIS' schema of it takes them, and they keep what only its text asks."""

import json

import jsonschema
import pytest
from msgspec.structs import replace

from command_kit import called
from linkgauge.judge.findings import Finding
from linkgauge.judge.outcome import Outcome
from linkgauge.model.hardware.part import Part
from linkgauge.report.rows import OneRun
from linkgauge.report.run_texts import diagnosis_sarif, run_sarif
from linkgauge.report.sections.findings import Diagnosis
from report.samples import RUN
from schema_kit import stored

FOUND = (
    Finding("clocks", "warn", Part("device", "sim:0"), "held down", "slower", ("a", "b")),
    Finding("slow", "fail", "PCIe", "25 %", cells=("c",), explained_by=("clocks of sim:0",)),
    Finding("clocks", "note", Part("device", "sim:1"), "low"),
    Finding("iommu", "unknown", "this machine", "could not be read"),
)


SCHEMA = stored(b"(SARIF) Version 2.1.0 JSON Schema")


def check(text):
    """The only run of a log that keeps the rules: those of the schema, and what its text asks."""
    log = json.loads(text)
    SCHEMA.validate(log)
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(rules) == len(set(rules))
    for one in run["results"]:
        assert rules[one["ruleIndex"]] == one["ruleId"]
        # 3.27.10: a level other than `none` is of a result that has failed
        assert (one["kind"] == "fail") == (one["level"] in ("error", "warning", "note"))
        ((place,),) = [each["logicalLocations"] for each in one["locations"]]
        assert set(place) == {"name", "fullyQualifiedName", "kind"}
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
    assert check(run_sarif(OneRun(replace(RUN, results=()), Outcome(4))))["automationDetails"]["id"]


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


def test_the_schema_finds_what_is_wrong():
    text = diagnosis_sarif(Diagnosis(FOUND, "a-machine"))
    with pytest.raises(jsonschema.ValidationError, match="'bad' is not one of"):
        SCHEMA.validate(json.loads(text.replace('"level": "error"', '"level": "bad"')))
