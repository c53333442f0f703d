"""The commands by which each kind of system installs packages."""

import pytest

from linkgauge.machine.packages import package_manager
from machine_kit import captured


def commands(release, *packages):
    manager = package_manager(captured({"etc/os-release": release}))
    return manager and manager.commands(packages)


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("ID=debian", ("apt-get update", "apt-get install -y numactl util-linux")),
        (
            'ID=linuxmint\nID_LIKE="ubuntu debian"',
            ("apt-get update", "apt-get install -y numactl util-linux"),
        ),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"', ("dnf install -y numactl util-linux",)),
        ('ID="opensuse-leap"\nID_LIKE="suse opensuse"', ("zypper install -y numactl util-linux",)),
        ("ID=arch", ("pacman -S --needed numactl util-linux",)),
        ("ID=alpine", ("apk add numactl-tools lscpu",)),
        ("ID=unheard-of", None),
        ("", None),
    ],
)  # fmt: skip
def test_each_system_has_its_own(release, expected):
    assert commands(release, "numactl", "util-linux") == expected


def test_only_systems_that_package_nvidias_driver_install_it():
    def driver(release):
        return package_manager(captured({"etc/os-release": release})).driver

    assert driver("ID=ubuntu")[-1] == "ubuntu-drivers install --gpgpu"
    assert driver("ID=fedora") == ()
