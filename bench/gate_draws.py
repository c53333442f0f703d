"""How often the gate errs, by draws from recorded runs and from simulated ones.

    bench/gate_draws.py healthy [SET…]   one healthy run of a set against others of it
    bench/gate_draws.py loss [SET…]      the same, where one cell of the current run is slower
    bench/gate_draws.py alike            simulated runs of 300 cells that do not differ

`-j N` uses N processes, `--draws N` makes so many draws a row, `--seed N` begins with another. A
SET is a folder of runs (`NAME.json.gz`, `NAME.tar.zst`, or folders with run.json); default: those
below tests/data. Each run is read once. A draw's baseline of five runs has that of three. A line
has the count, the hits and Clopper and Pearson's 95 % interval.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.machinery import SourceFileLoader
from math import comb
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from linkgauge.judge.compare.gate import GateDocument, hold
from linkgauge.judge.compare.likeness import CellFigure, RunFigures, figures_of
from linkgauge.model.recorded import PathKind
from linkgauge.model.stats.changes import Aim

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
SETS = ("runs-2xH100", "recorded/*")
RATES = (0.97, 0.95, 0.9)
BASELINES = (1, 2, 3, 5, 8)
EQUIVALENT = {"5 against 3": (5, 3, 0), "5 against 1 and --rerun 2": (5, 1, 2)}
Row = tuple[str, ...]
Found = list[tuple[Row, bool]]
"""Rows of the table, and whether the row's event happened in a draw."""

_read = SourceFileLoader("recordings", str(ROOT / "tools" / "recordings")).load_module().runs_in


def exact(hits: int, count: int) -> tuple[float, float]:
    """Returns the 95 % interval of a rate (C. Clopper, E. Pearson, Biometrika 26, 1934)."""

    def tail(share: float, hits: int) -> float:
        """The probability of at least so many hits."""
        return sum(
            comb(count, k) * share**k * (1 - share) ** (count - k) for k in range(hits, count + 1)
        )

    def solved(of: Callable[[float], float]) -> float:
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if of(middle) < 0 else (low, middle)
        return low

    return (
        solved(lambda share: tail(share, hits) - 0.025) if hits else 0.0,
        solved(lambda share: tail(share, hits + 1) - 0.975) if hits < count else 1.0,
    )


def slower(run: RunFigures, at: int, rate: float) -> RunFigures:
    """Returns the run with one cell at so much of its rate."""
    cell = run.cells[at]
    factor = rate if cell.better == "higher" else 1 / rate
    known = {
        of: value * factor
        for of in ("figure", "low", "high", "slow_p95", "slow_p99")
        if (value := getattr(cell, of)) is not None
    }
    return replace(run, cells=(*run.cells[:at], replace(cell, **known), *run.cells[at + 1 :]))


def _gate(current: Sequence[RunFigures], baseline: Sequence[RunFigures]) -> GateDocument:
    return hold(baseline, current, [], Aim())


def healthy(name: str, runs: Sequence[RunFigures], seed: int) -> Found:
    order = random.Random(seed).sample(range(len(runs)), len(runs))
    sizes = [(number, 1) for number in range(1, min(9, len(runs) - 1) + 1)]
    sizes += [(3, 3)] if len(runs) >= 6 else []
    found = Found()
    for number, several in sizes:
        code = _gate([runs[n] for n in order[-several:]], [runs[n] for n in order[:number]]).code
        row = name, f"{number} against {several}"
        found += [((*row, f"exit {of}"), code == of) for of in (1, 3)]
    return found


def loss(name: str, runs: Sequence[RunFigures], seed: int) -> Found:
    dice = random.Random(seed)
    order = dice.sample(range(len(runs)), len(runs))
    current = runs[order[-1]]
    kinds: defaultdict[PathKind, list[int]] = defaultdict(list)
    for at, cell in enumerate(current.cells):
        if cell.path is not None and cell.figure:
            kinds[cell.path].append(at)
    found = Found()
    for kind, ats in sorted(kinds.items()):
        at = dice.choice(ats)
        for rate in RATES:
            lost = slower(current, at, rate)
            for number in BASELINES:
                if number < len(runs):
                    gate = _gate([lost], [runs[n] for n in order[:number]])
                    verdict = _verdict(gate, current.cells[at])
                    row = name, kind, f"{number} against 1", f"at {rate:.0%}"
                    found.append(((*row, "found"), verdict == "regression"))
                    is_said = verdict not in ("ok", "not compared")
                    found.append(((*row, "found, or said to be unknown"), is_said))
    return found


def _verdict(gate: GateDocument, cell: CellFigure) -> str:
    return next((one.verdict for one in gate.cells if one.cell.id == cell.id), "not compared")


def equivalent(name: str, noise: Any, seed: int) -> Found:
    from gate_kit import AIM, Trial  # type: ignore[import-not-found]

    found = Found()
    for design, (before, after, rerun) in EQUIVALENT.items():
        code = Trial(seed, noise, 300).held(before, after, AIM, rerun).code
        found += [((name, design, f"exit {of}"), code == of) for of in (1, 3)]
    return found


def sources(what: str, sets: Sequence[Path]) -> Iterator[tuple[str, Any]]:
    if what == "equivalent":
        from gate_kit import normal, recorded

        yield from (("normal", normal), ("recorded on 2 × H200", recorded()))
        return
    for folder in sets:
        yield folder.name, [figures_of(run) for run in _read(folder)]


_DRAWING = list[Callable[[int], Found]]()
"""What a process draws; it is inherited, because runs are large."""


def _drawn(seed: int) -> Found:
    return _DRAWING[0](seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("healthy", "loss", "equivalent"))
    parser.add_argument("sets", nargs="*", type=Path)
    parser.add_argument("-j", type=int, default=1)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    data = ROOT / "tests" / "data"
    sets = asked.sets or [one for of in SETS for one in sorted(data.glob(of)) if one.is_dir()]
    seeds = range(asked.seed, asked.seed + asked.draws)
    draw = {"healthy": healthy, "loss": loss, "equivalent": equivalent}[asked.what]
    for name, source in sources(asked.what, sets):
        _DRAWING[:] = [partial(draw, name, source)]
        with get_context("fork").Pool(asked.j) as pool:
            every = [one for some in pool.imap_unordered(_drawn, seeds, 4) for one in some]
        counts = Counter(row for row, _ in every)
        hits = Counter(row for row, happened in every if happened)
        for row in dict.fromkeys(row for row, _ in every):
            low, high = exact(hits[row], counts[row])
            said = f"{hits[row]} of {counts[row]} ({low:.1%} to {high:.1%})"
            print(", ".join(row), said, sep=": ", flush=True)


if __name__ == "__main__":
    main()
