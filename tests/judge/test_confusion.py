"""Each shipped fault is found by the right check, with the right part named; healthy machines give
no alarm. campaign.py tells what is drawn; nothing but the evidence is judged."""

from collections import Counter, defaultdict

import pytest

from campaign import CAUSES, DEGRADED, PLACES, RIGHT, STRIKES, healthy_trial, trial
from campaigns import FULL, trials
from machine_kit import CLUSTERS, OF_HOSTS

ALWAYS = {"link-speed", "target-speed"}
"""Checks that fail on a machine whose link is degraded as shipped."""


def faulted():
    """Kind, place and machine. What ends its cells takes its time: of a few, there is one each."""
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
    for number in range(trials("doctor: healthy machines give an alarm")):
        for machine in (*OF_HOSTS, *CLUSTERS):
            findings = healthy_trial(machine, number).findings
            alarms = [finding for finding in findings if is_alarm(machine, finding)]
            counts["healthy"][alarms[0].check if alarms else "nothing"] += 1
            misses += [(machine, "healthy", alarm) for alarm in alarms[:1]]
    for kind, found in counts.items():
        shown = ", ".join(f"{name} {count}" for name, count in found.most_common())
        print(f"{kind:<10}{found.total():>6}  {shown}")
    return counts, misses


def test_each_fault_is_told_by_the_right_check_with_the_right_part(matrix, holds):
    counts, misses = matrix
    wrong = [miss for miss in misses if miss[1] != "healthy"]
    runs = sum(found.total() for kind, found in counts.items() if kind != "healthy")
    holds("doctor: a fault is told wrongly", len(wrong), runs)
    assert runs >= trials("doctor: a fault is told wrongly"), wrong


def test_healthy_machines_give_no_alarm(matrix, holds):
    counts, misses = matrix
    false = [miss for miss in misses if miss[1] == "healthy"]
    print(false)
    holds("doctor: healthy machines give an alarm", len(false), counts["healthy"].total())
