"""How to retrain a PCI Express link at the highest speed that both ends support.

The port above the device decides: bits 3:0 of its Link Control 2 (capability + 30h) are the target
speed, bit 5 of its Link Control (capability + 10h) starts the training (PCI Express Base
Specification, 7.5.3.7 and 7.5.3.19). Both are written under a mask, so that no other bit changes.
"""

from __future__ import annotations

from linkgauge.judge.remedies import link_state
from linkgauge.model.inventory import PciFunction
from linkgauge.model.pcie import generation

_ON_THE_HOST = (
    "# On the virtual machine's host, where `lspci -tv` shows DEVICE and the PORT above it:"
)


def lines(
    port: PciFunction | None, function: PciFunction, speed: float, *, virtual: bool
) -> tuple[str, ...]:
    """The commands, and a systemd unit that repeats them at each boot; if no port above is visible,
    where to look. `speed` in GT/s. The lines belong on the host, whose addresses a `virtual`
    machine does not know: there they name PORT and DEVICE instead."""
    code = generation(speed)  # the encoding of the target speed field
    above, device = ("PORT", "DEVICE") if virtual else (port and port.address, function.address)
    if code is None or above is None:
        return (
            (
                f"# The port above {function.address} is not visible here. On the host, find it "
                "with `lspci -tv`, then:"
            ),
            link_state("PORT"),
        )
    target = f"setpci -s {above} CAP_EXP+30.w={code:x}:f"
    start = f"setpci -s {above} CAP_EXP+10.w=20:20"
    service = f"pcie-retrain-{device.replace(':', '-')}.service"
    return (
        *([_ON_THE_HOST] if virtual else ()),
        (
            "# First stop the virtual machines and programs that use the device: the link goes "
            "down for a moment, and they would crash or hang."
        ),
        f"sudo {target}  # target speed {speed:g} GT/s",
        f"sudo {start}  # retrain",
        link_state(device, "LnkSta:"),
        f"# To repeat this at each boot, write /etc/systemd/system/{service}:",
        "[Unit]",
        f"Description=Retrain the PCIe link of {device}",
        "Before=libvirtd.service virtqemud.service",
        "",
        "[Service]",
        "Type=oneshot",
        f"ExecStart=/usr/bin/env {target}",  # some distributions have setpci in /usr/sbin
        f"ExecStart=/usr/bin/env {start}",
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
