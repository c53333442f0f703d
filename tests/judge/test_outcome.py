"""What a run comes to: the exit code of every command that shows it, and the findings to report."""

import pytest
from msgspec.structs import replace

from doctor_kit import GOOD, card, inventory, machine, measured
from linkgauge.judge.compare import earlier
from linkgauge.judge.outcome import outcome_of
from linkgauge.judge.verdict import judge
from linkgauge.model.documents.result import Run
from linkgauge.model.notes import Profiled
from linkgauge.model.ranks import Rank
from linkgauge.model.settings import Settings

WELL = inventory()
FAILING = inventory(cards=(card(remap_pending=True),))
WARNED = inventory(cards=(card(throttled=("hardware slowdown",)),))
LOCKED = inventory(cards=(card(locked_clock=1e9, max_clock=2e9),))


def run(what=WELL, finished="f", **more):
    return Run(id="1", label="l", command=(), started="s", finished=finished,
               machine=machine(what), settings=Settings(sizes=()),
               results=(measured(**more),))  # fmt: skip


OTHER = card(memory="cuda:1", pci="0000:03:00.0", remap_pending=True)
POWERSAVE = inventory(host=replace(GOOD, governor="powersave"))


@pytest.mark.parametrize(
    ("judged", "reported"),
    [
        (run(WARNED), ["clocks"]),
        (run(LOCKED), []),
        (run(LOCKED, verdict="low", engine="sm"), ["locked-clock"]),
        # Clocks do not slow copy engines.
        (run(LOCKED, verdict="low"), []),
        (run(FAILING), ["row-remap"]),
        # Only trouble is told, and failures of parts that were measured.
        (run(POWERSAVE), []),
        (run(POWERSAVE, verdict="low"), ["governor"]),
        (run(inventory(cards=(card(), OTHER))), []),
    ],
)
def test_what_is_reported_after_a_run(judged, reported):
    assert [finding.check for finding in outcome_of(judged).findings] == reported


@pytest.mark.parametrize("judged", [run(verdict="low"), run(FAILING), run(WARNED)])
def test_figures_alone_or_under_a_profiler_are_not_judged(judged):
    outcome = outcome_of(judged, verdict=False)
    assert (outcome.code, outcome.findings, outcome.unjudged) == (0, (), "")
    (result,) = judged.results
    cells = tuple(replace(cell, notes=(Profiled("nsys"),)) for cell in result.cells)
    outcome = outcome_of(replace(judged, results=(replace(result, cells=cells),)))
    assert (outcome.code, outcome.findings, outcome.verdict) == (0, (), False)
    one = next(device for device in judged.machine.all_devices if device.pci)
    both = tuple(replace(one, memory=f"cuda:0@{rank}") for rank in range(2))
    ranks = tuple(Rank(number, "box", 1) for number in range(2))
    assert outcome.unjudged == "a profiler took part"
    sharing = replace(judged.machine, devices={"cuda": both}, ranks=ranks)
    assert outcome_of(replace(judged, machine=sharing)).unjudged == "ranks took turns on one device"
    assert outcome_of(judge(replace(judged, machine=sharing))).findings == ()
    apart = (both[0], replace(both[1], pci="0000:77:00.0"))
    assert not replace(sharing, devices={"cuda": apart}).shared


SEVERITIES = {(0, 0.9): "note", (0, 0.7): "warn", (1, 0.9): "warn", (3, 0.7): "fail"}


@pytest.mark.parametrize(("since", "share"), SEVERITIES)
def test_a_part_without_peers_is_judged_by_earlier_runs(since, share):
    told = earlier.Earlier(5, since, (earlier.EarlierLoss(0, 1e9, share),))
    found = {each.check: each.severity for each in outcome_of(replace(run(), earlier=told)).found}
    assert found["slow"] == SEVERITIES[since, share]
