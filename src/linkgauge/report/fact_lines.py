"""In what machines and settings differ."""

from __future__ import annotations

from collections.abc import Sequence

from linkgauge.judge.machine_facts import Fact

from .blocks import Block, Column, Entry, Prose, Table, cut, plain


def fact_table(facts: Sequence[Fact], names: Sequence[str], where: str = "") -> Block:
    """A row for each fact, with the sides that have each value."""
    if not facts:
        text = f"{where}: " if where else ""
        return Prose(
            [plain(f"{text}machines and settings are alike as far as they are known", "dim")]
        )
    rows = [(Entry(fact.name), Entry(cut(said(fact, names)))) for fact in facts]
    caption = f"what differs on {where}" if where else "what differs"
    return Table(plain(caption, "strong"), (Column(""), Column("value (of which)")), rows)


def moved(fact: Fact) -> str:
    """`570 → 580`: a value after the other."""
    return " → ".join(value or "unknown" for value in fact.values)


def said(fact: Fact, names: Sequence[str]) -> str:
    """`580.1 (before); 590.2 (after)`."""
    owners: dict[str | None, list[str]] = {}
    for name, value in zip(names, fact.values, strict=True):
        owners.setdefault(value, []).append(name)
    return "; ".join(f"{value or 'unknown'} ({', '.join(of)})" for value, of in owners.items())
