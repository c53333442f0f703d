"""Machines described from recorded runs without a third of their benchmarks, drawn at random: what
they say of the figures left out.

    .venv/bin/python tests/described_kit.py [-j PROCESSES] [--draws N]

prints, of all sets, how many figures come out as measured of those of which a figure of the same
memories, engine and way was left in: within 5 % between and within devices, 10 % with the host; and
how many of the others are called unknown."""

import argparse
import gzip
import random
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from math import comb

from campaign import SEED
from linkgauge.judge.findings import evidence_of
from linkgauge.rooms.describe.measured import fitted, is_near
from linkgauge.rooms.describe.run_figures import figures_of, simulated
from linkgauge.rooms.judge_files.descriptions import describe, facts_of
from recorded_kit import DATA, run_of

SETS = ("recorded/1xh200", "recorded/1xh200-b", "recorded/2xh200", "recorded/16cpus",
        "recorded/2cpus", "runs-2xH100")  # fmt: skip
NEAR = {"devices": 0.05, "host": 0.10}
UNKNOWN = "unknown"


@cache
def known(name, number):
    """The parts of the machine of one of a set's healthy runs, and the run's figures."""
    files = sorted((DATA / name).glob("[0-9]*.json.gz"))
    path = files[number % len(files)]
    run = run_of(gzip.decompress(path.read_bytes()), path)
    return dict(describe("x", [facts_of(evidence_of(run))]).tree), figures_of(run)


def place_of(figure):
    memories = [memory for each in figure.cell.transfers for memory in each.named]
    return "host" if any(one.is_host or one.is_cpu for one in memories) else "devices"


def drawn(name, number):
    """How often the machine of a set's run without a third of the benchmarks is right, by where."""
    structure, figures = known(name, number)
    dice = random.Random(f"{SEED} {name} {number}")
    names = sorted({one.benchmark for one in figures})
    out = set(dice.sample(names, len(names) // 3))
    left, kept = ([one for one in figures if (one.benchmark in out) == is_out]
                  for is_out in (True, False))  # fmt: skip
    kinds = {one.known_by for one in kept}
    found = Counter()
    for one, other in zip(left, simulated(fitted(structure, kept)[0], left), strict=True):
        place = place_of(one)
        if one.known_by in kinds:
            found[place, is_near(one, other, NEAR[place])] += 1
        else:
            found[UNKNOWN, other is None] += 1
    return found


def exact(hits, of, level=0.95):
    """The interval of Clopper and Pearson for a rate."""

    def tail(rate, counts):
        return sum(comb(of, n) * rate**n * (1 - rate) ** (of - n) for n in counts)

    def solved(counts, rises):
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = (low + high) / 2
            is_small = tail(middle, counts) < (1 - level) / 2
            low, high = (middle, high) if is_small == rises else (low, middle)
        return low

    least = solved(range(hits, of + 1), True) if hits else 0.0
    return least, solved(range(hits + 1), False) if hits < of else 1.0


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("-j", type=int, default=1)
    asked.add_argument("--draws", type=int, default=12)
    given = asked.parse_args()
    tasks = [(name, number) for name in SETS for number in range(given.draws)]
    with ProcessPoolExecutor(given.j) as pool:
        found = sum(pool.map(drawn, *zip(*tasks, strict=True)), Counter())
    for place in (*NEAR, UNKNOWN):
        hits, of = found[place, True], found[place, True] + found[place, False]
        low, high = exact(hits, of)
        print(f"{place}: {hits} of {of}, {hits / of:.1%} ({low:.1%} to {high:.1%})")


if __name__ == "__main__":
    main()
