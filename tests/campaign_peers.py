"""Machines of 4 and 8 devices with the noise of recordings, judged as `check` and `run` judge, and
recorded runs. Each command prints a line: what happened, how often, and the exact interval.

    .venv/bin/python tests/campaign_peers.py faults  -j 2 --draws 400   named, and exit 1
    .venv/bin/python tests/campaign_peers.py small   -j 2 --draws 200   named or perhaps low
    .venv/bin/python tests/campaign_peers.py healthy -j 2 --draws 400   warn or worse
    .venv/bin/python tests/campaign_peers.py recorded -j 2              warn or worse

`--from N` begins with draw N. A draw is a run in this process: no files, workers or pages.
"""

from __future__ import annotations

import random
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from functools import cache
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple

import yaml
from msgspec.structs import replace

from campaigns import interval_of
from judge_kit import run_of
from linkgauge.backends.sim.description import load, parse_description
from linkgauge.backends.sim.hardware import Hardware, build
from linkgauge.engine.profiles import PROFILES
from linkgauge.judge.outcome import doubtful, outcome_of
from linkgauge.judge.verdict import judge
from linkgauge.model.documents.result import Run
from recorded_kit import DATA, recorded_at

NOISES = {
    "host and device": {"samples": "0.2%", "repetitions": "0.5%", "runs": "1.2%",
                        "far": "38%", "by": "12%"},
    "between devices": {"samples": "0.03%", "repetitions": "0.03%", "runs": "0.02%"},
    "within a device": {"samples": "0.03%", "repetitions": "0.12%", "runs": "0.08%"},
    "latency": {"repetitions": "0.4%", "runs": "0.1%"},
}  # fmt: skip
"""Of two H100s in a virtual machine (runs-2xH100), as docs/recordings.md says."""
MACHINES = "4 x H200", "dgx-h200-8"
SETTINGS = {"check": replace(PROFILES["quick"], max_time=0.05), "run": PROFILES["standard"]}
"""How long a cell is sampled; `check` has a second for its cells."""
BENCHMARKS = (
    "host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "device_to_device_memcpy_write_ce",
    "device_local_copy",
)  # fmt: skip
RATES = {"faults": (94, 90, 85, 75), "small": (95, 97)}
BARS = {"faults": 1.0, "small": 1.0, "healthy": 0.01, "recorded": 0.05}
"""All faults, at most one healthy draw in a hundred, at most one recording in twenty."""
SETS = "runs-2xH100", "runs-4xH200", "recorded/*"


class Drawn(NamedTuple):
    """What came of a draw: whether it counts, and what was said."""

    counts: bool
    said: str


@cache
def hardware(machine: str) -> Hardware:
    return build(parse_description(load(machine)[1]))


def fault(machine: str, kind: str, draw: random.Random) -> tuple[str, str]:
    """A fault of a device or of a link of it, and the device."""
    parts = hardware(machine)
    device = draw.choice(parts.devices).name
    links = [link.name for link in parts.links if device in (link.a, link.b)]
    part = draw.choice((device, draw.choice(links)))
    return f"slow {part} rate={draw.choice(RATES[kind])}%", device


def drawn(kind: str, number: int) -> Drawn:
    """The verdict on a run of a machine with this number's noise and fault."""
    draw = random.Random(f"{kind} {number}")
    machine, how = draw.choice(MACHINES), draw.choice([*SETTINGS])
    faults, device = fault(machine, kind, draw) if kind in RATES else ("", "")
    tree = {**yaml.safe_load(load(machine)[1]), "noises": NOISES, "seed": number + 1}
    run = judge(run_of(
        machine, yaml.safe_dump(tree), *BENCHMARKS, settings=SETTINGS[how], doubts=doubtful,
        faults=[faults] if faults else (), size=SETTINGS[how].sizes[0],
    ))  # fmt: skip
    outcome = outcome_of(run)
    found = ", ".join(sorted({f"{one.check} {one.subject}" for one in outcome.findings}))
    said = f"{number}: {machine}, {how}, {faults or 'healthy'}: {outcome.word}, exit {outcome.code}"
    said += f": {found}"
    if kind == "healthy":
        return Drawn(outcome.word not in ("ok", "not judged"), said)
    is_named = device in named(run, (one.subject for one in outcome.findings))
    return Drawn(is_named and (outcome.code == 1 or kind == "small"), said)


def named(run: Run, subjects: Sequence[str]) -> set[str]:
    """The devices in the subjects of findings, and those that all cells behind or low share."""
    cells = [cell for result in run.results for cell in result.cells]
    low = [cell for cell in cells if cell.verdict in ("low", "perhaps low", "degraded")]
    shared = [{str(place) for place in cell.places} for cell in low]
    words = {word for subject in subjects for word in subject.replace("-", " ").split()}
    return words | (set.intersection(*shared) if shared else set())


def recordings() -> list[Path]:
    return [
        path for pattern in SETS for folder in sorted(DATA.glob(pattern)) if folder.is_dir()
        for path in sorted(folder.iterdir())
        if path.name.endswith((".json.gz", ".tar.zst")) and not path.name.startswith("busy")
    ]  # fmt: skip


def of_recording(path: Path) -> Drawn:
    """The verdict on a recorded run of a healthy machine."""
    outcome = outcome_of(judge(recorded_at(path)))
    found = ", ".join(sorted({one.check for one in outcome.findings}))
    said = f"{path.relative_to(DATA)}: {outcome.word}, exit {outcome.code}: {found}"
    return Drawn(outcome.word not in ("ok", "not judged"), said)


def one(asked: tuple[str, int | Path]) -> Drawn:
    kind, what = asked
    return drawn(kind, what) if isinstance(what, int) else of_recording(what)


def campaign(kind: str, draws: range, processes: int = 1) -> list[Drawn]:
    what: Sequence[int | Path] = recordings() if kind == "recorded" else draws
    asked = [(kind, each) for each in what]
    if processes < 2:
        return [*map(one, asked)]
    with Pool(processes) as pool:
        return pool.map(one, asked, chunksize=4)


def main() -> None:
    parser = ArgumentParser(usage=__doc__)
    parser.add_argument("kind", choices=BARS)
    parser.add_argument("-j", type=int, default=1)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--from", type=int, default=0, dest="first")
    asked = parser.parse_args()
    bar = BARS[asked.kind]
    found = campaign(asked.kind, range(asked.first, asked.first + asked.draws), asked.j)
    for each in found:
        if each.counts != (bar == 1.0):
            print(each.said, file=sys.stderr)
    hits = sum(each.counts for each in found)
    least, most = interval_of(hits, len(found))
    print(
        f"{asked.kind}: {hits} of {len(found)} ({hits / len(found):.1%}, 95 % of {least:.1%} to "
        f"{most:.1%}); asked: {'at least' if bar == 1.0 else 'at most'} {bar:.0%}"
    )


if __name__ == "__main__":
    main()
