"""Accelerators' own links (NVLink and the like), those that are alike in one row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from linkgauge.model.inventory import Accelerator, FabricLink
from linkgauge.report.blocks import Column, Table
from linkgauge.report.results import table
from linkgauge.report.subjects import spans

_FEW = 32
_HEADS: Sequence[str | Column] = (
    "", "kind", "active", Column("GB/s each, one way", True), Column("errors", True), "lead to",
)  # fmt: skip


def fabric_links(accelerators: Sequence[Accelerator]) -> Table:
    alike: dict[tuple[str, ...], list[str]] = {}
    for one in accelerators:
        for texts in _texts(one.links):
            alike.setdefault(texts, []).append(one.memory)
    rows = ((spans(names), *texts) for texts, names in alike.items())
    return table("Fabric links", _HEADS, rows)._replace(few=_FEW)


def _texts(links: Sequence[FabricLink]) -> Iterator[tuple[str, ...]]:
    """What the columns say of each kind of links."""
    kinds: dict[tuple[str, str | None, float | None], list[FabricLink]] = {}
    for link in links:
        kinds.setdefault((link.kind, link.version, link.rate), []).append(link)
    for (kind, version, rate), own in kinds.items():
        states = Counter(link.active for link in own)
        unsure = f" ({states[None]} unknown)" if states[None] else ""
        yield (
            f"{kind} {version or ''}".rstrip(),
            f"{states[True]} of {len(own)}{unsure}",
            "unknown" if rate is None else f"{rate / 1e9:.1f}",
            str(sum(link.errors or 0 for link in own) or ""),
            _ends(Counter(link.remote or "unknown" for link in own)),
        )


def _ends(counts: Counter[str]) -> str:
    """`sim:1-3, nvswitch (18)`: how many lead there, where it is more than one."""
    groups: dict[int, list[str]] = {}
    for name in sorted(counts, key=lambda one: (len(one), one)):
        groups.setdefault(counts[name], []).append(name)
    return ", ".join(
        spans(names) + (f" ({count}{' each' * (len(names) > 1)})" if count > 1 else "")
        for count, names in groups.items()
    )
