"""Remedies that several checks share: shell commands or, after `# `, plain text."""

from __future__ import annotations

POWER_CYCLE = (
    "# Power the machine off and on. Check the card's seat, its cables and its power supply."
)
RESEAT = "# Reseat the card and its riser or cable."
RESEAT_BRIDGE = "# Reseat the device's module or, if it is a PCIe card, its bridge to other cards."
RESET = "# Reset the device, or power the machine off and on. If it recurs, replace the device."
LESS_MEMORY = (
    "cat /proc/self/cgroup  # prints PATH; /sys/fs/cgroup/PATH/memory.max has the limit",
    "# Measure with a smaller --size.",
)
IOMMU_PT = "# Boot with iommu=pt on the kernel's command line."
HUGE_PAGES = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
SMT_OFF = "echo off | sudo tee /sys/devices/system/cpu/smt/control"
NEAR_NODE = "# Run with --numa-node N for each node N: the fastest one is the nearest."
BUSIEST = "ps -eo pcpu,pid,args --sort=-pcpu | head  # programs by their use of the CPUs"
FABRIC_MANAGER = "systemctl status nvidia-fabricmanager"
DEVICE = "DEVICE=ADDRESS"
PORT_ABOVE = 'PORT=$(basename "$(dirname "$(readlink -f "/sys/bus/pci/devices/$DEVICE")")")'
"""If DEVICE does not exist, the result is no address, and setpci refuses it."""
COMPARE_ON_HOST = ("# On the host:", "virsh dumpxml NAME > NAME.xml; linkgauge vm NAME.xml")


def kernel_log(*words: str) -> str:
    """Returns a command that shows the kernel's log lines with one of these words."""
    return f"sudo dmesg -T | grep -iE '{'|'.join(words)}'"


DEVICE_LOST = (kernel_log("xid", "fallen off", "aer", "pciehp"), POWER_CYCLE)


def link_state(address: str, fields: str = "LnkCap|LnkSta|LnkCtl2") -> str:
    return f"sudo lspci -vv -s {address} | grep -E '{fields}'"


def restarted(name: str) -> tuple[str, ...]:
    """Returns commands that restart a virtual machine. `name` is quoted for a shell."""
    return (
        "# Shut the domain down and start it again. A reboot in the guest does not.",
        f"virsh shutdown {name}",
        f"virsh start {name}  # once it is shut off",
    )
