"""Shows the first lines of a run on a terminal, with the number of cells of each verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter
from statistics import median

from linkgauge.judge.outcome import Outcome
from linkgauge.model.cell_id import spoken
from linkgauge.model.documents.result import CellResult, Run
from linkgauge.model.hardware.machine import UNNAMED
from linkgauge.model.names import range_of
from linkgauge.model.units import BANDWIDTH, count_of, format_figure
from linkgauge.report.blocks import TONES, Block, Prose, Tile, Tone, line
from linkgauge.report.forms import UNIFORM, cells_of
from linkgauge.report.results import SIMULATED_TILE, label, mark
from linkgauge.report.words.expectations import WHY_NOT, judged_of, word_of
from linkgauge.report.words.groups import SEVERITIES
from linkgauge.report.words.worst import worst_of

from .screen import has_few

_FROM = {
    "each from host memory": ("host_to_device_memcpy_ce", "host_to_device_memcpy_sm"),
    "from each other": ("device_to_device_memcpy_read_ce", "device_to_device_memcpy_read_sm"),
}
_WITHIN = ("host_to_host_memcpy_copy_cpu",)
_SHOULD = {
    "ok": ", as this hardware should",
    "degraded": ", limited by slow links",
    "part": "; what some of it should be is not known",
    "low": ", less than this hardware should",
    "perhaps low": ", perhaps less than this hardware should",
    "waived": ", partly less than this hardware should, which is waived",
}


def blocks(run: Run, outcome: Outcome) -> Iterator[Block]:
    if has_few(run):
        return
    lines = []
    if said := sentence_of(run, outcome):
        lines.append(line(said, mark(run.simulated)))
    wrong = worst_of(run, outcome)
    if wrong is not None and not (said and wrong.group and wrong.group.first.check == "busy"):
        lines.append(wrong.what)
    if lines:
        yield Prose([*lines, ()])


def sentence_of(run: Run, outcome: Outcome) -> str:
    """Returns `8 NVIDIA H200 copy 55.4 GB/s each from host memory, as …`; empty without copies."""
    known = {where: cells for where, names in _FROM.items() if (cells := _first(run, names))}
    if known:
        who = _devices(run, [*chain(*known.values())])
        single = "each " if who.startswith("1 ") else ""
        what = " and ".join(
            f"{_figures(cells)} {where.removeprefix(single)}" for where, cells in known.items()
        )
    elif within := [cell for cell in _first(run, _WITHIN) if _is_within(cell)]:
        known = {"": within}
        nodes = sorted({str(cell.transfers[0].source) for cell in within})
        what = f"{_figures(within)} within {nodes[0] if len(nodes) == 1 else 'each node'}"
        who = count_of(sum(len(node.cpus) for node in run.machine.host.nodes), "CPU")
    else:
        return ""
    verb = "copies" if who.startswith("1 ") else "copy"
    should = _should([*chain(*known.values())], run, outcome) if outcome.verdict else ""
    return f"{who} {verb} {what}{should}{_others(run, outcome)}"


def _first(run: Run, names: Sequence[str]) -> list[CellResult]:
    found = (
        [c for c in one.cells if c.headline is not None]
        for name in names
        for one in run.results
        if one.benchmark == name
    )
    return next(filter(None, found), [])


def _is_within(cell: CellResult) -> bool:
    return cell.transfers[0].source == cell.transfers[0].destination


def _figures(cells: Sequence[CellResult]) -> str:
    figures = [cell.headline or 0.0 for cell in cells]
    middle = median(figures)
    is_uniform = max(figures) - min(figures) <= UNIFORM * middle
    shown = partial(format_figure, unit=BANDWIDTH.symbol)
    return f"{range_of(shown, [middle] if is_uniform else figures)} {BANDWIDTH.shown}"


def _devices(run: Run, cells: Sequence[CellResult]) -> str:
    names = {
        str(m) for cell in cells for t in cell.transfers for m in t.memories if m.backend != "host"
    }
    models = Counter(one.model for one in run.machine.all_devices if one.memory in names)
    if models.total() < len(names):
        return count_of(len(names), "device")
    return " and ".join(
        count_of(count, model) if model in UNNAMED else f"{count} {label(model)}"
        for model, count in models.items()
    )


def _should(cells: Sequence[CellResult], run: Run, outcome: Outcome) -> str:
    word = word_of((), cells)
    if word is None and any(cell.not_judged == "assumed" for cell in cells):
        return "; these rest on assumed facts, so no expected figure is known"
    if word is None:
        return "; no expected figure is known"
    below = [cell for cell in cells if cell.verdict in ("low", "perhaps low")]
    by_peers = bool(below) and all(cell.expected and cell.expected.peers for cell in below)
    if by_peers or (word.kind in ("ok", "degraded") and _is_slow(cells, run, outcome)):
        return ", in part less than their peers"
    ends = {str(place) for cell in cells for place in cell.places}
    if word.kind == "ok" and any(not ends.isdisjoint(one.ends) for one in outcome.findings):
        return ""  # what a line below accuses is not praised
    if word.kind == "ok" and any(cell.is_as_peers for cell in cells):
        return ", each as fast as its peers"
    if word.kind == "ok" and any(cell.expected and cell.expected.measured for cell in cells):
        return ", the best that was measured of it here"
    if word.kind == "low" and any(cell.verdict == "ok" for cell in cells):
        return ", in part less than this hardware should"
    return _SHOULD.get(word.kind, "")


def _is_slow(cells: Sequence[CellResult], run: Run, outcome: Outcome) -> bool:
    slow = {name for one in outcome.findings if one.check == "slow" for name in one.cells}
    own = set(map(id, cells)) if slow else ()
    named = (spoken(result, cell) for result, cell in cells_of(run.results) if id(cell) in own)
    return not slow.isdisjoint(named)


def _others(run: Run, outcome: Outcome) -> str:
    if not any(finding.check == "busy" for finding in outcome.findings):
        return ""
    loads = [cell.load for _, cell in cells_of(run.results) if cell.load is not None]
    seconds = sum(load.seconds for load in loads) * run.machine.host.cpus
    share = sum(load.others for load in loads) / seconds if seconds else 0.0
    return f"; other programs took {share:.0%} of the CPUs"


_NO_FIGURE = {"error": "error", "timeout": "timeout", "skip": "skipped"}
_NO_REFERENCE = "nothing to compare with"
_FAR = "far faster or slower peers"
_WRONG = "with wrong bytes"


def tally(run: Run, outcome: Outcome) -> Iterator[Tile]:
    # What fails otherwise is beyond a limit.
    statuses = Counter(_WRONG if cell.kind == "wrong-bytes" else cell.status
                       for _, cell in cells_of(run.results))  # fmt: skip
    measured = statuses["pass"] + statuses["fail"] + statuses[_WRONG]
    count, cells = count_of(measured).split() if measured else ("nothing", "")
    yield Tile(count, f"{cells} measured".lstrip())
    if outcome.verdict and measured:
        yield from _judged(run)
    statuses["skip"] += sum(not result.cells for result in run.results)
    severities = Counter(one.severity for one in outcome.findings if outcome.verdict)
    yield from _counted([(statuses["fail"], "failed", "bad"), (statuses[_WRONG], _WRONG, "bad")])
    left = {how: n for status, how in _NO_FIGURE.items() if (n := statuses[status])}
    if [*left] == [_NO_FIGURE["skip"]]:
        yield from _counted([(statuses["skip"], "more skipped", "dim")])
    else:
        why = ", ".join(f"{n:,} {how}" if len(left) > 1 else how for how, n in left.items())
        yield from _counted([(sum(left.values()), f"more not measured ({why})", "bad")])
    if run.finished is None:
        yield Tile("interrupted", "", "warn")
    for severity, tone in SEVERITIES.items():
        if found := severities[severity]:
            several = "" if found == 1 else "s"
            yield Tile(f"{found:,}", f"{severity} finding{several}", tone, separate=True)
    if run.simulated:
        yield SIMULATED_TILE


def _counted(counts: Iterable[tuple[int, str, Tone]]) -> Iterator[Tile]:
    for count, name, tone in counts:
        if count:
            yield Tile(f"{count:,}", name, tone)


def _judged(run: Run) -> Iterator[Tile]:
    passed = [cell for _, cell in cells_of(run.results) if cell.status == "pass"]
    verdicts = Counter(map(attrgetter("verdict"), passed))
    known = judged_of(run)
    well, low = verdicts["ok"] - known.cpus - known.others, verdicts["low"]
    as_peers, some = known.cpus + known.others, known.cpus if known.others else "all"
    whose = "their" if as_peers > 1 else "its"
    pairs = f" ({some} of them between CPUs)" if known.cpus else ""
    yield Tile(f"{well:,}", "ok", "good" if well else "dim")
    yield from _counted(
        [
            (verdicts["degraded"], "degraded by slow links", TONES["degraded"]),
            (as_peers, f"as fast as {whose} peers{pairs}", TONES["ok"]),
        ]
    )
    yield Tile(f"{low:,}", "low", "warn" if low else "dim")
    why = f"not judged ({_why_not(passed)})" if verdicts["not judged"] else ""
    yield from _counted([
        (verdicts["perhaps low"], "perhaps low", "warn"),
        (verdicts["waived"], "low and waived", "dim"), (verdicts["high"], "high", "simulated"),
        (verdicts["not judged"], why, "dim"),
    ])  # fmt: skip


def _why_not(passed: Sequence[CellResult]) -> str:
    cells = [cell for cell in passed if cell.verdict == "not judged"]
    counts = Counter(
        why[0] if why else _NO_REFERENCE if cell.peers is None else _FAR
        for cell in cells for why in (WHY_NOT.get(cell.not_judged),)
    )  # fmt: skip
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{n} {'has' if n == 1 else 'have'} {why}" for why, n in counts.most_common())
