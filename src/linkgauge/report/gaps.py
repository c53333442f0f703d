"""What could not be read on a machine, each reason once, with what would make it readable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from linkgauge.model.inventory import NEEDS_ROOT, Inventory, gaps_of

from .subjects import spans

_NAMED = 4


def gap_lines(inventory: Inventory) -> Iterator[Text]:
    """A line for each reason: what is missing of which owner, and why."""
    found = _by_reason(inventory)
    if found:
        yield Text("Not read", "bold")
    for why, missing in found.items():
        text = _listed(missing)
        yield Text.assemble((f"  {text}" if text else "  ", "yellow"), f": {why}" if text else why)


def for_root(inventory: Inventory | None) -> list[str]:
    """What root could read: a line for each reason."""
    found = _by_reason(inventory) if inventory else {}
    needed = {why: _listed(missing) for why, missing in found.items() if why.endswith(NEEDS_ROOT)}
    return [f"{text}: {why}" if text else why for why, text in needed.items()]


def _by_reason(inventory: Inventory) -> dict[str, dict[str, list[str]]]:
    """The owners of what is missing, by the reason and by what it is."""
    found: dict[str, dict[str, list[str]]] = {}
    for owner, unknown in _unknown(inventory):
        for gap in gaps_of(unknown):
            owners = found.setdefault(gap.why, {}).setdefault(", ".join(gap.fields), [])
            owners += [owner] if owner not in owners else []
    return found


def _unknown(inventory: Inventory) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Unread fields by owner; those of the machine and the host have no owner."""
    yield "", inventory.unknown
    yield "", inventory.host.unknown
    for accelerator in inventory.accelerators:
        yield accelerator.memory, accelerator.unknown
    for adapter in inventory.adapters:
        yield adapter.name, adapter.unknown
    for function in inventory.pci:
        yield function.address, function.unknown


def _listed(missing: dict[str, list[str]]) -> str:
    return "; ".join(_described(what, owners) for what, owners in _joined(missing))


def _joined(missing: dict[str, list[str]]) -> list[tuple[str, list[str]]]:
    """Fields with the same owners, merged."""
    found: dict[tuple[str, ...], list[str]] = {}
    for what, owners in missing.items():
        found.setdefault(tuple(owners), []).append(what)
    return [(", ".join(filter(None, fields)), list(owners)) for owners, fields in found.items()]


def _described(what: str, owners: Iterable[str]) -> str:
    """`link.speed of 0000:01:00.0, 0000:02:00.0 and 3 more`."""
    named = [owner for owner in owners if owner]
    if not named:
        return what
    shown = spans(named).split(", ")
    more = f" and {len(shown) - _NAMED} more" if len(shown) > _NAMED + 1 else ""
    listed = ", ".join(shown[:_NAMED] if more else shown) + more
    return f"{what} of {listed}" if what else listed
