"""Small words of findings about virtual machines."""

from __future__ import annotations

from linkgauge.model.units import format_size


def several(count: int, what: str) -> str:
    """`1 vCPU is`, `2 vCPUs are`."""
    return f"1 {what} is" if count == 1 else f"{count} {what}s are"


def plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def sized(size: int) -> str:
    """A size to one decimal, without one where it is exact: 16 GiB, 15.6 GiB."""
    for power, name in ((40, "TiB"), (30, "GiB"), (20, "MiB")):
        if size >= 1 << power:
            return f"{size / (1 << power):.1f}".removesuffix(".0") + f" {name}"
    return format_size(size)
