"""Healthy machines, asked as people ask: each command ends well; its verdict is ok or not judged.

    .venv/bin/python tests/healthy_kit.py [-j N] [--seeds 1,2] [MACHINE…]

asks all products and shipped machines, or those named, and lists every answer that is an alarm.
With -j, N processes ask; the seeds of the noise split the questions among several calls.
"""

from __future__ import annotations

import os
import random
import re
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import yaml

from command_kit import called
from linkgauge.backends.sim.description import load, parse_description
from linkgauge.backends.sim.hardware import build
from linkgauge.model.operations.collective import COLLECTIVE_NAMES
from machine_kit import OF_HOSTS
from product_names import NAMES, USUAL

DEGRADED = ("vm-degraded",)
"""Machines that are not healthy as shipped."""
SHIPPED = tuple(name for name in OF_HOSTS if name not in DEGRADED)
NUMBERS = (2, 8)
"""How many of each product there are, beside the number of its usual server."""
_OTHERS = (f"{number} x {name}" for number in NUMBERS for name in NAMES)
MACHINES = tuple(dict.fromkeys((*USUAL, *SHIPPED, *_OTHERS)))
SEEDS = (1, 2, 3)
LITTLE = 4 << 30
"""Bytes of memory that are too few for buffers of 1 GiB."""
TOLD = ("all_gather", "reduce_scatter")
"""Collectives whose output, as nccl-tests prints it, is judged."""
_VERDICT = re.compile(r"^(?:verdict: +)?(ok|warn|low|fail|not judged|not ok)\b", re.MULTILINE)


class Asked(NamedTuple):
    """A question to a machine, and the seed of its noise."""

    machine: str
    seed: int
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.machine}, seed {self.seed}: {' '.join(self.words)}"


@cache
def memories(machine: str) -> list[int]:
    """The bytes of each device's memory."""
    devices = build(parse_description(load(machine)[1])).devices
    return [int(device.group.memory) for device in devices]


@cache
def noisy(machine: str, seed: int) -> str:
    """The machine's YAML with another seed of its noise."""
    return yaml.safe_dump({**yaml.safe_load(load(machine)[1]), "seed": seed})


def counts(machine: str) -> list[int]:
    """2, 4 and all devices, as far as there are so many."""
    every = len(memories(machine))
    return [count for count in sorted({2, 4, every}) if 2 <= count <= every]


def questions(machine: str) -> Iterator[tuple[str, ...]]:
    """What is asked of a machine. `judge` is of the output of a program of nccl-tests."""
    yield "run", "--profile", "quick"
    yield ("check",)
    numbers = counts(machine)
    if not numbers:
        return
    for name in COLLECTIVE_NAMES:
        yield "scale", name, "--gpus", ",".join(map(str, numbers)), "--size", "256M"
    sizes = ("16M", "64M") if min(memories(machine)) < LITTLE else ("256M", "1G")
    for name in TOLD:
        for number in numbers:
            options = ("-b", sizes[0], "-e", sizes[1], "-f", "4", "-g", str(number))
            yield "judge", f"{name}_perf", *options


def everything(machines: Sequence[str] = MACHINES, seeds: Sequence[int] = SEEDS) -> list[Asked]:
    """Machine by machine and seed by seed: what is built of a description is kept for the next."""
    return [
        Asked(machine, seed, words)
        for machine in machines
        for seed in seeds
        for words in questions(machine)
    ]


def drawn(count: int, draw: random.Random) -> list[Asked]:
    """A few questions to some machines."""
    found = []
    for machine in draw.choices(MACHINES, k=count):
        words = draw.choice(list(questions(machine)))
        found.append(Asked(machine, draw.choice(SEEDS), words))
    return found


def alarm(asked: Asked, folder: Path) -> str | None:
    """What is wrong with the answer; None if it is that of a healthy machine."""
    file = folder / f"{re.sub(r'[^a-z0-9]+', '-', asked.machine.lower())}.yml"
    file.write_text(noisy(asked.machine, asked.seed))
    command, *words = asked.words
    if command == "judge":
        told = called("as", "--machine", file, *words, cwd=folder)
        if told.returncode:
            return f"exit {told.returncode}: {told.stdout[-800:]}{told.stderr[-800:]}"
        (folder / "told.txt").write_text(told.stdout)
        # No text tells of another number than that of the usual server.
        usual = asked.machine in USUAL or asked.machine in SHIPPED
        named = () if usual else ("--machine", asked.machine)
        done = called("judge", "told.txt", *named, cwd=folder)
    else:
        done = called(command, *words, "--machine", file, cwd=folder)
    verdicts = _VERDICT.findall(done.stdout)
    if done.returncode == 0 and verdicts and set(verdicts) <= {"ok", "not judged"}:
        return None
    return f"exit {done.returncode}, {verdicts}:\n{done.stdout[-3000:]}{done.stderr[-800:]}"


def alarms(every: Sequence[Asked], folder: Path) -> Iterator[str]:
    for asked in every:
        if (what := alarm(asked, folder)) is not None:
            yield f"{asked}: {what}"


def of_machine(seeds: Sequence[int], machine: str) -> list[str]:
    """The alarms of one machine, which one process asks everything."""
    with TemporaryDirectory() as folder:
        return [*alarms(everything([machine], seeds), Path(folder))]


def main() -> None:
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-j", type=int, default=1, metavar="N", help="processes (1)")
    usual = ",".join(map(str, SEEDS))
    parser.add_argument("--seeds", default=usual, metavar="1,2", help=f"of the noise ({usual})")
    parser.add_argument("machine", nargs="*", default=MACHINES)
    asked = parser.parse_args()
    seeds = [int(seed) for seed in asked.seeds.split(",")]
    os.environ |= {"LINKGAUGE_NO_REPORT": "1", "LINKGAUGE_HISTORY": "none"}
    wrong = 0
    with ProcessPoolExecutor(asked.j) as pool:
        for what in chain.from_iterable(pool.map(partial(of_machine, seeds), asked.machine)):
            wrong += 1
            print(what, flush=True)
    count, named = len(everything(asked.machine, seeds)), f"{len(asked.machine)} machines"
    print(f"{wrong} alarms of {count} answers of {named}, seeds {asked.seeds}")


if __name__ == "__main__":
    main()
