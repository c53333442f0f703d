"""The commands by which each kind of system installs NVIDIA's driver."""

import pytest

from linkgauge.machine.packages import driver_commands
from machine_kit import captured


@pytest.mark.parametrize(
    ("release", "last"),
    [
        ("ID=debian", ["apt-get install -y nvidia-driver"]),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"', ["ubuntu-drivers install --gpgpu"]),
        ("ID=arch", ["pacman -S --needed nvidia"]),
        ("ID=fedora", []),
        ("ID=unheard-of", []),
        ("", []),
    ],
)
def test_only_systems_that_package_the_driver_install_it(release, last):
    assert [*driver_commands(captured({"etc/os-release": release}))[-1:]] == last
