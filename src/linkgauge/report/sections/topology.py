"""Shows a machine with the bandwidth measured over each link, as a picture and as a tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import msgspec

from linkgauge.judge.blame.link_figures import LinkFigures, blamed, blames, link_figures
from linkgauge.judge.expected.readings import as_one
from linkgauge.judge.findings import Finding, evidence_of
from linkgauge.model.cell_id import spoken
from linkgauge.model.documents.result import Run
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.topology import Joint, Topology, TopologyPlace, topology_of
from linkgauge.model.names import range_of, spans
from linkgauge.model.units import BANDWIDTH, count_of, format_figure
from linkgauge.report.blocks import (
    Block,
    Column,
    DrawnLink,
    DrawnPart,
    Entry,
    Picture,
    Prose,
    Tone,
    line,
    plain,
)
from linkgauge.report.results import SIMULATED, mark, named, table, verdict
from linkgauge.report.words.groups import SEVERITIES

from . import OneRun, Section
from .machine import detailed_machine_blocks
from .pci import link_entry, nearest_blocks

MOST_SINGLE = 72
"""With more devices, equal ones are drawn as one."""
MOST_ROWS = 48
"""With more links, equal ones share a row."""
_HEADS = ("", "link", Column("GB/s one way", True), Column("both ways", True), "verdict")
_HOW = 'GB/s one way over each link; "both": in both directions at once'
_BEST = "A link's figure: the fastest copy for which this link alone is the bottleneck."
_Row = Sequence[str | Entry]


class _Link(msgspec.Struct, frozen=True):
    """One or more equal links. `what` is their kind, `one_way` and `both` are measured rates in
    bytes/s. A picture shows `word`, a bad verdict or a failed check, and the tooltip `says`."""

    what: Entry
    one_way: tuple[float, ...]
    both: tuple[float, ...]
    verdict: str
    tone: Tone
    word: str
    says: str

    @property
    def entries(self) -> _Row:
        figures = (Entry(_range(each)) for each in (self.one_way, self.both))
        return self.what, *figures, Entry(self.verdict, tone=self.tone)

    def joined(self, a: str, b: str) -> DrawnLink:
        both = f"both {_range(self.both)}" if self.both else ""
        texts = [text for text in (_range(self.one_way), both) if text]
        return DrawnLink(a, b, texts, self.tone, self.word, self.says)


def run_blocks(judged: OneRun) -> Iterator[Block]:
    yield from _links_blocks(judged)
    yield from nearest_blocks(evidence_of(judged.run))


def detailed_run_blocks(judged: OneRun) -> Iterator[Block]:
    yield from _links_blocks(judged)
    yield from detailed_machine_blocks(judged.run.machine, evidence_of(judged.run))


def _links_blocks(judged: OneRun) -> Iterator[Block]:
    run = judged.run
    yield Prose([line(named(run.machine), f", as run {run.id} measured it", mark(run.simulated))])
    found = tuple(picture_blocks(run, judged.outcome.findings))
    yield from found or (Prose([plain("No link between its memories is known.")]),)


def picture_blocks(run: Run, findings: Sequence[Finding]) -> Iterator[Picture]:
    """Yields a picture, unless the run has several machines or only links to a network."""
    one, found = as_one(run), blames(findings)
    topology = topology_of(one.machine, found)
    if topology.joined and not one.machine.ranks:
        figures = link_figures(one.machine, topology, one.results)
        bad = blamed(topology, found, one.machine)
        yield _MachinePicture(run, topology, figures, bad).picture()


class _MachinePicture:
    def __init__(
        self,
        run: Run,
        topology: Topology,
        figures: Mapping[Joint, LinkFigures],
        bad: Mapping[Joint | TopologyPlace, Finding],
    ) -> None:
        self._run, self._topology, self._blames = run, topology, bad
        self._links = {
            joint: _link(joint, figures.get(joint, LinkFigures()), bad.get(joint))
            for joint in topology.joints
        }
        places = topology.places
        self._up = {j.a: j for j in self._links if places[j.a].above == j.b}
        self._levels = {one: n for n, level in enumerate(topology.switches(), 1) for one in level}

    def picture(self) -> Picture:
        name, run = named(self._run.machine), self._run
        bad = [f"{_name(part)} ({found.check})" for part, found in self._blames.items()]
        parts, links = len(self._topology.places), len(self._links)
        counts = f"{count_of(parts, 'part')}, {count_of(links, 'link')}"
        says = f"{name}: {counts}{'; ' if bad else ''}{', '.join(bad)}"
        head = line(SIMULATED if run.simulated else "", f"{name}: {_HOW}")
        lines = [plain(_BEST, "dim")]
        if without := sum(not (one.one_way or one.both) for one in self._links.values()):
            none = f"{count_of(without, 'link')} without a figure: none alone limits a copy."
            lines.append(plain(none, "dim"))
        rows = self._tree() if links <= MOST_ROWS else self._summary()
        tree = table("Links", _HEADS, rows)
        title = f"What each link carries{mark(run.simulated).text}"
        return Picture(title, says, head, *self._drawn(), tree, lines, "links")

    def _drawn(self) -> tuple[list[DrawnPart], list[DrawnLink]]:
        places = self._topology.places
        several = sum(one.kind == "device" for one in places.values()) > MOST_SINGLE
        ends: dict[str, set[tuple[str, str, str]]] = {name: set() for name in places}
        for joint, one in self._links.items():
            ends[joint.a].add((joint.b, one.what.text, one.verdict))
            ends[joint.b].add((joint.a, one.what.text, one.verdict))

        def key(place: TopologyPlace) -> object:
            joins = several and place.kind in ("device", "nic") and place not in self._blames
            return (place.above, frozenset(ends[place.name])) if joins else place.name

        equivalent = grouped((key(place), name) for name, place in places.items())
        first = {name: some[0] for some in equivalent.values() for name in some}
        found = grouped(((first[j.a], first[j.b]), one) for j, one in self._links.items())
        links = [_all(some).joined(*joined) for joined, some in found.items()]
        return [self._part(places[some[0]], some) for some in equivalent.values()], links

    def _part(self, place: TopologyPlace, names: Sequence[str]) -> DrawnPart:
        blame = self._blames.get(place)
        label = spans(names) + (f" ({len(names)})" if len(names) > 1 else "")
        tone, word = (SEVERITIES[blame.severity], blame.check) if blame else ("", "")
        level = self._levels.get(place, 0)
        return DrawnPart(place.name, label, place.kind, place.above, tone, word, level)

    def _tree(self) -> Iterator[_Row]:
        shown = set(self._up.values())
        for top in self._topology.below(None):
            under = [*self._under(top, 0)]
            if len(under) > 1 or top in self._blames:
                yield from under
        for switch in self._levels:
            joints = [j for j in self._links if switch.name in (j.a, j.b) and j not in shown]
            shown |= {*joints}
            if joints:
                yield self._row(switch, 0)
            for joint in joints:
                other = joint.a if joint.b == switch.name else joint.b
                yield Entry(other, depth=1), *self._links[joint].entries
        for joint, one in self._links.items():
            if joint not in shown:
                yield Entry(_name(joint)), *one.entries

    def _under(self, place: TopologyPlace, depth: int) -> Iterator[_Row]:
        yield self._row(place, depth)
        for below in self._topology.below(place.name):
            yield from self._under(below, depth + 1)

    def _row(self, place: TopologyPlace, depth: int) -> _Row:
        joint, blame = self._up.get(place.name), self._blames.get(place)
        entries = self._links[joint].entries if joint else [""] * 4
        if blame is not None:
            entries = *entries[:-1], Entry(_said(blame), tone=SEVERITIES[blame.severity])
        return Entry(place.name, tone="" if depth else "name", depth=depth), *entries

    def _summary(self) -> Iterator[_Row]:
        places = self._topology.places
        for part in self._blames:
            if isinstance(part, TopologyPlace):
                yield self._row(part, 0)

        def key(joint: Joint, one: _Link) -> object:
            end = places[joint.b].kind
            switch = joint.b if end == "switch" else ""
            equivalent = (places[joint.a].kind, end, switch, one.what, one.verdict)
            return joint if one.word else equivalent

        equivalent = grouped((key(*each), each[0]) for each in self._links.items())
        for joints in sorted(equivalent.values(), key=lambda some: not self._links[some[0]].word):
            many = f"{len(joints)} links: " if len(joints) > 1 else ""
            both = ([j.a for j in joints], [j.b for j in joints])
            ends = " – ".join(_several(dict.fromkeys(names)) for names in both)
            yield Entry(many + ends), *_all([self._links[j] for j in joints]).entries


def _name(part: Joint | TopologyPlace) -> str:
    return part.name if isinstance(part, TopologyPlace) else f"{part.a} – {part.b}"


def _several(names: Mapping[str, None]) -> str:
    some = [*names]
    return shown if len(shown := spans(some)) < 40 else f"{some[0]} to {some[-1]}"


def _link(joint: Joint, figures: LinkFigures, blame: Finding | None) -> _Link:
    best = {"one way": figures.one_way, "both ways": figures.both}
    found = {how: each for how, each in best.items() if each is not None}
    of, word = Entry("", tone="dim"), ""
    for each in [*found.values()][:1]:
        of = verdict([each.result], [each.cell])
        word = of.text if of.tone in ("bad", "warn") else ""
    if blame is not None:
        of, word = Entry(_said(blame), tone=SEVERITIES[blame.severity]), blame.check
    what = _what(joint)
    shown = (
        f"{_range([each.figure])} GB/s {how}: {spoken(each.result, each.cell)}"
        for how, each in found.items()
    )
    says = "; ".join(filter(None, (_name(joint), what.text, *shown, of.text)))
    one_way, both = ((each.figure,) if each else () for each in best.values())
    return _Link(what, one_way, both, of.text, of.tone, word, says)


def _all(some: Sequence[_Link]) -> _Link:
    one_way = tuple(figure for one in some for figure in one.one_way)
    both = tuple(figure for one in some for figure in one.both)
    says = some[0].says if len(some) == 1 else f"{len(some)} links equivalent"
    return msgspec.structs.replace(some[0], one_way=one_way, both=both, says=says)


def _said(blame: Finding) -> str:
    return f"{blame.severity}: {blame.check}"


def _range(figures: Sequence[float]) -> str:
    return range_of(partial(format_figure, unit=BANDWIDTH.symbol), figures, "–")


def _what(joint: Joint) -> Entry:
    """Formats a link: `Gen 5 x16`, `18 nvlink`, or `12 of 18 nvlink` if some are down."""
    wire = joint.wires[0] if joint.wires else None
    if wire is not None and wire.kind == "pcie":
        link = wire.lower.link if wire.lower else wire.reported
        return link_entry(link) if link else Entry("")
    bundles = [one.bundle for one in joint.wires if one.bundle]
    if not bundles:
        return Entry("between nodes" if wire and wire.kind == "socket" else "")
    count, every = sum(one.count for one in bundles), sum(one.all for one in bundles)
    of = str(count) if count == every else f"{count} of {every}"
    return Entry(f"{of} {bundles[0].kind}", tone="warn" if count < every else "")


SECTION = Section(
    "machine", "The machine", 12, lambda one: picture_blocks(one.run, one.outcome.findings)
)
