"""In what machines and settings differ, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from linkgauge.judge.machine_facts import Fact

from .wrapping import Hanging


def fact_lines(facts: Sequence[Fact], names: Sequence[str]) -> Iterator[RenderableType]:
    """What differs: a line for each fact, with the sides that have each value."""
    if not facts:
        yield Text("machines and settings are alike as far as they are known", "dim")
        return
    yield Text("what differs", "bold")
    room = max(len(fact.name) for fact in facts) + 4
    for fact in facts:
        yield Hanging(
            Text.assemble((f"  {fact.name:<{room - 2}}", "cyan"), said(fact, names)), room
        )


def moved(fact: Fact) -> str:
    """`570 → 580`: a value after the other."""
    return " → ".join(value or "unknown" for value in fact.values)


def said(fact: Fact, names: Sequence[str]) -> str:
    """`580.1 (before); 590.2 (after)`."""
    owners: dict[str | None, list[str]] = {}
    for name, value in zip(names, fact.values, strict=True):
        owners.setdefault(value, []).append(name)
    return "; ".join(f"{value or 'unknown'} ({', '.join(of)})" for value, of in owners.items())
