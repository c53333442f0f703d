"""Finds a comparison's two sides. A run, a folder, a baseline or a label names a side's runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from msgspec.structs import replace

from linkgauge.engine.kept.again import AGAIN
from linkgauge.engine.kept.runs import (
    find_run,
    is_run,
    none_in,
    read_run,
    run_file,
    run_folders,
    usable,
)
from linkgauge.judge.compare.baseline import read_baseline
from linkgauge.judge.compare.likeness import CellFigure, RunFigures, figures_of, unlike
from linkgauge.model.documents.result import Run
from linkgauge.model.errors import InputError
from linkgauge.model.names import hint
from linkgauge.model.stats.changes import Aim
from linkgauge.model.units import parse_fraction
from linkgauge.report.words.figures import said
from linkgauge.report.words.sentences import first_of

Say = Callable[[str], object]
"""Takes messages for people, a line each."""


def to_stderr(line: str) -> None:
    print(line, file=sys.stderr)


def side_of(asked: Path, say: Say = to_stderr) -> list[RunFigures]:
    """Returns a side's runs. `say` reports unusable runs. Raises InputError if no run is left."""
    path = find_run(asked)
    if (kept := read_baseline(path)) is not None:
        return list(kept.runs)
    if is_run(path):
        file = run_file(path)
        changed = file.stat() if file.exists() else None
        return list(_figures_of(path, changed and (changed.st_mtime_ns, changed.st_size)))
    return [figures_of(run) for _, run in runs_of(asked, say)]


@lru_cache(maxsize=64)
def _figures_of(path: Path, _changed: tuple[int, int] | None) -> tuple[RunFigures, ...]:
    """Reads a run's figures, or returns cached ones if `_changed` (file time, size) is the same."""
    return tuple(figures_of(run) for _, run in runs_of(path))


def runs_of(asked: Path | None, say: Say = to_stderr) -> list[tuple[Path | None, Run]]:
    """Returns the run at a path, or the runs in a folder except those made by `--rerun`. `say` gets
    a line on each unusable run of a folder. Raises InputError if no usable run is left."""
    path = find_run(asked, command="gate --baseline REF --current", say=say)
    if is_run(path):
        run = read_run(path)
        if run.is_profiled:
            raise InputError(f"{path} was measured under a profiler: its figures mean nothing")
        return [(path, run)]
    every = usable(run_folders(path), say)
    # Not those of some cells, which were chosen for what they were.
    found: list[tuple[Path | None, Run]] = [
        (folder, run) for folder, run in every if not run.label.endswith(AGAIN)
    ]
    if not found:
        raise none_in(path)
    return found


def refuse_unlike(baseline: Sequence[RunFigures], current: Sequence[RunFigures]) -> None:
    """Raises InputError if facts that figures depend on differ between the two sides."""
    facts = unlike([baseline, current])
    if facts:
        lines = [f"  {one.name}: {said(one, ('baseline', 'current'))}" for one in facts]
        raise InputError(
            "\n".join(("the runs are not comparable (--force compares them anyway):", *lines))
        )


def refuse_unknown(patterns: Sequence[str], *sides: Sequence[RunFigures]) -> None:
    """Raises InputError for a pattern that fits no benchmark of these runs."""
    names = list(
        dict.fromkeys(cell.benchmark for runs in sides for run in runs for cell in run.cells)
    )
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            near = hint(pattern, names, f": they have {first_of(names, ', ')}")
            raise InputError(f"--benchmark {pattern}: these runs have no such benchmark{near}")


def only(runs: Sequence[RunFigures], patterns: Sequence[str]) -> list[RunFigures]:
    """Returns the runs, reduced to benchmarks that match a pattern; unchanged without patterns."""

    def is_asked(cell: CellFigure) -> bool:
        return not patterns or any(fnmatchcase(cell.benchmark, pattern) for pattern in patterns)

    return [replace(run, cells=tuple(filter(is_asked, run.cells))) for run in runs]


def aim_of(significance: str, least: str, detect: str | None) -> Aim:
    """Parses a comparison's options. By default, `detect` is twice `least`. Raises InputError."""
    smallest = 0.0 if least == "0" else parse_fraction(least, "minimum loss")
    target = 2 * smallest if detect is None else parse_fraction(detect, "loss to detect")
    if target <= smallest:
        raise InputError(
            f"--detect {detect}: a loss that is just {least} is found every other time at best: "
            "give a larger one"
        )
    target = min(target, 0.99)
    exclude = target if detect is not None else max(Aim().exclude, target)
    return Aim(parse_fraction(significance, "significance"), smallest, target, exclude)
