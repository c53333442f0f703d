"""Each shipped fault is found by the right check, with the right part named; healthy machines give
no alarm. campaign.py tells what is drawn; nothing but the evidence is judged.

LINKGAUGE_CAMPAIGN=full tries each kind of fault in each kind of place of every shipped machine, and
406 healthy machines, in place of some of them; LINKGAUGE_SEED=TEXT draws others."""

import os
from collections import Counter, defaultdict

import pytest

from campaign import CAUSES, DEGRADED, PLACES, RIGHT, STRIKES, healthy_trial, trial
from machine_kit import CLUSTERS, OF_HOSTS

FULL = os.environ.get("LINKGAUGE_CAMPAIGN") == "full"
ALWAYS = {"link-speed", "target-speed"}
"""Checks that fail on a machine whose link is degraded as shipped."""


def faulted():
    """Kind, place and machine. What ends its cells takes its time: in the small campaign there is
    one of each."""
    machines = OF_HOSTS
    for one, kind in enumerate(RIGHT):
        for other, place in enumerate(PLACES):
            if FULL:
                yield from ((kind, place, machine) for machine in (*machines, "fat-tree-64"))
            elif kind not in STRIKES or other == one % 2:
                yield kind, place, machines[(one + 2 * other) % len(machines)]


def is_alarm(machine, finding):
    """A failure, or a cause named, where there is none."""
    if machine in DEGRADED and finding.check in ALWAYS:
        return False
    return finding.severity == "fail" or (
        finding.check in CAUSES and finding.severity in ("fail", "warn")
    )


@pytest.fixture(scope="module")
def matrix():
    """Counts of what was found, by what was wrong; and what went wrong, for the failure's text."""
    counts, misses = defaultdict(Counter), []
    for kind, place, machine in faulted():
        drawn = trial(kind, place, machine, 0)
        if drawn is None:
            continue
        said = "nothing" if drawn.first is None else drawn.first.check
        wrong = not drawn.right and drawn.first is not None
        counts[kind][f"{said} (other part)" if wrong else said] += 1
        if not drawn.right:
            misses.append((machine, drawn.fault, drawn.first))
    for number in range(29 if FULL else 1):
        for machine in (*OF_HOSTS, *CLUSTERS):
            findings = healthy_trial(machine, number).findings
            alarms = [finding for finding in findings if is_alarm(machine, finding)]
            counts["healthy"][alarms[0].check if alarms else "nothing"] += 1
            misses += [(machine, "healthy", alarm) for alarm in alarms[:1]]
    print(f"\n{'fault':<10}{'runs':>6}  found")
    for kind, found in counts.items():
        shown = ", ".join(f"{name} {count}" for name, count in found.most_common())
        print(f"{kind:<10}{found.total():>6}  {shown}")
    return counts, misses


def test_each_fault_is_told_by_the_right_check_with_the_right_part(matrix):
    counts, misses = matrix
    wrong = [miss for miss in misses if miss[1] != "healthy"]
    runs = sum(found.total() for kind, found in counts.items() if kind != "healthy")
    assert len(wrong) <= 0.01 * runs, wrong
    assert runs >= (200 if FULL else 20)


def test_healthy_machines_give_no_alarm(matrix):
    counts, misses = matrix
    false = [miss for miss in misses if miss[1] == "healthy"]
    assert len(false) <= 0.01 * counts["healthy"].total(), false
