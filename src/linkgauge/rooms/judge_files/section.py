"""The section on another tool's run: how it was read, what was assumed, and explanations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from linkgauge.model.documents.result import Run
from linkgauge.model.documents.tool_run import HostFigures, ToolRun
from linkgauge.model.grouped import grouped
from linkgauge.model.names import and_all
from linkgauge.model.units import BANDWIDTH, count_of, unit_of
from linkgauge.report.blocks import Block, Column, Entry, Line, Prose, Table, line, plain
from linkgauge.report.rows import OneRun

from .remarks import remarks

_MOST_HOSTS = 6
_MOST_REASONS = 4


def blocks(one: OneRun) -> Iterable[Block]:
    tool = one.run.tool
    if not isinstance(tool, ToolRun):
        return
    if tool.peers:
        yield _hosts(one.run, tool.peers)
        yield Prose([line(f"All else here is of {one.run.label}."), ()])
    said = [plain(text) for text in remarks(one.run, tool)]
    if said:
        yield Prose([*said, ()])
    yield Prose([*_read(one.run, tool), *_unsure(one.run, tool), *_expected(one.run)])


def _hosts(run: Run, peers: Sequence[HostFigures]) -> Table:
    worst = sorted(peers, key=lambda one: (one.host != run.label, -one.low, one.share or 1.0))
    shown = sorted(worst[:_MOST_HOSTS], key=lambda one: (not one.low, len(one.host), one.host))
    rows = []
    is_compared = any(one.cells for one in peers)
    for result in {one.benchmark: one for one in run.results}.values():
        unit = BANDWIDTH if result.average else unit_of(result.unit)
        figures = [one.medians.get(result.benchmark) for one in shown]
        if any(figures):
            cells = [Entry(f"{f / unit.scale:.4g}" if f else "", f) for f in figures]
            rows.append([Entry(f"{result.benchmark} ({unit.shown})"), *cells])
    rows += [[Entry("below the others"), *map(_low, shown)]] if is_compared else []
    rows.append([Entry("verdict"), *(Entry(one.verdict) for one in shown)])
    left = f", the {len(shown)} that differ most" if len(shown) < len(peers) else ""
    what = f"hosts{left}" if is_compared else f"texts, each a run of its own{left}"
    caption = plain(f"{len(peers)} {what}: the median of each benchmark", "strong")
    return Table(caption, (Column(""), *(Column(one.host, figures=True) for one in shown)), rows)


def _low(one: HostFigures) -> Entry:
    return Entry(f"{one.low} of {one.cells}", one.low, "bad" if one.low else "")


def _read(run: Run, tool: ToolRun) -> Iterator[Line]:
    version = f" {tool.version}" if tool.version else ""
    figures = f"{count_of(tool.figures, 'figure')} of {tool.name}{version}"
    if not tool.name:
        cards = grouped((one.model, one) for one in run.machine.all_devices)
        each = [f"{len(some)} {model}" for model, some in cards.items()] or ["a machine"]
        links = Counter(o.kind for card in run.machine.known.accelerators[:1] for o in card.links)
        each += [
            f"{count_of(count, 'link')} of {kind} at the first" for kind, count in links.items()
        ]
        if rate := tool.settings.get("adapter Gb/s"):
            each.append(f"{count_of(tool.adapters or 1, 'adapter')} of {rate} Gb/s")
        if transfers := tool.settings.get("DIMM MT/s"):
            each.append(f"memory modules at {transfers} MT/s")
        figures = f"{and_all(each)}, but no tool's figures"
    yield line(f"Read from {and_all(tool.files)}: {figures}.")
    left = tool.lines - tool.understood
    if left:
        were = "was" if left == 1 else "were"
        example = f"; the first: {tool.missed}" if tool.missed else ""
        yield plain(
            f"{left} of {count_of(tool.lines, 'line')} {were} not understood{example}", "dim"
        )
    if tool.judged < tool.figures:
        rest = count_of(tool.figures - tool.judged, "figure")
        yield plain(f"{rest} left out: 0, or no benchmark here measures that", "dim")


def _unsure(run: Run, tool: ToolRun) -> Iterator[Line]:
    for one in tool.clashes:
        yield line(f"The texts contradict one another: {one}. The first one counts.")
    for one in tool.failed[:_MOST_REASONS]:
        yield line(f"{tool.name}: {one}")
    is_compared = any(o.expected and o.expected.figure for r in run.results for o in r.cells)
    by_table = grouped(map(_on_table, tool.assumed))
    for product, some in by_table.items():
        if product and not is_compared:
            continue
        source = f"By the data sheet of {product}" if product else "Assumed"
        yield plain(f"{source}: {'; '.join(some)}.", "dim")


def _expected(run: Run) -> Iterator[Line]:
    """Yields the arithmetic of rates, except for benchmarks with low cells, which show theirs."""
    reasons = grouped(
        (cell.expected.because, result.benchmark)
        for result in run.results
        if not any(cell.verdict == "low" for cell in result.cells)
        for cell in result.cells[-1:]
        if cell.transfers[0].memories  # else it is known by its name alone
        if cell.expected is not None and cell.expected.because
    )
    for because, names in [*reasons.items()][:_MOST_REASONS]:
        why = because.removeprefix("unknown: ")
        what = and_all(names)
        said = f"{what}: {because}" if why == because else f"no expected figure ({why}): {what}"
        yield plain(said, "dim")


def _on_table(assumed: str) -> tuple[str, str]:
    from .layout import ON_TABLE

    product, _, what = assumed.removesuffix(ON_TABLE).partition(": ")
    return (product, what) if assumed.endswith(ON_TABLE) else ("", assumed)
