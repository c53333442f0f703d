"""What recorded runs beside other programs say of the rule that others on the CPUs explain low
figures of the host's memory (docs/recordings.md)."""

from collections import defaultdict
from statistics import median

import pytest

from linkgauge.judge.blame.cases import cases_of
from linkgauge.judge.doctor.busy import is_host_taken
from linkgauge.judge.findings import evidence_of
from recorded_kit import RECORDED, recorded_at

LOST = 0.75


def key(case):
    return case.result.benchmark, case.cell.row, case.cell.column, case.result.size


def cases(path):
    """The figures of a recorded run that cross the host's memory, and its CPUs."""
    run = recorded_at(path)
    found = [
        case
        for case in cases_of(evidence_of(run))
        if case.cell.headline and case.result.better == "higher" and case.cell.load is not None
        if any(memory.is_host for one in case.cell.transfers for memory in one.memories)
    ]
    return found, run.machine.host.cpus


@pytest.mark.parametrize(
    ("folder", "beside", "explained"),
    [("2cpus", "busy-others", True), ("1xh200-b", "busy-memory", True),
     ("1xh200-b", "busy-pcie", False), ("1xh200-b", "busy-sm", False)],
)  # fmt: skip
def test_others_explain_what_they_slow(folder, beside, explained):
    alone = defaultdict(list)
    for path in sorted((RECORDED / folder).glob("[0-9]*.json.gz"))[:5]:
        for case in cases(path)[0]:
            alone[key(case)].append(case.figure)
    said = []
    for path in sorted((RECORDED / folder).glob(f"{beside}*.json.gz"))[:6]:
        found, cpus = cases(path)
        said += [
            is_host_taken(case, cpus)
            for case in found
            if key(case) in alone and case.figure < LOST * median(alone[key(case)])
        ]
    assert len(said) > 3
    assert {*said} == {explained}
