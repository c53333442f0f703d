"""Alike runs held against each other: does the gate fail for nothing on this machine?

Measures pairs of runs of the profile `quick`, and gates the second run of each pair against the
first with `--rerun 1`: `--pairs` on the idle machine, then `--loaded` pairs with a process that
loads it in alternate minutes. Prints a line for each pair and a table; exits with 1 if any pair
failed with 1.

    python3 bench/gate_aa.py --pairs 20 --loaded 10 --keep FOLDER
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

MINUTE = 60.0
BUSY = "while True: pass"


class Pair(NamedTuple):
    """The gate's exit code, and how many cells had each verdict."""

    code: int
    verdicts: Counter[str]
    reasons: tuple[str, ...]


def linkgauge(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "linkgauge", *words)
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@contextmanager
def loading(processes: int) -> Iterator[None]:
    """Loads the machine by so many processes in every other minute, beginning with one that is
    loaded."""
    over = threading.Event()

    def alternate() -> None:
        while not over.is_set():
            busy = [subprocess.Popen((sys.executable, "-c", BUSY)) for _ in range(processes)]
            over.wait(MINUTE)
            for process in busy:
                process.kill()
                process.wait()
            over.wait(MINUTE)

    thread = threading.Thread(target=alternate)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def measure(folder: Path, label: str, options: Sequence[str]) -> None:
    done = linkgauge(folder, "run", "--profile", "quick", "--label", label, *options)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"run {label} ended with {done.returncode}: {done.stderr}")


def take_pair(folder: Path, name: str, options: Sequence[str]) -> Pair:
    for side in ("a", "b"):
        measure(folder, f"{name}-{side}", options)
    sides = ("--baseline", f"{name}-a", "--current", f"{name}-b")
    done = linkgauge(folder, "gate", *sides, "--rerun", "1", "--json")
    if done.returncode not in (0, 1, 3):
        raise RuntimeError(f"gate {name} ended with {done.returncode}: {done.stderr}")
    document = json.loads(done.stdout)
    cells = document["cells"]
    failed = [one for one in cells if one["verdict"] in ("regression", "missing", "worse status")]
    reasons = tuple(f"{one['verdict']}: {one['cell']['benchmark']}" for one in failed)
    return Pair(done.returncode, Counter(one["verdict"] for one in cells), reasons)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--loaded", type=int, default=10)
    parser.add_argument("--processes", type=int, default=1, help="that load the machine")
    parser.add_argument("--keep", type=Path, help="keep the runs below this folder")
    given, options = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (given.keep or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        taken = {"idle": [take(folder, "idle", n, options) for n in range(given.pairs)]}
        if given.loaded:
            with loading(given.processes):
                loaded = [take(folder, "loaded", n, options) for n in range(given.loaded)]
            taken["loaded"] = loaded
    print("\n| pairs | exit 0 | exit 1 | exit 3 | regressions |\n|---|---|---|---|---|")
    for name, pairs in taken.items():
        codes = Counter(pair.code for pair in pairs)
        lost = sum(pair.verdicts["regression"] for pair in pairs)
        print(f"| {len(pairs)} {name} | {codes[0]} | {codes[1]} | {codes[3]} | {lost} |")
    return int(any(pair.code == 1 for pairs in taken.values() for pair in pairs))


def take(folder: Path, kind: str, number: int, options: Sequence[str]) -> Pair:
    pair = take_pair(folder, f"{kind}{number}", options)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in pair.verdicts.items())
    print(f"{kind} {number}: exit {pair.code}; {counts}", *pair.reasons, sep="\n  ", flush=True)
    return pair


if __name__ == "__main__":
    sys.exit(main())
