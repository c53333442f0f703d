"""Healthy machines, asked as people ask: each command ends well, and its verdict is ok or not judged.

    .venv/bin/python tests/healthy_kit.py [MACHINE…]

tries all products and shipped machines, or those named, and lists every answer that is an alarm.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import yaml

from command_kit import called
from linkgauge.backends.sim.description import load, parse_description
from linkgauge.backends.sim.hardware import build
from linkgauge.model.operations.collective import COLLECTIVE_NAMES
from machine_kit import OF_HOSTS
from product_names import USUAL

DEGRADED = ("vm-degraded",)
"""Machines that are not healthy as shipped."""
MACHINES = (*USUAL, *(name for name in OF_HOSTS if name not in DEGRADED))
SEEDS = (1, 2, 3)
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
def devices(machine: str) -> int:
    return len(build(parse_description(load(machine)[1])).devices)


def noisy(machine: str, seed: int) -> str:
    """The machine's YAML with another seed of its noise."""
    return yaml.safe_dump({**yaml.safe_load(load(machine)[1]), "seed": seed})


def counts(machine: str) -> list[int]:
    """2, 4 and all devices, as far as there are so many."""
    every = devices(machine)
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
    for name in TOLD:
        for number in numbers:
            yield "judge", f"{name}_perf", "-b", "256M", "-e", "1G", "-f", "4", "-g", str(number)


def everything(machines: Sequence[str] = MACHINES, seeds: Sequence[int] = SEEDS) -> list[Asked]:
    return [
        Asked(machine, seed, words)
        for machine in machines
        for words in questions(machine)
        for seed in seeds
    ]


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
        done = called("judge", "told.txt", cwd=folder)
    else:
        done = called(command, *words, "--machine", file, cwd=folder)
    verdicts = _VERDICT.findall(done.stdout)
    if done.returncode == 0 and verdicts and set(verdicts) <= {"ok", "not judged"}:
        return None
    return f"exit {done.returncode}, {verdicts}:\n{done.stdout[-3000:]}{done.stderr[-800:]}"


def main() -> None:
    os.environ |= {"LINKGAUGE_NO_REPORT": "1", "LINKGAUGE_HISTORY": "none"}
    every, wrong = everything(sys.argv[1:] or MACHINES), 0
    with TemporaryDirectory() as folder:
        for asked in every:
            if (what := alarm(asked, Path(folder))) is not None:
                wrong += 1
                print(f"{asked}: {what}", flush=True)
    print(f"{wrong} alarms of {len(every)} answers of {len({a.machine for a in every})} machines")


if __name__ == "__main__":
    main()
