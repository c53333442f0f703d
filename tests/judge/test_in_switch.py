"""All-reduces of eight GPUs whose switch could reduce: what rings reach is named with its cost,
and a health check's limit (AzNHC asks for 460 GB/s of H100) fails."""

import json

import pytest
import yaml
from msgspec.structs import replace

from command_kit import called
from judge_kit import run_of
from linkgauge.backends.sim.description import load
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import evidence_of
from linkgauge.judge.verdict import judge
from linkgauge.model.notes import Remark

REDUCES = yaml.safe_load(load("dgx-h200-8")[1])
RINGS = {name: value for name, value in REDUCES.items() if name != "collectives"}
OFF = (Remark("NCCL 2.28.9"), Remark("NCCL_NVLS_ENABLE=0"))


def found(tree, notes=(), hypervisor=None):
    tree = {**tree, "host": {**tree["host"], "hypervisor": hypervisor}}
    run = run_of("eight", yaml.safe_dump(tree), "all_reduce", samples=3)
    results = [
        replace(each, cells=tuple(replace(cell, notes=notes) for cell in each.cells))
        for each in run.results
    ]
    findings = diagnose(evidence_of(judge(replace(run, results=tuple(results)))))
    return [each for each in findings if each.check == "in-switch"]


def test_rings_are_named_with_what_they_cost():
    (finding,) = found(RINGS)
    assert (finding.severity, finding.subject) == ("warn", "nvswitch")
    assert "NVLS" in finding.found
    assert "476 GB/s" in finding.found
    assert not found(REDUCES)


def test_what_was_switched_off_is_a_note_and_a_guest_is_told_how_to_switch_it_on():
    (finding,) = found(RINGS, OFF)
    assert (finding.severity, "is set" in finding.found) == ("note", True)
    (guest,) = found(RINGS, OFF, "KVM")
    assert "NCCL_NVLS_ENABLE=1" in guest.remedy[0]


@pytest.mark.parametrize(("tree", "code"), [(RINGS, 1), (REDUCES, 0)])
def test_a_health_checks_limit_tells_rings_from_reductions(tree, code, tmp_path):
    (tmp_path / "m.yml").write_text(yaml.safe_dump(tree))
    limits = tmp_path / "limits.yml"
    limits.write_text('limits: [{benchmark: all_reduce, limit: ">= 460 GB/s"}]')
    done = called(
        "run", "all_reduce", "--machine", tmp_path / "m.yml", "--limits", limits, "--samples", 3,
        "--profile", "full", "--label", "a", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == code
    findings = json.loads(called("doctor", "a", "--json", cwd=tmp_path).stdout)["findings"]
    assert any(one["check"] == "in-switch" for one in findings) == bool(code)
