"""What a run comes to: the exit code of every command that shows it, and the findings to report."""

import pytest
from msgspec.structs import replace

from doctor_kit import GOOD, card, inventory, machine, measured
from linkgauge.judge.compare import earlier
from linkgauge.judge.outcome import outcome_of
from linkgauge.judge.verdict import judge
from linkgauge.model.documents.result import Expected, Run
from linkgauge.model.notation import parse_transfers
from linkgauge.model.notes import Profiled
from linkgauge.model.ranks import Rank
from linkgauge.model.settings import Settings
from linkgauge.report.blocks import text_of
from linkgauge.report.sections.opening import tally
from linkgauge.report.words.expectations import nothing_wrong
from linkgauge.report.words.worst import worst_of

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


@pytest.mark.parametrize(
    ("verdict", "word", "code"),
    [
        ("ok", "ok", 0), ("perhaps low", "warn", 0), ("degraded", "ok", 0), ("low", "low", 1),
        ("high", "ok", 0), ("not judged", "not judged", 0),
    ],
)  # fmt: skip
def test_each_verdict_on_a_figure_has_one_exit_code(verdict, word, code):
    """A degraded figure has that of the finding about its link, and here is none."""
    judged = run(verdict=verdict)
    outcome = outcome_of(judged)
    assert (outcome.word, outcome.code) == (word, code)
    if verdict == "perhaps low":
        expected = Expected(achievable=80e9)
        (result,) = judged.results
        cells = tuple(replace(cell, expected=expected) for cell in result.cells)
        shown = replace(judged, results=(replace(result, cells=cells),))
        wrong = worst_of(shown, outcome_of(shown))
        assert text_of(wrong.what).startswith("warn perhaps low host_to_device_memcpy_ce")
        assert " 62% of what is expected" in text_of(wrong.what)


def test_a_run_that_was_interrupted_is_judged_by_its_figures():
    assert (outcome_of(run(finished=None)).word, outcome_of(run(finished=None)).code) == ("ok", 130)
    skipped = outcome_of(run(status="skip", reason="r", verdict="not judged"))
    assert (skipped.word, skipped.code) == ("not judged", 4)
    failed = outcome_of(run(status="error", reason="r", verdict="not judged"))
    assert (failed.word, failed.code) == ("fail", 3)


def test_a_cell_beyond_a_limit_is_not_counted_among_those_with_wrong_bytes():
    """Both have the status `fail`; the kind of error tells them apart."""
    for kind, words in (("limit", "failed"), ("wrong-bytes", "with wrong bytes")):
        failed = run(status="fail", reason="r", kind=kind, verdict="not judged")
        names = {tile.name for tile in tally(failed, outcome_of(failed))}
        assert names & {"failed", "with wrong bytes"} == {words}


def test_the_sentence_of_a_well_run_counts_what_each_figure_is_held_against():
    """By arithmetic, by peers (pairs of CPUs apart), and by nothing."""
    (result,) = run().results
    (one,) = result.cells
    peers = replace(one, expected=Expected(achievable=50e9, peers=5))
    cpus = replace(peers, transfers=parse_transfers("cpu:0 -> cpu:1"))
    unknown = replace(one, verdict="not judged")
    cells = (one, one, peers, *[cpus] * 3, unknown)
    said = nothing_wrong(replace(run(), results=(replace(result, cells=cells),)))
    assert said == (
        "nothing wrong was found; of 7 cells: 2 compared with what was calculated, "
        "3 pairs of CPUs and 1 others compared only with each other, 1 not judged"
    )
    assert nothing_wrong(run()) == "nothing wrong was found"
