"""What a report is asked to be of: a run, or all runs that were named and that folders hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from linkgauge.benchmarks.vm import ASPECTS, Aspect
from linkgauge.engine.folder import accelerator_of
from linkgauge.engine.runs import is_run, none_in, read_run, run_folders, usable
from linkgauge.judge.configurations import Comparison, compare
from linkgauge.model.errors import InputError
from linkgauge.model.result import Run
from linkgauge.report.rows import judged

from .blocks import Page
from .contents import page_of_run, page_of_runs
from .sections import OneRun, SeveralRuns

MOST_ASPECTS = 24
"""Benchmarks that runs of other profiles are compared by."""


def page_of(paths: Sequence[Path], against: str | None = None) -> Page:
    """The report of a run, or of several and those below folders. Runs are compared by label, with
    that named `against` first. Raises InputError where there is no run."""
    if len(paths) == 1 and is_run(paths[0]):
        if against is not None:
            raise InputError(f"--against is of several runs: {paths[0]} is one")
        return page_of_run(one_run(read_run(paths[0]), paths[0]))
    return page_of_runs(_several(paths, against))


def one_run(run: Run, path: Path | None = None) -> OneRun:
    """A run, judged anew, that this path keeps."""
    found = judged(run)
    return OneRun(found.run, found.outcome, path if path is None or path.is_dir() else path.parent)


def _several(paths: Sequence[Path], against: str | None) -> SeveralRuns:
    left_out: list[str] = []
    groups: dict[str, list[OneRun]] = {}
    for path, run in usable(_kept(paths), left_out.append):
        groups.setdefault(_accelerator(path, run), []).append(one_run(run, path))
    if not groups:
        raise none_in(paths[0])
    labels = {name: {one.run.label for one in runs} for name, runs in groups.items()}
    if against is not None and not any(against in own for own in labels.values()):
        raise InputError(f"no run is labelled {against!r}")
    comparisons = [
        _comparison(name, runs, against if against in labels[name] else None)
        for name, runs in groups.items()
    ]
    found = [(name, one) for name, runs in groups.items() for one in runs]
    # Runs that began in the same second have the same id.
    in_order = sorted(found, key=lambda pair: pair[1].run.started)
    last = {(name, one.run.label): one for name, one in in_order}
    return SeveralRuns([one for _, one in found], comparisons, last, left_out)


def _kept(paths: Sequence[Path]) -> Iterator[Path]:
    """The runs that were named, and those below folders, each once."""
    found: dict[Path, None] = {}
    for path in paths:
        folders = [path] if is_run(path) else run_folders(path.resolve())
        found |= dict.fromkeys(folder.resolve() for folder in folders)
    yield from found


def _accelerator(path: Path, run: Run) -> str:
    """The folder of the accelerator that a run lies in, as `linkgauge show` has it; of a run that
    lies elsewhere, that of its first device."""
    if path.is_dir() and len(path.parents) > 1 and path.parent.parent.name:
        return path.parent.parent.name
    return accelerator_of(run.machine)


def _comparison(accelerator: str, runs: Sequence[OneRun], against: str | None) -> Comparison:
    """By what profile vm measures; of runs without that, by the worst cell of each benchmark that
    all labels have."""
    measured = [one.run for one in runs]
    found = compare(accelerator, measured, against)
    return found if found.aspects else compare(accelerator, measured, against, _common(measured))


def _common(runs: Sequence[Run]) -> tuple[Aspect, ...]:
    """An aspect for each benchmark that every label has measured."""
    by_label: dict[str, set[str]] = {}
    for run in runs:
        own = by_label.setdefault(run.label, set())
        own |= {one.benchmark for one in run.results if any(cell.summary for cell in one.cells)}
    names = dict.fromkeys(one.benchmark for run in runs for one in run.results)
    shared = [name for name in names if all(name in own for own in by_label.values())]
    known = {source for aspect in ASPECTS for source, _ in aspect.sources}
    ordered = sorted(shared, key=lambda name: name not in known)[:MOST_ASPECTS]
    return tuple(Aspect(name, "accelerator", ((name, ".*"),)) for name in ordered)
