"""Each shipped fault is found by the right check, with the right part named; healthy machines give
no alarm. The machines' efficiencies and noise are drawn at random, and nothing but the evidence is
judged. LINKGAUGE_CAMPAIGN=full runs 216 faulted and 203 healthy machines instead of 21 and 7."""

import os
from collections import Counter, defaultdict

import pytest

from campaign import CAUSES, DEGRADED, KINDS, trial
from linkgauge.backends.sim.description import shipped

FULL = os.environ.get("LINKGAUGE_CAMPAIGN") == "full"
ALWAYS = {"link-speed", "target-speed"}
"""Checks that fail on a machine whose link is degraded as shipped."""


def faulted():
    """Kind, machine and seed of each faulted run. Hangs and crashes take their time: in the small
    campaign one of each."""
    machines = shipped()
    rounds = 24 if FULL else 2
    for place, kind in enumerate(KINDS):
        slow = kind in ("hang", "crash", "lost", "nomem")
        for seed in range(1 if slow and not FULL else rounds):
            yield kind, machines[(place + seed) % len(machines)], seed
    if not FULL:
        for seed, kind in enumerate(("slow", "drift", "jitter", "stall", "flip", "slow", "drift")):
            yield kind, machines[seed], 100 + seed


def healthy():
    for seed in range(29 if FULL else 1):
        for machine in shipped():
            yield machine, seed


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
    for kind, machine, seed in faulted():
        (fault, right), found, _ = trial(kind, machine, seed)
        said = "nothing" if found is None else found.check
        counts[kind][said if right or found is None else f"{said} (other part)"] += 1
        if not right:
            misses.append((machine, seed, fault, found))
    for machine, seed in healthy():
        _, _, findings = trial(None, machine, seed)
        alarms = [finding for finding in findings if is_alarm(machine, finding)]
        counts["healthy"][alarms[0].check if alarms else "nothing"] += 1
        misses += [(machine, seed, "healthy", alarm) for alarm in alarms[:1]]
    print(f"\n{'fault':<10}{'runs':>6}  found")
    for kind, found in counts.items():
        shown = ", ".join(f"{name} {count}" for name, count in found.most_common())
        print(f"{kind:<10}{found.total():>6}  {shown}")
    return counts, misses


def test_each_fault_is_told_by_the_right_check_with_the_right_part(matrix):
    counts, misses = matrix
    wrong = [miss for miss in misses if miss[2] != "healthy"]
    runs = sum(found.total() for kind, found in counts.items() if kind != "healthy")
    assert len(wrong) <= 0.01 * runs, wrong


def test_healthy_machines_give_no_alarm(matrix):
    counts, misses = matrix
    false = [miss for miss in misses if miss[2] == "healthy"]
    assert len(false) <= 0.01 * counts["healthy"].total(), false


def test_all_kinds_of_fault_are_tried(matrix):
    from linkgauge.backends.sim.faults import FAULTS

    assert set(matrix[0]) == {*FAULTS, "healthy"}
