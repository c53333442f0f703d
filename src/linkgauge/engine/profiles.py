"""Defines the profiles, which say how long and how precisely a run measures."""

from __future__ import annotations

from linkgauge.model.settings import Settings

_KI, _MI = 1 << 10, 1 << 20

PROFILES: dict[str, Settings] = {
    "quick": Settings(sizes=(64 * _MI,), profile="quick", precision=0.05, max_time=0.3),
    "standard": Settings(sizes=(512 * _MI,), profile="standard", precision=0.01, max_time=0.4),
    "full": Settings(
        sizes=(64 * _KI, 1 * _MI, 16 * _MI, 512 * _MI),
        profile="full",
        precision=0.005,
        max_time=20.0,
    ),
    "vm": Settings(sizes=(512 * _MI,), profile="vm", precision=0.02, max_time=0.2, rate_time=30.0),
}
