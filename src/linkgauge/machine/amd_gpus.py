"""Reads facts about AMD's GPUs from the sysfs files of amdgpu (Documentation/gpu/amdgpu)."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import takewhile

import msgspec

from linkgauge.model.hardware.gaps import Gap
from linkgauge.model.hardware.inventory import Accelerator, FabricLink, PciLink, Telemetry

from .pci import gigatransfers, lanes, lineage
from .tree import PCI, Root, hexadecimal, number

# Links between AMD's GPUs (XGMI), and the width of their memories, as the compute driver's topology
# lists them.

NODES = "sys/class/kfd/kfd/topology/nodes"
_XGMI = 11
"""The driver's number for XGMI links: KFD_IOLINK_TYPE_XGMI (HSA_IOLINKTYPE in the HSA runtime)."""


class ComputeNode(msgspec.Struct, frozen=True):
    """One GPU, as AMD's compute driver (KFD) lists it. `number` is the driver's number of the GPU,
    `memory_bus` is a width in bits, and `memory_clock` is the maximum in Hz."""

    number: int
    address: str
    isa: str | None = None
    memory_bus: int | None = None
    memory_clock: float | None = None


def compute_nodes(root: Root) -> dict[str, ComputeNode]:
    """Returns the GPUs that AMD's compute driver (KFD) lists, by PCI address; empty without it."""
    found = (_node(root, name) for name in sorted(root.names(NODES)) if name.isdecimal())
    return {node.address: node for node in found if node is not None}


def read_links(
    root: Root, address: str, nodes: Mapping[str, ComputeNode], peers: Mapping[str, str]
) -> tuple[FabricLink, ...]:
    """Returns a GPU's XGMI links, with rates in one direction. Parallel links to the same GPU count
    as one, as in the driver. A remote GPU that is not in `peers` is named by its PCI address."""
    node = nodes.get(address)
    if node is None:
        return ()
    by_number = {one.number: one.address for one in nodes.values()}
    return tuple(_links(root, node.number, by_number, peers))


def _links(
    root: Root, node: int, addresses: Mapping[int, str], peers: Mapping[str, str]
) -> Iterator[FabricLink]:
    count = 0
    for name in sorted(root.names(f"{NODES}/{node}/io_links"), key=lambda n: (len(n), n)):
        link = _properties(root, f"{NODES}/{node}/io_links/{name}/properties")
        address = addresses.get(link.get("node_to", -1))
        if link.get("type") != _XGMI or address is None:
            continue  # to the host, by PCIe
        rate = link.get("max_bandwidth") or None
        yield FabricLink(
            index=count,
            kind="XGMI",
            active=True,
            remote=peers.get(address, address),
            rate=None if rate is None else rate * _MEGA,
        )
        count += 1


def _node(root: Root, name: str) -> ComputeNode | None:
    found = _properties(root, f"{NODES}/{name}/properties")
    place = found.get("location_id")
    if not found.get("simd_count") or place is None:
        return None
    memory = _properties(root, f"{NODES}/{name}/mem_banks/0/properties")
    version = found.get("gfx_target_version", 0)
    clock = memory.get("mem_clk_max") or None
    return ComputeNode(
        number=int(name),
        address=f"{found.get('domain', 0):04x}:{place >> 8 & 255:02x}:{place >> 3 & 31:02x}"
        f".{place & 7:x}",
        isa=_isa(version) if version else None,
        memory_bus=memory.get("width") or None,
        memory_clock=None if clock is None else clock * _MEGA,
    )


def _isa(version: int) -> str:
    return f"gfx{version // 10000}{version // 100 % 100}{version % 100:x}"


def _properties(root: Root, path: str) -> dict[str, int]:
    words = (line.split() for line in (root.text(path) or "").splitlines())
    pairs = ((word[0], number(word[1])) for word in words if len(word) == 2)
    return {name: value for name, value in pairs if value is not None}


# What AMD's driver writes into gpu_metrics: a table whose header says its version.
#
# Source: the kernel's include/kgd_pp_interface.h, which never changes a version once it is out.

_HEADER = struct.Struct("<HBB")
_V1_3 = struct.Struct("<4s 6H 3H H Q Q 7H 7H I H H H 2x 2I 4H Q 3H 2x Q")
"""The layout of gpu_metrics on MI200 and on desktop cards."""
_V1_4 = struct.Struct("<4s 3H H 2H 4H Q Q I I H H H H")
"""The layout of gpu_metrics on MI300, up to the link speed. Fields after that differ between
versions."""
_UNKNOWN = 0xFFFF
"""The value of a 16-bit field that the device does not report."""
_MHZ, _TENTH = 1e6, 0.1
_THROTTLERS = {
    range(8): "power cap",
    range(16, 24): "current limit",
    range(32, 44): "hardware thermal slowdown",
    range(44, 46): "voltage regulator too hot",
    range(46, 48): "hardware slowdown",
}
"""Reasons for throttling, by the bits of the throttle status (SMU_THROTTLER_…_BIT)."""


def parse_metrics(table: bytes | None, memory: str = "") -> Telemetry:
    """Reads a `gpu_metrics` table. All values are None without a table of a known version."""
    version = _HEADER.unpack_from(table)[1:] if table and len(table) >= _HEADER.size else None
    if table and version == (1, 3) and len(table) >= _V1_3.size:
        found = _V1_3.unpack_from(table)
        # After the header: 6 temperatures, 3 activities, power, energy, time, 14 clocks, a status,
        # fan, width, speed, 2 counters, 4 temperatures, time, 3 voltages, the common status.
        return Telemetry(
            memory=memory,
            clock=_known(found[20], _MHZ),
            temperature=_known(found[2]),
            power=_known(found[10]),
            link_width=found[29] if _known(found[29]) else None,
            link_speed=_known(found[30], _TENTH),
            throttled=tuple(_reasons(found[-1])),
        )
    if table and version == (1, 4) and len(table) >= _V1_4.size:
        found = _V1_4.unpack_from(table)
        return Telemetry(
            memory=memory,
            temperature=_known(found[1]),
            power=_known(found[4]),
            link_width=found[15] if _known(found[15]) else None,
            link_speed=_known(found[16], _TENTH),
        )
    return Telemetry(memory=memory)


def _known(value: int, scale: float = 1.0) -> float | None:
    return None if value in (0, _UNKNOWN) else value * scale


def _reasons(status: int) -> list[str]:
    if status == (1 << 64) - 1:  # the device does not say
        return []
    return [word for bits, word in _THROTTLERS.items() if any(status >> bit & 1 for bit in bits)]


VENDOR = 0x1002
_MILLI, _MICRO, _MEGA = 1e-3, 1e-6, 1e6
_CURRENT = re.compile(r"\d+: *([0-9]{1,9}) *Mhz *\*", re.IGNORECASE)
_LINK = re.compile(r"\d+: *([0-9.]{1,5}GT/s), *x([0-9]{1,2})\b[^\n*]*\*")
_LEVEL = re.compile(r"\d+: *([0-9]{1,9}) *Mhz", re.IGNORECASE)
_UNCORRECTED = re.compile(r"^ue: *([0-9]{1,18})$", re.MULTILINE)


def is_amd(root: Root, address: str) -> bool:
    return hexadecimal(_text(root, address, "vendor")) == VENDOR


def describe(root: Root, known: Accelerator, peers: Mapping[str, str]) -> Accelerator:
    """Returns `known` with the facts of amdgpu. `peers` maps PCI addresses to memories' names."""
    address = known.pci or ""
    nodes = compute_nodes(root)
    node = nodes.get(address)
    now = sense(root, known.memory, address)
    isa = node.isa if node is not None else None
    clock, bus = _memory(root, address, node)
    errors = _UNCORRECTED.search(_text(root, address, "ras/umc_err_count") or "")
    return msgspec.structs.replace(
        known,
        driver=root.line("sys/module/amdgpu/version") or known.driver,
        firmware=_text(root, address, "vbios_version"),
        board=_text(root, address, "product_number"),
        uuid=known.uuid or _text(root, address, "unique_id"),
        link=msgspec.structs.replace(
            _slot_link(root, address), speed=now.link_speed, width=now.link_width
        ),
        links=read_links(root, address, nodes, peers),
        memory_clock=clock,
        memory_bus=bus,
        memory_rate=_peak(isa, clock, bus),
        isa=isa,
        clock=now.clock,
        max_clock=_highest(_text(root, address, "pp_dpm_sclk")),
        throttled=now.throttled,
        temperature=now.temperature,
        power=now.power,
        power_limit=_sensor(root, address, _MICRO, "power1_cap"),
        power_default=_sensor(root, address, _MICRO, "power1_cap_default"),
        pcie_replays=now.pcie_replays,
        ecc=None if errors is None else True,
        ecc_errors=None if errors is None else int(errors[1]),
    )


def sense(root: Root, memory: str, address: str) -> Telemetry:
    table = parse_metrics(root.content(f"{PCI}/{address}/gpu_metrics"), memory)
    link = _slot_link(root, address)
    level = _LINK.search(_text(root, address, "pp_dpm_pcie") or "") or ("", "", "")
    clock = _CURRENT.search(_text(root, address, "pp_dpm_sclk") or "")
    hottest = _sensor(root, address, _MILLI, "temp2_input", "temp1_input")
    return msgspec.structs.replace(
        table,
        link_speed=link.speed or gigatransfers(level[1]) or table.link_speed,
        link_width=link.width or lanes(level[2]) or table.link_width,
        clock=float(clock[1]) * _MEGA if clock else table.clock,
        temperature=table.temperature if hottest is None else hottest,
        power=_sensor(root, address, _MICRO, "power1_average", "power1_input") or table.power,
        pcie_replays=number(_text(root, address, "pcie_replay_count")),
    )


def _slot_link(root: Root, address: str) -> PciLink:
    """Returns the PCIe link of a GPU's slot: the link of the topmost AMD bridge above the GPU
    (cards contain bridges) or, without a bridge, the GPU's own link."""
    line = lineage(address, root.resolve(f"{PCI}/{address}") or address)
    slot = [address, *takewhile(partial(is_amd, root), line[-2::-1])][-1]
    speed, width, max_speed, max_width = (
        _text(root, slot, f"{which}_link_{what}") or ""
        for which in ("current", "max")
        for what in ("speed", "width")
    )
    ends = gigatransfers(speed), lanes(width), gigatransfers(max_speed), lanes(max_width)
    return PciLink(*ends)


def _memory(root: Root, address: str, node: ComputeNode | None) -> tuple[float | None, int | None]:
    if node is not None and node.memory_clock:
        return node.memory_clock, node.memory_bus
    highest = _highest(_text(root, address, "pp_dpm_mclk"))
    return highest, node.memory_bus if node else None


_TRANSFERS = {
    2: ("gfx900", "gfx906", "gfx908", "gfx90a"),
    4: ("gfx940", "gfx941", "gfx942", "gfx950"),
    16: ("gfx1010", "gfx1011", "gfx1012", "gfx1030", "gfx1031", "gfx1032", "gfx1034", "gfx1100",
         "gfx1101", "gfx1102", "gfx1200", "gfx1201"),
}  # fmt: skip
"""Instruction sets by the memory's transfers per pin and clock cycle: 2 for HBM2, 4 for HBM3, and
16 for GDDR6. The clock is that of the driver. The resulting peaks are those in data sheets: 1.6
TB/s for a die of MI250X (1.6 GHz, 4096 bits), 5.3 TB/s for MI300X (1.3 GHz, 8192 bits) and 512 GB/s
for RX 6800 (1 GHz, 256 bits)."""


def _peak(isa: str | None, clock: float | None, bus: int | None) -> float | None:
    """Returns the memory's peak in bytes/s: transfers per cycle (by `isa`) × clock × width ÷ 8."""
    transfers = next((many for many, sets in _TRANSFERS.items() if isa in sets), None)
    return transfers * clock * bus / 8 if transfers and clock and bus else None


def _highest(levels: str | None) -> float | None:
    found = [float(one) for one in _LEVEL.findall(levels or "")]
    return max(found) * _MEGA if found else None


def _sensor(root: Root, address: str, scale: float, *names: str) -> float | None:
    folder = f"{PCI}/{address}/hwmon"
    for monitor in sorted(root.names(folder)):
        for name in names:
            value = root.number(f"{folder}/{monitor}/{name}")
            if value is not None:
                return value * scale
    return None


def with_gaps(found: Accelerator) -> Accelerator:
    """Returns the accelerator, with the facts that could not be read added to `unknown`."""
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
    return root.line(f"{PCI}/{address}/{name}")
