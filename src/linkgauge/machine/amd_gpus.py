"""AMD's GPUs as their driver, amdgpu, shows them in sysfs: link, clocks, power, memory, errors and
XGMI. No library is needed, and a captured tree reads like the machine. The peak of the memory is
left open: its transfers a clock differ between generations, and no file has them.

Source of the files' formats: the kernel's Documentation/gpu/amdgpu. A virtual machine shows few of
them; what is missing is null, and `unknown` says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import takewhile

import msgspec

from linkgauge.model.gaps import Gap
from linkgauge.model.inventory import Accelerator, PciLink, Telemetry

from .amd_links import ComputeNode, compute_nodes, read_links
from .amd_metrics import Metrics, parse_metrics
from .pci import gigatransfers, lanes, lineage
from .tree import Root, hexadecimal, names_in, number, read_bytes, read_text, resolve

DEVICES = "sys/bus/pci/devices"
VENDOR = 0x1002
_MILLI, _MICRO, _MEGA = 1e-3, 1e-6, 1e6
_CURRENT = re.compile(r"\d+: *([0-9]{1,9}) *Mhz *\*", re.IGNORECASE)
_LINK = re.compile(r"\d+: *([0-9.]{1,5}GT/s), *x([0-9]{1,2})\b[^\n*]*\*")
_LEVEL = re.compile(r"\d+: *([0-9]{1,9}) *Mhz", re.IGNORECASE)
_UNCORRECTED = re.compile(r"^ue: *([0-9]{1,18})$", re.MULTILINE)


def is_amd(root: Root, address: str) -> bool:
    """Whether the PCI function at this address is AMD's."""
    return hexadecimal(_text(root, address, "vendor")) == VENDOR


def describe(root: Root, known: Accelerator, peers: Mapping[str, str]) -> Accelerator:
    """Adds what the driver shows to what is `known`, whose PCI address is. `peers` are the memories
    of all devices by PCI address. Never raises."""
    address = known.pci or ""
    nodes = compute_nodes(root)
    node = nodes.get(address)
    now = sense(root, known.memory, address)
    clock, bus = _memory(root, address, node)
    errors = _UNCORRECTED.search(_text(root, address, "ras/umc_err_count") or "")
    return msgspec.structs.replace(
        known,
        driver=_line(root, "sys/module/amdgpu/version") or known.driver,
        firmware=_text(root, address, "vbios_version"),
        board=_text(root, address, "product_number"),
        uuid=known.uuid or _text(root, address, "unique_id"),
        link=_link(root, address, now),
        links=read_links(root, address, nodes, peers),
        memory_clock=clock,
        memory_bus=bus,
        isa=node.isa if node is not None else None,
        clock=now.clock,
        max_clock=_highest(_text(root, address, "pp_dpm_sclk")),
        throttled=now.throttled,
        temperature=now.temperature,
        power=now.power,
        power_limit=_sensor(root, address, _MICRO, "power1_cap"),
        pcie_replays=now.pcie_replays,
        ecc=None if errors is None else True,
        ecc_errors=None if errors is None else int(errors[1]),
    )


def sense(root: Root, memory: str, address: str) -> Telemetry:
    """The current state of the GPU at this address. Never raises."""
    table: Metrics = parse_metrics(read_bytes(root, f"{DEVICES}/{address}/gpu_metrics"))
    slot = _slot(root, address)
    speed, width = (_text(root, slot, f"current_link_{what}") or "" for what in ("speed", "width"))
    level = _LINK.search(_text(root, address, "pp_dpm_pcie") or "") or ("", "", "")
    clock = _CURRENT.search(_text(root, address, "pp_dpm_sclk") or "")
    hottest = _sensor(root, address, _MILLI, "temp2_input", "temp1_input")
    return Telemetry(
        memory=memory,
        link_speed=gigatransfers(speed) or gigatransfers(level[1]) or table.link_speed,
        link_width=lanes(width) or lanes(level[2]) or table.link_width,
        clock=float(clock[1]) * _MEGA if clock else table.clock,
        temperature=table.temperature if hottest is None else hottest,
        power=_sensor(root, address, _MICRO, "power1_average", "power1_input") or table.power,
        throttled=table.throttled,
        pcie_replays=number(_text(root, address, "pcie_replay_count")),
    )


def _link(root: Root, address: str, now: Telemetry) -> PciLink:
    slot = _slot(root, address)
    speed, width = (_text(root, slot, f"max_link_{what}") or "" for what in ("speed", "width"))
    return PciLink(now.link_speed, now.link_width, gigatransfers(speed), lanes(width))


def _slot(root: Root, address: str) -> str:
    """The function whose link is the slot's: the topmost bridge of AMD's own above the GPU."""
    line = lineage(address, resolve(root, f"{DEVICES}/{address}") or address)
    return [address, *takewhile(partial(is_amd, root), line[-2::-1])][-1]


def _memory(root: Root, address: str, node: ComputeNode | None) -> tuple[float | None, int | None]:
    """The highest clock of its memory, and the bits of its bus."""
    if node is not None and node.memory_clock:
        return node.memory_clock, node.memory_bus
    highest = _highest(_text(root, address, "pp_dpm_mclk"))
    return highest, node.memory_bus if node else None


def _highest(levels: str | None) -> float | None:
    """Of `0: 132Mhz`, `1: 2100Mhz *`."""
    found = [float(one) for one in _LEVEL.findall(levels or "")]
    return max(found) * _MEGA if found else None


def _sensor(root: Root, address: str, scale: float, *names: str) -> float | None:
    """The first of these values of its hwmon that there is."""
    folder = f"{DEVICES}/{address}/hwmon"
    for monitor in sorted(names_in(root, folder)):
        for name in names:
            value = number(read_text(root, f"{folder}/{monitor}/{name}"))
            if value is not None:
                return value * scale
    return None


def with_gaps(found: Accelerator) -> Accelerator:
    """Adds what could not be read of it."""
    return msgspec.structs.replace(found, unknown=(*found.unknown, *_missing(found)))


def _missing(found: Accelerator) -> Iterator[Gap]:
    fields = {
        "link": found.link.speed,
        "clock": found.clock,
        "power": found.power,
        "temperature": found.temperature,
        "PCIe replays": found.pcie_replays,
        "ECC errors": found.ecc_errors,
    }
    if names := [name for name, value in fields.items() if value is None]:
        why = "amdgpu does not show it in sysfs (another driver, or a virtual machine)"
        yield Gap(why, *names)
    if found.memory_bus is None:
        why = "the compute driver does not list it: load amdgpu with KFD"
        yield Gap(why, "XGMI", "memory bus")


def _text(root: Root, address: str, name: str) -> str | None:
    return _line(root, f"{DEVICES}/{address}/{name}")


def _line(root: Root, path: str) -> str | None:
    """The file without blanks at its ends; None if unreadable or empty."""
    return (read_text(root, path) or "").strip() or None
