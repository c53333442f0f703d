"""What took the CPUs' time while cells were measured comes before what figures suggest."""

import pytest
from msgspec.structs import replace

from doctor_kit import GOOD, found, inventory, machine, measured, the
from linkgauge.judge import doctor
from linkgauge.judge.findings import Evidence, Finding
from linkgauge.judge.outcome import outcome_of
from linkgauge.model.load import Load
from linkgauge.model.notes import Imprecise
from linkgauge.model.result import Run
from linkgauge.model.settings import Settings

CALM = Load(1.0, others=0.1, process="agent", pid=7)
BUSY = Load(1.0, others=2.88, process="python3", pid=8685)
"""Of four CPUs."""


def under(*loads, imprecise=0):
    """A result whose cells were measured under these loads."""
    (cell,) = measured().cells
    notes = Imprecise(0.05, 0.4, 9)
    cells = tuple(
        replace(cell, column=str(n), load=load, notes=(notes,) if n < imprecise else ())
        for n, load in enumerate(loads)
    )
    return replace(measured(), cells=cells)


def test_other_programs_that_keep_the_cpus_busy_are_named_first_with_what_is_uncertain():
    result = under(*[BUSY] * 33, imprecise=27)
    first = found(inventory(), None, result)[0]
    assert (first.check, first.severity) == ("busy", "warn")
    assert "(python3 8685) used 72% of the CPUs while 33 cells were measured" in first.found
    assert "27 of these figures are uncertain" in first.found
    assert first.remedy == ("# Stop them and run again:", "ps -fp 8685")


def test_it_comes_before_failures_and_is_reported_after_the_run():
    failing = inventory(host=replace(GOOD, allowed_cpus=(2, 3)))
    assert [f.check for f in found(failing, None, under(BUSY))][:2] == ["busy", "allowed"]
    run = Run(id="1", label="l", command=(), started="s", finished="f", settings=Settings(sizes=()),
              machine=machine(inventory()), results=(under(BUSY),))  # fmt: skip
    outcome = outcome_of(run)
    assert ([f.check for f in outcome.findings], outcome.code) == (["busy"], 0)


@pytest.mark.parametrize(
    "loads",
    [
        [CALM] * 10,
        [None] * 10,
        [*[CALM] * 19, BUSY],
        [Load(1.0, others=0.24)] * 10,
    ],
    ids=["own services", "unknown", "a job that came and went", "less than a quarter of a CPU"],
)
def test_a_machine_with_services_of_its_own_is_not_busy(loads):
    assert found(inventory(), None, under(*loads)) == ()


def test_the_programs_that_used_most_are_named_without_end():
    loads = [Load(1.0, others=2.0 + pid / 10, process="cc1plus", pid=pid) for pid in range(1, 7)]
    said = the("busy", found(inventory(), None, under(*loads))).found
    assert "(cc1plus 6, cc1plus 5, cc1plus 4)" in said


def test_a_process_that_is_not_visible_has_no_name():
    busy = the("busy", found(inventory(), None, under(Load(1.0, others=2.0))))
    assert busy.found.startswith("other programs used 50% of the CPUs")
    assert busy.remedy[1].startswith("ps -eo pcpu")


@pytest.mark.parametrize("check", ["stall", "scatter"])
@pytest.mark.parametrize("taken", ["busy", "steal"])
def test_it_explains_what_is_unsteady_and_nothing_else(monkeypatch, check, taken):
    name = "host_to_device_memcpy_ce (0, 0)"

    def unsteady(_):
        yield Finding(check, "warn", "cuda:0", "it varies", "a link retrains", (), (name,))
        yield Finding("slow", "warn", "cuda:0", "it is slow", "", (), (name,))

    monkeypatch.setattr(doctor, "CHECKS", (unsteady, *doctor.CHECKS))
    stolen = replace(inventory(), host=replace(GOOD, steal=0.3))
    by_host = Load(1.0, stolen=2.0)
    before, load = (inventory(), BUSY) if taken == "busy" else (stolen, by_host)
    findings = doctor.diagnose(evidence(before, under(load)), doctor.CHECKS)
    assert findings[0].check == taken
    assert the_one(check, findings).explained_by == (f"{taken} of host",)
    assert the_one("slow", findings).explained_by == ()


def evidence(before, result):
    return Evidence(machine(before), None, (result,))


def the_one(check, findings):
    (finding,) = (each for each in findings if each.check == check)
    return finding


def test_a_little_steal_is_a_note():
    little, much = (
        the("steal", found(inventory(host=replace(GOOD, steal=s)))) for s in (0.03, 0.1)
    )
    assert (little.severity, much.severity) == ("note", "warn")
