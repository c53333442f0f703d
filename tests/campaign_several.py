"""Runs of shipped machines with several faults at once, as campaign.py draws one: two or three
kinds of fault, each of another part (`slow` loses 12 to 60 %). A draw is discarded, and drawn anew,
only if one of its faults, alone or beside the others, changes fewer than two cells by 10 % or in
status: computed from samples, never from verdicts. Of three faults, only that one is drawn anew,
each of them a draw, and after twelve of them the machine, too: not every machine shows such three.
`Tally.discarded` is the share of all that were drawn. Two cells do not tell a trend from a level: a
drift of which no more tell (`campaign.told`) may be called slow. `one(label)` draws again.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

import msgspec
import yaml

from campaign import ATTEMPTS, CAUSES, RIGHT, SEED, Bed, is_right, lost, told
from campaign_scene import LEAST_CELLS, MACHINES, Outcome, Scene, changed, subjects
from linkgauge.backends.sim.hardware import SimLink
from linkgauge.backends.sim.resources import names_of
from linkgauge.judge.doctor import diagnose

PAIRS = tuple(itertools.combinations_with_replacement(RIGHT, 2))


def draw(kinds: Sequence[str], number: int, machines: Sequence[str] = MACHINES) -> Outcome:
    """A run of one of the machines with a fault of each of these kinds, of distinct parts."""
    label = f"{' '.join(kinds)} {number}"
    dice = random.Random(f"{SEED} several {label}")
    discarded = 0
    while True:
        try:
            scene = Scene(dice.choice(machines), kinds, dice)
        except IndexError:  # the machine has too few parts for these faults
            discarded += 1
            continue
        discarded += scene.redraw_hidden(ATTEMPTS if len(kinds) > 2 else 0)
        if scene.hidden() is None:
            return scene.outcome(label, discarded)
        discarded += 1


def draw_both(number: int) -> Outcome:
    """A machine of which one link carries both directions at once 15 to 60 % slower than others of
    its kind, and each of them alone as fast."""
    label = f"both {number}"
    dice = random.Random(f"{SEED} {label}")
    discarded = 0
    while True:
        found = _attempt_both(label, dice, discarded)
        if found is not None:
            return found
        discarded += 1


def _attempt_both(label: str, dice: random.Random, discarded: int) -> Outcome | None:
    machine = dice.choice(MACHINES)
    bed = Bed(machine, dice)
    bed.benchmarks = (
        *bed.benchmarks,
        *(f"{name}_ce" for name in (
            "host_to_device_bidirectional_memcpy", "device_to_host_bidirectional_memcpy",
            "device_to_device_bidirectional_memcpy_read",
            "device_to_device_bidirectional_memcpy_write",
        )),
    )  # fmt: skip
    bed.benchmarks = tuple(dict.fromkeys(bed.benchmarks))
    healthy = bed.run(judged=False)
    devices = set(bed.devices)
    links = [one for one in bed.hardware.links
             if one.kind in ("pcie", "fabric") and devices & {one.a, one.b}]  # fmt: skip
    link = dice.choice(links)
    bed.text = narrowed(bed, link, dice.uniform(0.3, 1.0))
    together = bed.run()
    struck = changed("slow", healthy, together)
    most = max(lost("slow", *both) for both in zip(healthy.cells(), together.cells(), strict=True))
    if len(struck) < LEAST_CELLS or most < 0.15 or not told("slow", healthy, together):
        return None
    if any(len(cell.transfers) == 1 and not cell.transfers[0].both_ways
           for number, cell in enumerate(healthy.cells()) if number in struck):  # fmt: skip
        return None
    findings = diagnose(together)
    names = names_of(link)
    right = {
        f for f in findings
        for each in subjects(f)
        if any(is_right(bed, "slow", name, struck, together, each) for name in names)
    }  # fmt: skip
    wrong = tuple(f for f in findings if f.severity == "fail" and f not in right)
    named = (any(f.severity in ("fail", "warn") for f in right),)
    return Outcome(label, machine, (f"both {link.a}-{link.b}",), named, wrong, discarded, findings)


def narrowed(bed: Bed, link: SimLink, share: float) -> str:
    """The machine's YAML in which this link has a kind of its own, of which both directions
    together carry `share` of twice its rate."""
    tree = yaml.safe_load(bed.text)
    kind = dict(tree["link_kinds"][link.kind_name])
    kind["both"] = f"{2 * link.rate * share / 1e9:.3f} GB/s"
    # What readers show of a link is its kind's name without the number behind it.
    name = link.kind_name.rstrip("0123456789")
    narrow = f"{name}0{link.kind_name.removeprefix(name)}"
    tree["link_kinds"][narrow] = kind
    tree["links"] = [
        {"kind": narrow if one == link else one.kind_name, "pairs": [[one.a, one.b]]}
        for one in bed.hardware.links
    ]
    return yaml.safe_dump(tree)


def noisy_alarms(number: int) -> Outcome:
    """A healthy machine with noise of 0.5 to 3 %."""
    label = f"healthy {number}"
    dice = random.Random(f"{SEED} noisy {label}")
    machine = dice.choice(MACHINES)
    bed = Bed(machine, dice)
    tree = yaml.safe_load(bed.text)
    tree["noise"] = dice.uniform(0.005, 0.03)
    bed.text = yaml.safe_dump(tree)
    findings = diagnose(bed.run())
    wrong = tuple(
        f for f in findings if f.severity == "fail" or (f.check in CAUSES and f.severity == "warn")
    )
    return Outcome(label, machine, (), (True,), wrong, 0, findings)


def outcomes(labels: Iterable[str], processes: int | None = None) -> Iterator[Outcome]:
    if processes == 1:
        yield from map(one, labels)
        return
    with ProcessPoolExecutor(processes or os.cpu_count()) as pool:
        yield from pool.map(one, labels, chunksize=4)


def one(label: str) -> Outcome:
    *kinds, number = label.split()
    if kinds == ["both"]:
        return draw_both(int(number))
    if kinds == ["healthy"]:
        return noisy_alarms(int(number))
    return draw(kinds, int(number))


def pairs(draws: int) -> list[str]:
    return [f"{one} {other} {number}" for number in range(draws) for one, other in PAIRS]


def threes(draws: int) -> list[str]:
    dice = random.Random(f"{SEED} threes")
    return [f"{' '.join(dice.choices(tuple(RIGHT), k=3))} {number}" for number in range(draws)]


def numbered(label: str, draws: int) -> list[str]:
    return [f"{label} {number}" for number in range(draws)]


class Tally(msgspec.Struct, frozen=True):
    """What came of draws. `discarded` is the share of all that were drawn."""

    title: str
    runs: int
    whole: int
    harmless: int
    wrong: int
    discarded: float
    misses: tuple[Outcome, ...]

    def __str__(self) -> str:
        return (
            f"{self.title}: {self.runs} draws, all named and nothing wrong {self.whole} "
            f"({self.whole / self.runs:.1%}), one named and nothing wrong {self.harmless} "
            f"({self.harmless / self.runs:.1%}), wrong part in {self.wrong} "
            f"({self.wrong / self.runs:.1%}), discarded {self.discarded:.1%}"
        )


def tally(title: str, found: Iterable[Outcome]) -> Tally:
    found = list(found)
    discarded = sum(each.discarded for each in found)
    drawn = sum(len(each.faults) if len(each.faults) > 2 else 1 for each in found)
    return Tally(
        title,
        len(found),
        sum(each.is_whole for each in found),
        sum(each.is_harmless for each in found),
        sum(bool(each.wrong) for each in found),
        discarded / (discarded + drawn),
        tuple(each for each in found if not each.is_whole),
    )


def report(found: Tally) -> Iterator[str]:
    """The counts, and each miss."""
    yield str(found)
    for miss in found.misses:
        what = [
            f"{'found' if ok else 'MISSED'} {f}"
            for f, ok in zip(miss.faults, miss.named, strict=False)
        ]
        what += [f"WRONG {f.check} {f.subject}: {f.found}" for f in miss.wrong]
        yield f"  {miss.machine}: {'; '.join(what)}"
        yield f"    LINKGAUGE_SEED={SEED}: {miss.label}"
