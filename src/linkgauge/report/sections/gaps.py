"""What could not be read on a machine, each reason once, with what would make it readable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkgauge.model.gaps import NEEDS_ROOT, Gap
from linkgauge.model.inventory import Inventory
from linkgauge.report.subjects import spans

_NAMED = 4


def gaps(inventory: Inventory) -> dict[str, str]:
    """What is missing of which owners, by the reason: `link.speed of sim:0-3`."""
    found: dict[str, dict[str, list[str]]] = {}
    for owner, unknown in _unknown(inventory):
        for gap in unknown:
            fields = found.setdefault(gap.why, {}).setdefault(owner, [])
            fields += [field for field in gap.fields if field not in fields]
    return {why: "; ".join(_listed(by_owner)) for why, by_owner in found.items()}


def for_root(inventory: Inventory | None) -> list[str]:
    """What root could read: a line for each reason."""
    found = gaps(inventory) if inventory else {}
    return [
        ": ".join(filter(None, (text, why)))
        for why, text in found.items()
        if why.endswith(NEEDS_ROOT)
    ]


def _unknown(inventory: Inventory) -> Sequence[tuple[str, tuple[Gap, ...]]]:
    """Unread fields by owner; those of the machine and the host have no owner."""
    return [
        ("", (*inventory.unknown, *inventory.host.unknown)),
        *((one.memory, one.unknown) for one in inventory.accelerators),
        *((one.name, one.unknown) for one in inventory.adapters),
        *((one.address, one.unknown) for one in inventory.pci),
    ]


def _listed(by_owner: dict[str, list[str]]) -> Iterator[str]:
    """`link.speed of 0000:01:00.0, 0000:02:00.0 and 3 more`: owners that lack the same at once."""
    alike: dict[str, list[str]] = {}
    for owner, fields in by_owner.items():
        alike.setdefault(", ".join(fields), []).append(owner)
    for what, owners in alike.items():
        shown = spans(filter(None, owners)).split(", ")
        more = f" and {len(shown) - _NAMED} more" if len(shown) > _NAMED + 1 else ""
        of = ", ".join(shown[:_NAMED] if more else shown) + more
        yield " of ".join(filter(None, (what, of)))
