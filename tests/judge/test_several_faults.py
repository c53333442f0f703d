"""Two and three faults at once: each is named, and nothing else is said to fail. The draws are
campaign_several.py's; LINKGAUGE_CAMPAIGN=full takes 40 of each pair of kinds and 200 of three,
LINKGAUGE_SEED=TEXT others."""

import os

from campaign_several import numbered, outcomes, pairs, report, tally, threes

FULL = os.environ.get("LINKGAUGE_CAMPAIGN") == "full"
FEW = ["slow slow 0", "slow drift 0", "jitter flip 0", "stall flip 0", "slow jitter 0"]
"""None that ends its cell: on a loaded machine that takes long."""


def checked(title, labels, least_whole, least_harmless):
    found = tally(title, outcomes(labels, None if FULL else 1))
    text = "\n".join(report(found))
    print(text)
    assert found.whole >= least_whole * found.runs, text
    assert found.runs - found.wrong >= least_harmless * found.runs, text
    return found


def test_of_two_faults_both_are_named_and_nothing_else():
    labels = pairs(40) if FULL else FEW
    found = checked("two faults", labels, 0.95 if FULL else 0.6, 0.99 if FULL else 0.8)
    assert found.harmless >= (0.99 if FULL else 0.8) * found.runs
    assert found.discarded <= (0.2 if FULL else 0.5)


def test_of_three_faults_no_wrong_part_is_said_to_fail():
    labels = threes(200) if FULL else ["slow jitter flip 0"]
    checked("three faults", labels, 0.0, 0.97 if FULL else 0.5)


def test_capacity_that_is_short_only_both_ways_at_once_is_found():
    labels = numbered("both", 100 if FULL else 2)
    checked("concurrent capacity", labels, 0.95 if FULL else 0.5, 0.97 if FULL else 0.5)


def test_healthy_machines_that_scatter_give_no_alarm():
    labels = numbered("healthy", 500 if FULL else 4)
    checked("healthy", labels, 0.99 if FULL else 1.0, 0.99 if FULL else 1.0)
