"""Two and three faults at once: each is named, and nothing else is said to fail. The draws are
campaign_several.py's, LINKGAUGE_SEED=TEXT makes others."""

from campaign_several import numbered, outcomes, pairs, report, tally, threes
from campaigns import FULL, known, trials

FEW = ["slow slow 0", "slow drift 0", "jitter flip 0", "stall flip 0", "slow jitter 0"]
"""None that ends its cell: on a loaded machine that takes long."""


def checked(title, labels, holds):
    found = tally(title, outcomes(labels, None if FULL else 1))
    print("\n".join(report(found)))
    if (whole := f"doctor, {title}: all are named and nothing else") in known():
        holds(whole, found.whole, found.runs)
    holds(f"doctor, {title}: no wrong part is named", found.runs - found.wrong, found.runs)
    return found


def count(title):
    return trials(f"doctor, {title}: no wrong part is named")


def test_of_two_faults_both_are_named_and_nothing_else(holds):
    labels = pairs(count("two faults")) if FULL else FEW
    found = checked("two faults", labels, holds)
    holds("doctor, two faults: one is named and nothing wrong", found.harmless, found.runs)
    assert found.discarded <= (0.2 if FULL else 0.5)


def test_of_three_faults_no_wrong_part_is_said_to_fail(holds):
    labels = threes(count("three faults")) if FULL else ["slow jitter flip 0"]
    checked("three faults", labels, holds)


def test_capacity_that_is_short_only_both_ways_at_once_is_found(holds):
    checked("concurrent capacity", numbered("both", count("concurrent capacity")), holds)


def test_healthy_machines_that_scatter_give_no_alarm(holds):
    checked("healthy", numbered("healthy", count("healthy")), holds)
