"""Accelerators' own links (NVLink and the like), those that are alike in one row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from linkgauge.model.inventory import Accelerator, FabricLink
from linkgauge.report.blocks import Column, Table
from linkgauge.report.results import table
from linkgauge.report.subjects import spans

_MOST = 8
"""Most rows for a kind of link; if there are more, their ends are listed together."""
_HEADS: Sequence[str | Column] = (
    "", "kind", "active", Column("GB/s each, one way", True), Column("errors", True), "lead to",
)  # fmt: skip
_Ends = tuple[tuple[str, int], ...]
"""Where links lead, and how many lead there."""


def fabric_links(accelerators: Sequence[Accelerator]) -> Table:
    kinds: dict[tuple[str, ...], dict[_Ends, list[str]]] = {}
    for one in accelerators:
        for texts, ends in _bundles(one.links):
            kinds.setdefault(texts, {}).setdefault(ends, []).append(one.memory)
    rows = []
    for texts, alike in kinds.items():
        for ends, names in (alike if len(alike) <= _MOST else _together(alike)).items():
            rows.append((spans(names), *texts, _listed(ends)))
    return table("Fabric links", _HEADS, rows)


def _together(alike: dict[_Ends, list[str]]) -> dict[_Ends, list[str]]:
    ends = dict.fromkeys((name, 1) for ends in alike for name, _ in ends)
    return {tuple(ends): [name for names in alike.values() for name in names]}


def _bundles(links: Sequence[FabricLink]) -> Iterator[tuple[tuple[str, ...], _Ends]]:
    """What the columns say of each kind of links, and where these lead."""
    kinds: dict[tuple[str, str | None, float | None], list[FabricLink]] = {}
    for link in links:
        kinds.setdefault((link.kind, link.version, link.rate), []).append(link)
    for (kind, version, rate), own in kinds.items():
        states = Counter(link.active for link in own)
        unsure = f" ({states[None]} unknown)" if states[None] else ""
        texts = (
            f"{kind} {version or ''}".rstrip(),
            f"{states[True]} of {len(own)}{unsure}",
            "unknown" if rate is None else f"{rate / 1e9:.1f}",
            str(sum(link.errors or 0 for link in own) or ""),
        )
        yield texts, tuple(Counter(link.remote or "unknown" for link in own).items())


def _listed(ends: _Ends) -> str:
    """`sim:1-3, nvswitch (18)`: how many lead there, where it is more than one."""
    groups: dict[int, list[str]] = {}
    for name, count in sorted(ends, key=lambda end: (len(end[0]), end)):
        groups.setdefault(count, []).append(name)
    return ", ".join(
        spans(names) + (f" ({count}{' each' * (len(names) > 1)})" if count > 1 else "")
        for count, names in groups.items()
    )
