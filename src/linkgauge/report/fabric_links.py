"""Accelerators' own links (NVLink and the like), identical ones on one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
from rich.text import Text

from linkgauge.model.inventory import Accelerator, FabricLink

from .subjects import spans

_MOST = 8
"""Most lines per kind of link; if there are more, their ends are listed together."""


class _LinkSummary(msgspec.Struct, frozen=True):
    """Links of one kind of an accelerator: their description, and where they lead."""

    memory: str
    text: str
    ends: tuple[tuple[str, int], ...]


def fabric_lines(accelerators: Sequence[Accelerator]) -> Iterator[Text]:
    """`sim:0-7: 18 of 18 nvlink 4.0 active, 25.0 GB/s each, to nvswitch (18)`."""
    by_kind: dict[str, list[_LinkSummary]] = {}
    for one in accelerators:
        for bundle in _bundles(one):
            by_kind.setdefault(bundle.text, []).append(bundle)
    if by_kind:
        yield Text("Fabric links (rates of one direction)", "bold")
    for text, bundles in by_kind.items():
        alike: dict[tuple[tuple[str, int], ...], list[str]] = {}
        for bundle in bundles:
            alike.setdefault(bundle.ends, []).append(bundle.memory)
        if len(alike) > _MOST:
            together = spans(dict.fromkeys(name for ends in alike for name, _ in ends))
            alike = {((together, 0),): [bundle.memory for bundle in bundles]}
        for ends, memories in alike.items():
            yield Text.assemble((spans(memories), "bold"), f": {text}, to {_listed(ends)}")


def _listed(ends: Sequence[tuple[str, int]]) -> str:
    """`sim:1-3, nvswitch (18)`: how many lead there, where it is more than one."""
    counts = dict.fromkeys(count for _, count in ends)
    groups = {
        count: sorted((name for name, own in ends if own == count), key=_by_number)
        for count in counts
    }
    return ", ".join(
        spans(names) + (f" ({count}{' each' if len(names) > 1 else ''})" if count > 1 else "")
        for count, names in groups.items()
    )


def _by_number(name: str) -> tuple[int, str]:
    return len(name), name


def _bundles(accelerator: Accelerator) -> Iterator[_LinkSummary]:
    kinds: dict[tuple[str, str | None, float | None], list[FabricLink]] = {}
    for link in accelerator.links:
        kinds.setdefault((link.kind, link.version, link.rate), []).append(link)
    for (kind, version, rate), links in kinds.items():
        active = sum(link.active is True for link in links)
        unsure = sum(link.active is None for link in links)
        errors = sum(link.errors or 0 for link in links)
        parts = [
            f"{active} of {len(links)} {kind}{f' {version}' if version else ''} active"
            + (f" ({unsure} unknown)" if unsure else ""),
            "rate unknown" if rate is None else f"{rate / 1e9:.1f} GB/s each",
            *([f"{errors} errors"] if errors else []),
        ]
        ends = Counter(link.remote or "unknown" for link in links)
        yield _LinkSummary(accelerator.memory, ", ".join(parts), tuple(ends.items()))
