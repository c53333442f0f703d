"""Equivalent runs held against each other: does the gate fail for nothing on this machine?

Measures pairs of runs of the profile `quick`, and gates the second run of each pair against the
first with `--rerun 1`: `--pairs` on the idle machine, then `--loaded` pairs with a process that
loads it in alternate minutes. Prints a line for each pair and a table, also after Ctrl-C, of what
was measured by then; exits with 1 if any pair failed with 1, with 130 after Ctrl-C. `--judge` gates
the runs that an earlier campaign kept once more, without measuring anything again.

    python3 bench/gate_aa.py --pairs 20 --loaded 10 --keep FOLDER
    python3 bench/gate_aa.py --judge FOLDER
"""

from __future__ import annotations

import argparse
import json
import re
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
FAILED = ("regression", "missing", "worse status")
_SIDE = re.compile(r"(?P<kind>idle|loaded)(?P<number>\d+)-(?P<side>[ab])")


class Pair(NamedTuple):
    """The gate's exit code, and how many cells had each verdict."""

    code: int
    verdicts: Counter[str]
    reasons: tuple[str, ...]


Taken = dict[str, list[Pair]]
"""By kind of pair."""


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
    if done.returncode == 130:
        raise KeyboardInterrupt
    if done.returncode not in (0, 1):
        raise RuntimeError(f"run {label} ended with {done.returncode}: {done.stderr}")


def gated(folder: Path, name: str, *options: str) -> Pair:
    """The second run of a pair against the first."""
    sides = ("--baseline", f"{name}-a", "--current", f"{name}-b")
    done = linkgauge(folder, "gate", *sides, *options, "--json")
    if done.returncode == 130:
        raise KeyboardInterrupt
    if done.returncode not in (0, 1, 3):
        raise RuntimeError(f"gate {name} ended with {done.returncode}: {done.stderr}")
    cells = json.loads(done.stdout)["cells"]
    failed = [one for one in cells if one["verdict"] in FAILED]
    reasons = tuple(
        f"{one['verdict']}: {one['cell']['benchmark']} [{one['cell']['row']}, "
        f"{one['cell']['column']}]" + (f" -{one['loss']:.1%}" if one["loss"] else "")
        for one in failed
    )
    return Pair(done.returncode, Counter(one["verdict"] for one in cells), reasons)


def said(name: str, number: int, pair: Pair) -> None:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in pair.verdicts.items())
    print(f"{name} {number}: exit {pair.code}; {counts}", *pair.reasons, sep="\n  ", flush=True)


def take(folder: Path, kind: str, count: int, options: Sequence[str], taken: Taken) -> None:
    """So many pairs, each kept in `taken` as soon as it is judged."""
    for number in range(count):
        for side in ("a", "b"):
            measure(folder, f"{kind}{number}-{side}", options)
        pair = gated(folder, f"{kind}{number}", "--rerun", "1")
        taken.setdefault(kind, []).append(pair)
        said(kind, number, pair)


def kept_pairs(folder: Path) -> list[tuple[str, int]]:
    """The pairs of which both runs are kept below a folder, in the order of measuring."""
    sides: dict[tuple[str, int], set[str]] = {}
    for path in folder.glob("results/*/*"):
        if found := _SIDE.fullmatch(path.name):
            sides.setdefault((found["kind"], int(found["number"])), set()).add(found["side"])
    return sorted(pair for pair, own in sides.items() if own == {"a", "b"})


def judge(folder: Path, taken: Taken) -> None:
    for kind, number in kept_pairs(folder):
        pair = gated(folder, f"{kind}{number}")
        taken.setdefault(kind, []).append(pair)
        said(kind, number, pair)


def table(taken: Taken) -> None:
    print("\n| pairs | exit 0 | exit 1 | exit 3 | regressions |\n|---|---|---|---|---|")
    for name, pairs in taken.items():
        codes = Counter(pair.code for pair in pairs)
        lost = sum(pair.verdicts["regression"] for pair in pairs)
        print(f"| {len(pairs)} {name} | {codes[0]} | {codes[1]} | {codes[3]} | {lost} |")


def campaign(given: argparse.Namespace, options: Sequence[str], taken: Taken) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = (given.keep or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        take(folder, "idle", given.pairs, options, taken)
        if given.loaded:
            with loading(given.processes):
                take(folder, "loaded", given.loaded, options, taken)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0], epilog="Other options are those of linkgauge run."
    )
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--loaded", type=int, default=10)
    parser.add_argument("--processes", type=int, default=1, help="that load the machine")
    parser.add_argument("--keep", type=Path, help="keep the runs below this folder")
    parser.add_argument("--judge", type=Path, help="gate the runs kept there again, measure none")
    given, options = parser.parse_known_args()
    taken: Taken = {}
    interrupted = False
    try:
        if given.judge is None:
            campaign(given, options, taken)
        else:
            judge(given.judge.resolve(), taken)
    except KeyboardInterrupt:
        interrupted = True
        print("\ninterrupted: what was judged until then", file=sys.stderr)
    if not taken:
        print("no pair was judged", file=sys.stderr)
        return 130 if interrupted else 4
    table(taken)
    if interrupted:
        return 130
    return int(any(pair.code == 1 for pairs in taken.values() for pair in pairs))


if __name__ == "__main__":
    sys.exit(main())
