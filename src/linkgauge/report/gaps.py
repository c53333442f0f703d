"""What could not be read of a machine, each reason once, with what would let it be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from linkgauge.model.inventory import Inventory

from .subjects import spans

_NAMED = 4


def gap_lines(inventory: Inventory) -> Iterator[Text]:
    """A line for each reason: what of whom, and why."""
    found: dict[str, dict[str, list[str]]] = {}
    for owner, reasons in _reasons(inventory):
        for reason in reasons:
            what, _, why = reason.partition(": ")
            owners = found.setdefault(why or what, {}).setdefault(what if why else "", [])
            owners += [owner] if owner not in owners else []
    if found:
        yield Text("Not read", "bold")
    for why, missing in found.items():
        told = "; ".join(_told(what, owners) for what, owners in _joined(missing))
        yield Text.assemble((f"  {told}" if told else "  ", "yellow"), f": {why}" if told else why)


def for_root(inventory: Inventory | None) -> list[str]:
    """What root could read: a line for each reason."""
    lines = gap_lines(inventory) if inventory else ()
    return [line.plain.strip() for line in lines if line.plain.endswith("run as root")]


def _reasons(inventory: Inventory) -> Iterator[tuple[str, tuple[str, ...]]]:
    """By owner; a machine's and a host's are nobody's."""
    yield "", inventory.unknown
    yield "", inventory.host.unknown
    for accelerator in inventory.accelerators:
        yield accelerator.memory, accelerator.unknown
    for adapter in inventory.adapters:
        yield adapter.name, adapter.unknown
    for function in inventory.pci:
        yield function.address, function.unknown


def _joined(missing: dict[str, list[str]]) -> list[tuple[str, list[str]]]:
    """Fields of the same owners together."""
    found: dict[tuple[str, ...], list[str]] = {}
    for what, owners in missing.items():
        found.setdefault(tuple(owners), []).append(what)
    return [(", ".join(filter(None, fields)), list(owners)) for owners, fields in found.items()]


def _told(what: str, owners: Iterable[str]) -> str:
    """`link.speed of 0000:01:00.0, 0000:02:00.0 and 3 more`."""
    named = [owner for owner in owners if owner]
    if not named:
        return what
    shown = spans(named).split(", ")
    more = f" and {len(shown) - _NAMED} more" if len(shown) > _NAMED + 1 else ""
    listed = ", ".join(shown[:_NAMED] if more else shown) + more
    return f"{what} of {listed}" if what else listed
