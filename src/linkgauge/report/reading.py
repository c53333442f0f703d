"""Makes a report page of runs that the user names, or that are in named folders."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkgauge import registry
from linkgauge.benchmarks.vm import ASPECTS, Aspect
from linkgauge.engine.kept.folder import accelerator_of
from linkgauge.engine.kept.outline import outline_of
from linkgauge.engine.kept.runs import (
    in_order,
    is_run,
    none_in,
    read_kept,
    read_run,
    run_file,
    run_folders,
    usable,
)
from linkgauge.hooks import expect
from linkgauge.judge.compare.fleet import LEAST, Fleet, FleetReader, NodeRun, names_of
from linkgauge.judge.outcome import outcome_of
from linkgauge.judge.verdict import judge
from linkgauge.model.documents.result import Run
from linkgauge.model.errors import InputError
from linkgauge.model.grouped import grouped
from linkgauge.model.names import hint
from linkgauge.model.units import count_of

from .blocks import Attachments, Block, Line, Page, ShownSection, plain, text_of
from .formats import FLEET, Document, formats
from .forms import cells_of
from .keeping import shown_as
from .results import label, named
from .rows import OneRun
from .sections import Section, SeveralRuns, sections
from .sections.data import attachment
from .sections.opening import sentence_of
from .words.comparison import compared
from .words.worst import worst_of

if TYPE_CHECKING:
    from linkgauge.judge.compare.configurations import ConfigurationComparison

# Runs judged anew, for those who read them.


def judged(run: Run, path: Path | None = None) -> OneRun:
    run = judge(run)
    folder = path if path is None or path.is_dir() else path.parent
    return shown_as(run, outcome_of(run), folder)


MOST_NAME = 120
MOST_ASPECTS = 24
COMPARED = "vm"
"""The profile whose runs are configurations to compare, not nodes that should be equal."""


def page_of(paths: Sequence[Path], against: str | None = None) -> Page:
    """Makes a page of runs. Compares equivalent nodes with each other, and other runs by label.
    `against` is the label to compare with. Raises InputError if there is no run."""
    if len(paths) == 1 and is_run(paths[0]):
        if against is not None:
            raise InputError(f"--against is of several runs: {paths[0]} is one")
        return page_of_run(judged(read_run(paths[0]), paths[0]))
    left_out: list[str] = []
    if against is None and (fleets := fleets_in(paths, left_out.append)):
        return page_of_fleets(fleets, left_out)
    return page_of_runs(_several(paths, against))


def runs_by_accelerator(
    paths: Sequence[Path], against: str | None, say: Callable[[str], None]
) -> dict[str, list[tuple[Path, Run]]]:
    """Groups runs by accelerator. Calls `say` with what it leaves out. Raises InputError if there
    is no run, or if none has the label `against`."""
    runs = usable(_kept(paths), say)
    found = grouped((_accelerator(path, run), (path, run)) for path, run in runs)
    if not found:
        raise none_in(paths[0])
    labels = {run.label for some in found.values() for _, run in some}
    if against is not None and against not in labels:
        raise InputError(f"no run is labelled {against!r}{hint(against, sorted(labels))}")
    return found


def _several(paths: Sequence[Path], against: str | None) -> SeveralRuns:
    left_out: list[str] = []
    groups = runs_by_accelerator(paths, against, left_out.append)
    comparisons = [_comparison(name, [run for _, run in some], against)
                   for name, some in groups.items()]  # fmt: skip
    found = [(name, judged(run, path)) for name, some in groups.items() for path, run in some]
    # Runs that began in the same second have the same id. One that measured nothing says nothing.
    in_order = sorted(found, key=lambda pair: (_is_measured(pair[1].run), pair[1].run.started))
    last = {(name, one.run.label): one for name, one in in_order}
    return SeveralRuns([one for _, one in found], comparisons, last, left_out)


def _is_measured(run: Run) -> bool:
    return any(cell.status != "skip" for _, cell in cells_of(run.results))


# Nodes that should be equal.


def fleets_in(paths: Sequence[Path], say: Callable[[str], object]) -> list[Fleet]:
    """Returns a fleet for each accelerator: the last run of each host and label. Returns [] if a
    path is a run, if all fleets are too small, or if runs differ in settings or have profile vm."""
    if any(map(is_run, paths)):
        return []
    ways = set()
    found: dict[str, dict[tuple[str, str], Path]] = {}
    for path in in_order(_kept(paths)):
        outline = outline_of(run_file(path))
        if outline is not None and outline.machine is not None and outline.is_measured:
            group = found.setdefault(path.parent.parent.name, {})
            name = outline.machine.host.hostname, outline.label
            if group.setdefault(name, path) is path:
                ways.add(outline.settings)
    is_fleet = len(ways) == 1 and {one.profile for one in ways} != {COMPARED}
    if not is_fleet or all(len(nodes) < LEAST for nodes in found.values()):
        return []
    return [_fleet(name, found[name], say) for name in sorted(found)]


def _fleet(
    accelerator: str, nodes: Mapping[tuple[str, str], Path], say: Callable[[str], object]
) -> Fleet:
    reader = FleetReader(len(nodes))
    names = dict(zip(nodes.values(), names_of([*nodes]), strict=True))
    for path, run in usable(sorted(names, key=names.__getitem__), say):
        judged_run = judge(run)
        reader.add(node_of(names[path], judged_run, path), judged_run)
    return reader.fleet(accelerator)


def node_of(name: str, run: Run, path: Path | None = None) -> NodeRun:
    outcome = outcome_of(run)
    wrong = worst_of(run, outcome)
    return NodeRun(
        name, run.machine.host.hostname, run.label, run.started, str(path or ""),
        outcome.word, outcome.code, "" if wrong is None else text_of(wrong.cause or wrong.what),
        None if wrong is None or wrong.group is None else wrong.group.first,
    )  # fmt: skip


def page_of_fleets(found: Sequence[Fleet], left_out: Sequence[str] = ()) -> Page:
    count = count_of(sum(len(one.nodes) for one in found), "node")
    lines = [plain(why, "warn") for why in left_out]
    simulated = any(one.simulated for one in found)
    return page_of_document(FLEET, found, count, lines, simulated=simulated)


def _kept(paths: Sequence[Path]) -> Iterator[Path]:
    each = ([path] if is_run(path) else run_folders(path.resolve()) for path in paths)
    yield from dict.fromkeys(folder.resolve() for folders in each for folder in folders)


def _accelerator(path: Path, run: Run) -> str:
    if path.is_dir() and len(path.parents) > 1 and path.parent.parent.name:
        return path.parent.parent.name
    return accelerator_of(run.machine)


def _comparison(
    accelerator: str, runs: Sequence[Run], against: str | None
) -> ConfigurationComparison:
    """Compares the figures of profile vm or, if there are none, each benchmark's worst cell."""
    from linkgauge.judge.compare.configurations import compare

    first = against if any(run.label == against for run in runs) else None
    found = compare(accelerator, runs, first)
    return found if found.aspects else compare(accelerator, runs, first, _common(runs))


def _common(runs: Sequence[Run]) -> tuple[Aspect, ...]:
    results = [(run.label, one) for run in runs for one in run.results]
    labels = {run.label for run in runs}
    measured = {(of, one.benchmark) for of, one in results if any(c.summary for c in one.cells)}
    names = dict.fromkeys(one.benchmark for _, one in results)
    shared = [name for name in names if {(of, name) for of in labels} <= measured]
    known = {source for aspect in ASPECTS for source, _ in aspect.sources}
    ordered = sorted(shared, key=lambda name: name not in known)[:MOST_ASPECTS]
    return tuple(Aspect(name, "accelerator", ((name, ".*"),)) for name in ordered)


def page_of_run(one: OneRun, only: Collection[str] = ()) -> Page:
    known = (each for each in sections() if not only or each.name in only)
    made = ((each, each.of_run(one)) for each in known if each.of_run is not None)
    run = one.run
    when = f"{_times(run)} · linkgauge {run.machine.linkgauge}"
    said = sentence_of(run, one.outcome)
    lines = filter(None, (said, machine_of(run), compared(run)))
    title = f"{named(run.machine)} · {label(run.label, MOST_NAME)}"
    return Page(title, (*map(plain, lines), plain(when, "dim")), _parts(made), run.simulated)


def page_of_runs(several: SeveralRuns) -> Page:
    known = sections()
    made = ((each, each.of_runs(several)) for each in known if each.of_runs is not None)
    labels = sum(len(one.found.sides) for one in several.comparisons)
    configurations = count_of(labels, "configuration")
    count = f"{count_of(len(several.runs), 'run')} of {configurations}"
    accelerators = ", ".join(one.accelerator for one in several.comparisons)
    left_out = (plain(why, "warn") for why in several.left_out)
    lines = (plain(f"{count} on {accelerators}"), *left_out)
    simulated = any(one.run.simulated for one in several.runs)
    return Page(configurations, lines, _parts(made), simulated)


def _parts(made: Iterable[tuple[Section, Iterable[Block]]]) -> tuple[ShownSection, ...]:
    parts = (ShownSection(section.name, section.title, tuple(blocks)) for section, blocks in made)
    return tuple(part for part in parts if part.blocks)


def kept_at(path: Path) -> tuple[Document, Any] | None:
    """Returns a stored document's kind and value; None for a run. Raises InputError if damaged."""
    if path.is_dir() and is_run(path):
        return None
    for name, place in registry.named("kept").items():
        hook = registry.hook_of("kept", name)
        for document, kind, schema in hook.tried(partial(_kind_of_kept, place), ()):
            value = read_kept(path / name if path.is_dir() else path, kind, schema)
            if value is not None:
                return document, value
    return None


def _kind_of_kept(place: str) -> tuple[tuple[Document, type[Any], str]]:
    document = registry.loaded(place)
    expect(document, Document)
    module = document.kept.partition(":")[0]
    kind, schema = map(registry.loaded, (document.kept, f"{module}:SCHEMA"))
    expect(kind, type)
    expect(schema, str)
    return ((document, kind, schema),)


def page_of_kept(document: Document, value: Any) -> Page:
    command = label(shlex.join(value.command), 2 * MOST_NAME)
    lines = (plain(command), plain(_times(value), "dim"))
    name = f"{document.title} · {value.label}"
    return page_of_document(document, value, name, lines, simulated=value.simulated)


def page_of_document(
    document: Document, value: Any, name: str, lines: Sequence[Line] = (), *, simulated: bool
) -> Page:
    """Makes a document's page, with `lines` below its name. Attaches its files for programs."""
    short, said = document.name.split()[-1], f"{document.name}, for programs"
    files = [
        attachment(f"{short}.{form}", said, (formats()[form].document(document, value),))
        for form in document.texts
    ]
    parts = (
        ShownSection(short, document.title, tuple(document.shown(value))),
        ShownSection("data", "Raw data", (Attachments(files),)),
    )
    return Page(label(name, MOST_NAME), lines, parts, simulated)


def machine_of(run: Run) -> str:
    """Describes the machine: `8 × NVIDIA H200, Intel(R) Xeon(R) …, 224 CPUs`."""
    machine = run.machine
    models = Counter(one.model for one in machine.all_devices if not one.is_cpu)
    devices = [f"{count} × {model}" if count > 1 else model for model, count in models.items()]
    host = machine.host
    parts = [*devices, host.cpu_model or "unknown processor", f"{host.cpus} CPUs"]
    return label(", ".join(parts), 2 * MOST_NAME)


def _times(of: Any) -> str:
    end = f" to {of.finished}" if of.finished else ", interrupted"
    return label(f"label {of.label} · {of.started}{end}", MOST_NAME)
