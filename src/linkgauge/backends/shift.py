"""Where in its allocation a device's buffer begins: drawn, so that runs show what addresses do."""

from __future__ import annotations

import secrets

_SHIFT, _SHIFT_STEP = 64 << 20, 2 << 20
"""A device buffer starts at a random multiple of the step, up to _SHIFT, within its allocation. The
driver gives every process the same addresses, which affect the speed of copies: without the shift,
runs would agree with each other but not show the device's spread."""


def shift_within(size: int) -> int:
    """Where in its allocation a device's buffer of `size` bytes begins: drawn."""
    return secrets.randbelow(min(_SHIFT, size) // _SHIFT_STEP + 1) * _SHIFT_STEP
