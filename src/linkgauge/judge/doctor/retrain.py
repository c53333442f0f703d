"""Retrains a PCI Express link at the highest speed that both ends support.

The port above the device decides: bits 3:0 of its Link Control 2 (capability + 30h) are the target
speed, bit 5 of its Link Control (capability + 10h) starts the training (PCI Express Base
Specification, 7.5.3.7 and 7.5.3.19). Only these bits are written, under a mask."""

from __future__ import annotations

import re

from linkgauge.judge.remedies import DEVICE, PORT_ABOVE, link_state
from linkgauge.machine.tree import ADDRESS
from linkgauge.model.hardware.inventory import PciFunction
from linkgauge.model.hardware.pcie import generation

_STOP = (
    "# First stop the virtual machines and programs that use the device: the link goes down for a "
    "moment, and they would crash or hang."
)
_ON_THE_HOST = (
    (
        "# On the virtual machine's host, whose addresses are not the guest's: ADDRESS is <source> "
        "of the device's <hostdev> in `virsh dumpxml NAME`."
    ),
    _STOP,
    f"{DEVICE}  # such as 0000:41:00.0",
    PORT_ABOVE,
)
_PORT, _DEVICE = '"${PORT:?}"', '"$DEVICE"'
"""The shell variables of the port and the device. If PORT is empty, `:?` stops the command; without
an address setpci would write to all functions."""


def lines(
    port: PciFunction | None, function: PciFunction, speed: float, *, virtual: bool
) -> tuple[str, ...]:
    """Returns the commands that retrain a link, and a systemd unit that repeats them at each boot.
    If the port above is not visible, returns a hint where to look. `speed` is in GT/s. The commands
    are for the host. In a `virtual` machine, they use variables for the host's addresses."""
    code = generation(speed)  # the encoding of the target speed field
    above, device = (
        (_PORT, _DEVICE)
        if virtual
        else (
            port.address if port and re.fullmatch(ADDRESS, port.address) else None,
            function.address,
        )
    )
    if code is None or above is None:
        return (
            (
                f"# The port above {function.address} is not visible here. On the host, find it "
                "with `lspci -tv`, then:"
            ),
            link_state("PORT"),
        )
    return (
        *(_ON_THE_HOST if virtual else (_STOP,)),
        f"sudo {_target(above, code)}  # target speed {speed:g} GT/s",
        f"sudo {_start(above)}  # retrain",
        link_state(device, "LnkSta:"),
        *(_unit("PORT", "DEVICE", code) if virtual else _unit(above, device, code)),
    )


def _unit(above: str, device: str, code: int) -> tuple[str, ...]:
    """Returns the lines of the systemd unit, and the commands that enable it. `code` is the
    register value of the speed."""
    is_named = device == "DEVICE"
    service = f"pcie-retrain{'' if is_named else '-' + device.replace(':', '-')}.service"
    values = ', with what `echo "$PORT" "$DEVICE"` prints for PORT and DEVICE' if is_named else ""
    return (
        f"# To repeat this at each boot, write /etc/systemd/system/{service}{values}:",
        "[Unit]",
        f"Description=Retrain the PCIe link of {device}",
        "Before=libvirtd.service virtqemud.service",
        "",
        "[Service]",
        "Type=oneshot",
        # Some distributions have setpci in /usr/sbin.
        f"ExecStart=/usr/bin/env {_target(above, code)}",
        f"ExecStart=/usr/bin/env {_start(above)}",
        "RemainAfterExit=yes",
        "",
        "[Install]",
        "WantedBy=multi-user.target",
        "# Then enable it:",
        f"sudo systemctl enable {service}",
        (
            "# Do not copy the unit found on the web that writes 0x0060 to LnkCtl2 of the card: "
            "that sets target speed 0, which no link has, and does not start the training."
        ),
    )


def _target(above: str, code: int) -> str:
    return f"setpci -s {above} CAP_EXP+30.w={code:x}:f"


def _start(above: str) -> str:
    return f"setpci -s {above} CAP_EXP+10.w=20:20"
