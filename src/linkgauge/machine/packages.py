"""Finds the commands that install NVIDIA's driver on this system."""

from __future__ import annotations

import re

from .tree import ROOT, Root

_COMMANDS = {
    "ubuntu": ("apt-get install -y ubuntu-drivers-common", "ubuntu-drivers install --gpgpu"),
    "debian": ("apt-get install -y nvidia-driver",),
    "arch": ("pacman -S --needed nvidia",),
}


def driver_commands(root: Root = ROOT) -> tuple[str, ...]:
    """Returns the commands for root; empty if this distribution does not package the driver. The
    file os-release names the distribution and those that it derives from."""
    release = root.text("etc/os-release") or ""
    found = dict(re.findall(r'^(ID|ID_LIKE)="?([^"\n]*)"?$', release, re.MULTILINE))
    names = f"{found.get('ID', '')} {found.get('ID_LIKE', '')}".split()
    return next((_COMMANDS[name] for name in names if name in _COMMANDS), ())
