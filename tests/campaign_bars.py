"""The rates that *which part is slow* has to hold, each by one command that prints one line:

    python tests/campaign_bars.py single --draws 400 --seed 1 -j 2

    single    one fault that changes two cells or more by at least 5 %: named, or declared not to
              show, and no part beside it is called a failure
    several   two or three faults: all named, and no part beside them called a failure
    healthy   no part is named
    stalls    every 3rd to 8th sample of a link or device of 2, 4 or 8 stalls: named
    undetectable  a loss that it declares is not named in each of five runs

Machines are those that are shipped, and those of unseen_machines.yml and known.yml. Noise is 0.1 to
1.5 %, as in recordings. Half of the draws see no counter, clock or link state that tells of the
fault. Faults that end a process are those of campaign.py: a draw is one process, and takes about a
second. `--show N` prints draw N.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import msgspec

from campaign import (
    CAUSES,
    DEGRADED,
    KNOWN,
    RATES,
    UNSEEN,
    UNSTEADY,
    Bed,
    changed,
    is_right,
    lost,
    magnitude,
    onset,
)
from campaign_scene import is_end, subjects
from campaign_several import draw as draw_several
from campaigns import interval_of
from linkgauge.judge.blame.cases import cases_of
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import Evidence, Finding
from linkgauge.judge.undetectable import undetectable_of
from linkgauge.model.grouped import tabled
from machine_kit import OF_HOSTS

NOISE, EFFECT = 0.015, 0.05
CALM = tuple(name for name in UNSEEN if name not in ("both", "idle"))
MACHINES = (*(name for name in OF_HOSTS if name not in DEGRADED), *CALM, *KNOWN)
KINDS = ("slow",) * 6 + ("drift", "jitter", "jitter", "stall", "flip")
NOTED = ("stall", "scatter")
NO_PEERS = "no similar part to compare with"
RAILS = ("nodes_rails", "nodes_pairs", "nodes_bisection", "device_local_copy")


class Draw(msgspec.Struct, frozen=True):
    """What came of a draw: for each bar whether it was met, and what to know of a miss."""

    met: dict[str, bool]
    note: str


def bed_of(dice: random.Random, count: int | None = None) -> Bed:
    """A machine with some of its devices; of a cluster, with all."""
    while True:
        bed = Bed(dice.choice(MACHINES), dice, NOISE, NOISE)
        names = [device.name for device in bed.hardware.devices]
        if bed.machine == "rails":
            bed.devices, bed.benchmarks = names, RAILS
        elif count is not None:
            bed.devices = names[:count]
        if count is None or len(bed.devices) == count:
            return bed


def said(findings: Sequence[Finding]) -> str:
    shown = (f for f in findings if f.is_grave or f.check in (*NOTED, "unjudged", "hidden"))
    return "; ".join(f"{f.severity} {f.check} {f.subject}: {f.found}" for f in shown)


def right_of(
    bed: Bed, kind: str, target: str, beside: set[int], evidence: Evidence, found: Sequence[Finding]
) -> list[Finding]:
    """The findings that name the part, or a list of parts that no cell tells apart."""
    return [
        one for one in found
        if one.is_grave and (is_end(bed, kind, target, one) or any(
            is_right(bed, kind, target, beside, evidence, each) for each in subjects(one)))
    ]  # fmt: skip


def declared_of(bed: Bed, evidence: Evidence) -> dict[str, float]:
    """The losses that would not show, by the names of the simulation. A host bridge above several
    switches is none of the links of these, which fewer cells cross."""
    touched = bed.names.touched(evidence)
    crossed = tabled((str(part), case.number, True)
                     for case in cases_of(evidence) for part in case.touched)  # fmt: skip
    return {
        name: loss
        for one in undetectable_of(evidence)
        for part, loss in one.parts.items()
        for name in bed.names.of_subject(part)
        if one.kind != "host bridge" or touched.get(name, set()) >= crossed.get(part, {}).keys()
    }


def is_declared(bed: Bed, kind: str, target: str, loss: float, evidence: Evidence) -> bool:
    """Whether the run says that such a fault of the part would not show, or that a kind of figure
    is unsteady, with nothing to compare it with."""
    if kind in UNSTEADY:
        noted = (f for f in diagnose(evidence) if f.check in NOTED)
        return any(f.severity == "unknown" or NO_PEERS in f.found + f.why for f in noted)
    return kind in RATES and loss <= declared_of(bed, evidence).get(target, 0.0)


def faulted(dice: random.Random, kinds: Sequence[str]) -> tuple[Bed, str, str, str]:
    """A machine, with a fault of one of these kinds and its target."""
    bed, kind = bed_of(dice), dice.choice(kinds)
    healthy = bed.run(judged=False)
    touched = bed.names.touched(healthy)
    cells = sum(1 for _ in healthy.cells())
    places = {}
    for name, of in touched.items():
        if 2 <= len(of) < 0.9 * cells:
            places.setdefault(bed.names.place(name), []).append(name)
    target = dice.choice(sorted(places[dice.choice(sorted(places))]))
    struck = sorted(touched[target])
    size = f"rate={1 - 0.05 * 16 ** dice.random():.3f}"
    if kind != "slow":
        size = magnitude(kind, struck, cells, dice)
    return bed, kind, target, f"{kind} {target} {size}{onset(kind, struck, dice)}"


def single(label: str) -> Draw:
    dice = random.Random(label)
    while True:
        bed, kind, target, fault = faulted(dice, KINDS)
        healthy = bed.run(judged=False)
        evidence = bed.run(fault, read=dice.choice((None, healthy)))
        both = list(zip(healthy.cells(), evidence.cells(), strict=True))
        losses = {n: lost(kind, *each) for n, each in enumerate(both)}
        beside = {n for n, (was, now) in enumerate(both)
                  if was.status != now.status or losses[n] >= EFFECT}  # fmt: skip
        if len(beside) >= 2:
            break
    findings = diagnose(evidence)
    right = right_of(bed, kind, target, beside, evidence, findings)
    false = [f for f in findings if f.severity == "fail" and f.check in CAUSES and f not in right]
    most = max(losses.values(), default=0.0)
    rate = re.search(r" rate=([0-9.]+)", fault)
    loss = 1 - float(rate[1]) if rate else most
    told = bool(right) or is_declared(bed, kind, target, loss, evidence)
    return Draw(
        {"named": bool(right), "named or declared": told, "no false fail": not false},
        f"{bed.machine} {bed.devices} {fault} (up to {most:.0%} of {len(beside)} cells): "
        f"{said(findings)}; UNSEEN {unseen(evidence)}",
    )


def unseen(evidence: Evidence) -> str:
    return "; ".join(" on ".join(own) for of in undetectable_of(evidence) for own in of.losses())


def several(label: str) -> Draw:
    dice = random.Random(label)
    kinds = dice.choices((*RATES, *UNSTEADY, "flip"), k=dice.choice((2, 2, 3)))
    found = draw_several(kinds, dice.randrange(1 << 30), [m for m in MACHINES if m != "rails"])
    wrong = [f"{f.check} {f.subject}: {f.found}" for f in found.wrong if f.check in CAUSES]
    return Draw(
        {"all named": all(found.named), "no false fail": not wrong},
        f"{found.machine} {list(zip(found.faults, found.named, strict=True))} WRONG {wrong}",
    )


def healthy(label: str) -> Draw:
    bed = bed_of(random.Random(label))
    findings = diagnose(bed.run())
    alarms = [f for f in findings
              if f.severity == "fail" or (f.check in CAUSES and f.severity == "warn")]  # fmt: skip
    stalls = any(f.check == "stall" and f.is_grave for f in findings)
    return Draw({"quiet": not alarms, "no stall": not stalls}, f"{bed.machine}: {said(findings)}")


def stalls(label: str) -> Draw:
    """The part has 100 samples or more."""
    dice = random.Random(label)
    while True:
        bed = bed_of(dice, dice.choice((2, 4, 8)))
        calm = bed.run(judged=False)
        touched = bed.names.touched(calm)
        counts = [len(cell.samples) for cell in calm.cells()]
        names = [name for name, of in touched.items()
                 if sum(counts[n] for n in of) >= 100 and len(of) < 0.9 * len(counts)
                 and bed.names.place(name) in ("link", "device")]  # fmt: skip
        if not names:
            continue
        target = dice.choice(sorted(names))
        fault = f"stall {target} {magnitude('stall', [], 0, dice)}"
        evidence = bed.run(fault)
        if len(beside := set(changed("stall", calm, evidence))) >= 2:
            break
    findings = diagnose(evidence)
    named = bool(right_of(bed, "stall", target, beside, evidence, findings))
    of = len(touched[target])
    note = f"{bed.machine} {bed.devices} {fault} ({len(beside)} of {of} cells): {said(findings)}"
    return Draw({"named": named}, note)


def undetectable(label: str) -> Draw:
    """A fault of just less than is declared, in five runs with noise of their own."""
    dice = random.Random(label)
    bed = bed_of(dice)
    evidence = bed.run()
    touched = bed.names.touched(evidence)
    declared = [one for one in sorted(declared_of(bed, evidence).items()) if one[0] in touched]
    if not declared:
        return Draw({"not named in five of five": True}, "")
    target, loss = dice.choice(declared)
    fault = f"slow {target} rate={1 - 0.9 * min(loss, 0.9):.3f}"
    named = 0
    for _ in range(5):
        bed.text = bed.text.replace(f"seed: {seed_of(bed)}", f"seed: {dice.randrange(1 << 30)}")
        now = bed.run(fault, read=evidence)
        found = right_of(bed, "slow", target, touched[target], now, diagnose(now))
        named += bool(found)
    note = f"{bed.machine} {bed.devices} {fault}, declared {loss:.0%}, named {named} of 5"
    return Draw({"not named in five of five": named < 5}, note)


def seed_of(bed: Bed) -> int:
    return next(int(line.split()[1]) for line in bed.text.splitlines() if line.startswith("seed:"))


BARS: dict[str, Callable[[str], Draw]] = {
    one.__name__: one for one in (single, several, healthy, stalls, undetectable)
}


def drawn(bar: str, seed: str, number: int) -> Draw:
    return BARS[bar](f"{seed} {bar} {number}")


def lines(name: str, found: Sequence[Draw]) -> Iterator[str]:
    for what in found[0].met:
        met = sum(draw.met[what] for draw in found)
        low, high = interval_of(met, len(found))
        rate = f"{met / len(found):.1%}, 95% interval {low:.1%} to {high:.1%}"
        yield f"{what} {met} of {len(found)} ({rate})"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("bar", choices=BARS)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--seed", default="0")
    parser.add_argument("-j", type=int, default=1, metavar="N", help="processes")
    parser.add_argument("--show", type=int, metavar="N", help="draw N alone")
    asked = parser.parse_args(arguments)
    if asked.show is not None:
        print(drawn(asked.bar, asked.seed, asked.show))
        return
    one = partial(drawn, asked.bar, asked.seed)
    if asked.j > 1:
        with ProcessPoolExecutor(asked.j) as pool:
            found = list(pool.map(one, range(asked.draws), chunksize=4))
    else:
        found = list(map(one, range(asked.draws)))
    for number, draw in enumerate(found):
        if not all(draw.met.values()):
            missed = ", ".join(what for what, met in draw.met.items() if not met)
            print(f"--show {number} ({missed}) {draw.note}", file=sys.stderr)
    print(f"{asked.bar}: {'; '.join(lines(asked.bar, found))}")


if __name__ == "__main__":
    main()
