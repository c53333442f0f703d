"""Finds the commands that install packages on this system."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from .tree import ROOT, Root


class Manager(msgspec.Struct, frozen=True):
    """A package manager. `names` maps common package names to the manager's names. `driver` has the
    commands that install NVIDIA's driver."""

    install: str
    refresh: str = ""
    names: dict[str, str] = {}
    driver: tuple[str, ...] = ()

    def commands(self, packages: Sequence[str]) -> tuple[str, ...]:
        if not packages:
            return ()
        named = " ".join(self.names.get(name, name) for name in packages)
        return tuple(filter(None, (self.refresh, f"{self.install} {named}")))


_APT = Manager("apt-get install -y", "apt-get update", driver=("apt-get install -y nvidia-driver",))
_MANAGERS = {
    "ubuntu": msgspec.structs.replace(
        _APT,
        driver=("apt-get install -y ubuntu-drivers-common", "ubuntu-drivers install --gpgpu"),
    ),
    "debian": _APT,
    "fedora": Manager("dnf install -y"),
    "rhel": Manager("dnf install -y"),
    "suse": Manager("zypper install -y"),
    "opensuse": Manager("zypper install -y"),
    "arch": Manager("pacman -S --needed", driver=("pacman -S --needed nvidia",)),
    "alpine": Manager("apk add", names={"numactl": "numactl-tools", "util-linux": "lscpu"}),
}


def package_manager(root: Root = ROOT) -> Manager | None:
    """Returns the package manager of this distribution or of its parent (os-release), or None."""
    release = root.text("etc/os-release") or ""
    found = dict(re.findall(r'^(ID|ID_LIKE)="?([^"\n]*)"?$', release, re.MULTILINE))
    names = f"{found.get('ID', '')} {found.get('ID_LIKE', '')}".split()
    return next((_MANAGERS[name] for name in names if name in _MANAGERS), None)
