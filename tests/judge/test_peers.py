"""Cells are held against the cells of the other parts of their kind, by a margin that comes from
how much those differ."""

import pytest
import yaml
from msgspec.structs import replace

from campaign_peers import NOISES, drawn
from judge_kit import run_of
from linkgauge.backends.sim.description import load
from linkgauge.engine.profiles import PROFILES
from linkgauge.judge.findings import evidence_of
from linkgauge.judge.outcome import doubtful, outcome_of
from linkgauge.judge.peers import behind
from linkgauge.judge.verdict import judge
from linkgauge.report.sections.opening import sentence_of

DGX = load("dgx-h200-8")[1]
LINKS = ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce")
PAIRS = ("device_to_device_memcpy_read_ce", "device_to_device_memcpy_write_ce")


def verdicts(run, device):
    """The verdicts of the cells that touch the device, and of the others."""
    cells = [cell for result in judge(run).results for cell in result.cells]
    own = [cell for cell in cells if device in {str(place) for place in cell.places}]
    return {cell.verdict for cell in own}, {cell.verdict for cell in cells if cell not in own}


@pytest.mark.parametrize("devices", [(), ("sim:0", "sim:1", "sim:2", "sim:3")])
@pytest.mark.parametrize("benchmarks", [LINKS, PAIRS])
@pytest.mark.parametrize(
    ("rate", "word"), [("75%", "low"), ("94%", "low"), ("97%", "perhaps low"), ("99.9%", "ok")]
)
def test_a_device_is_low_from_five_percent_on_behind_its_peers(rate, word, benchmarks, devices):
    run = run_of("dgx", DGX, *benchmarks, devices=devices, faults=[f"slow sim:3 rate={rate}"])
    assert verdicts(run, "sim:3") == ({word}, {"ok"})
    assert outcome_of(judge(run)).code == (word == "low")


def test_what_one_benchmark_shows_once_is_measured_once_more():
    run = run_of("dgx", DGX, LINKS[0], faults=["slow sim:3 rate=90%"])
    assert verdicts(run, "sim:3") == ({"ok"}, {"ok"})
    assert [(one.case.cell.column, one.is_sure) for one in behind(evidence_of(run))] == [("3", 0)]
    (asked,) = doubtful(run)
    assert asked.place == ("0", "3")
    (result,) = run.results
    again = [
        replace(cell, samples=cell.samples * 2, repetitions=((6,), (6,))) for cell in result.cells
    ]
    twice = replace(run, results=(replace(result, cells=tuple(again)),))
    assert verdicts(twice, "sim:3") == ({"low"}, {"ok"})


def test_a_figure_that_did_not_come_again_does_not_count():
    run = run_of("dgx", DGX, LINKS[0], faults=["slow sim:3 rate=90%"])
    (result,) = run.results
    well = result.cells[0].samples
    again = [replace(cell, samples=(*cell.samples, *well), repetitions=((6,), (6,)))
             for cell in result.cells]  # fmt: skip
    assert verdicts(replace(run, results=(replace(result, cells=tuple(again)),)), "sim:3")[0] == {
        "ok"
    }


def test_two_others_do_not_show_what_is_usual():
    devices = ("sim:2", "sim:3", "sim:4")
    run = run_of("dgx", DGX, *LINKS, devices=devices, faults=["slow sim:3 rate=90%"])
    assert not behind(evidence_of(run))


@pytest.mark.parametrize("draw", range(4))
def test_peers_that_differ_from_each_other_have_a_wider_margin(draw):
    """A tenth is not much beside links that differ by 6 %."""
    tree = yaml.safe_load(DGX)
    tree["noises"] = {"host and device": {"runs": "6%"}}
    run = run_of("dgx", yaml.safe_dump(tree), *LINKS, faults=["slow sim:3 rate=96%"], draw=draw)
    assert not [one for one in behind(evidence_of(run)) if one.loss < 0.1]


def test_a_link_with_errors_is_held_against_the_best_repetitions_of_its_peers():
    """Other programs slow four in ten repetitions, more than this link is slow."""
    noisy = yaml.safe_dump({**yaml.safe_load(DGX), "noises": NOISES, "seed": 4})
    run = run_of("dgx", noisy, *LINKS, faults=["slow sim:3-host:0 rate=92%"], doubts=doubtful,
                 settings=PROFILES["standard"], size=PROFILES["standard"].sizes[0])  # fmt: skip
    assert verdicts(run, "sim:3") == ({"low"}, {"ok"})
    outcome = outcome_of(judge(run))
    assert (outcome.code, outcome.findings[0].check) == (1, "link-errors")
    unread = replace(run, after=None)
    assert verdicts(unread, "sim:3") == ({"ok"}, {"ok"})
    calm = run_of("dgx", noisy, *LINKS, settings=PROFILES["standard"])
    errors_alone = replace(calm, machine=run.machine, after=run.after)
    assert verdicts(errors_alone, "sim:3") == ({"ok"}, {"ok"})


@pytest.mark.parametrize("number", [47, 86, 94])
def test_a_link_with_errors_whose_copies_stay_behind_is_a_fault(number):
    """Noise hides the loss of each copy, but errors were counted and all copies are behind."""
    one = drawn("faults", number)
    assert "exit 1: link-errors" in one.said
    assert one.counts


def test_what_a_line_below_accuses_is_not_praised():
    run = judge(run_of("dgx", DGX, *LINKS, faults=["slow sim:3 rate=94%"]))
    assert sentence_of(run, outcome_of(run)).endswith(", in part less than their peers")
    run = judge(run_of("dgx", DGX, *LINKS, faults=["slow sim:3 rate=99.9%"]))
    assert outcome_of(run).word == "warn"  # by the clocks that were read
    assert "should" not in sentence_of(run, outcome_of(run))
