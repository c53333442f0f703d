"""What devices report now, as metrics."""

from __future__ import annotations

from collections.abc import Iterable

from linkgauge.model.inventory import FabricLink, LiveDevice, PciFunction, Seen

from .families import Families

HOST = ("host", "simulated")
PCI = (*HOST, "pci", "kind")
DEVICE = (*HOST, "device", "pci")
LINK = (*DEVICE, "kind", "link")
GT = 1e9
REASONS = (
    "clocks set by the user", "power cap", "hardware slowdown", "sync boost",
    "software thermal slowdown", "hardware thermal slowdown", "power brake",
    "display clock setting",
)  # fmt: skip
"""Why a clock is held down: always shown, so that an alert sees 0 before it sees 1."""
_KINDS = {0x02: "network", 0x03: "accelerator", 0x06: "bridge", 0x0B: "accelerator",
          0x12: "accelerator"}  # fmt: skip


def live_text(host: str, simulated: bool, seen: Iterable[Seen]) -> bytes:
    """The metrics of what was read of a machine."""
    families = Families()
    _declare_pci(families)
    _declare_devices(families)
    _declare_links(families)
    own = host, str(simulated).lower()
    for one in seen:
        above = {function.address: function for function in one.functions}
        for function in one.functions:
            _add_function(families, own, function, above.get(function.parent or ""))
        for device in one.devices:
            _add_device(families, own, device)
    return families.text()


def _declare_pci(families: Families) -> None:
    for name, what in (
        ("pcie_link_speed_transfers_per_second", "Transfers a second of each lane, now."),
        ("pcie_link_speed_max_transfers_per_second", "The most that both ends of the link can."),
        ("pcie_link_width_lanes", "Lanes in use."),
        ("pcie_link_width_max_lanes", "Lanes that both ends of the link have."),
    ):
        families.gauge(name, what, PCI)
    families.counter("pcie_errors", "Errors that the kernel counted (AER).", (*PCI, "severity"))


def _add_function(
    families: Families, own: tuple[str, str], function: PciFunction, above: PciFunction | None
) -> None:
    kind = _KINDS.get((function.class_code or 0) >> 16, "other")
    labels = *own, function.address, kind
    for severity, count in (function.errors or {}).items():
        families.add("pcie_errors", float(count), *labels, severity)
    link = function.link
    if function.port in ("root port", "downstream port"):
        return  # the link below a port is that of the function there
    families.add("pcie_link_speed_transfers_per_second", _scaled(link.speed), *labels)
    families.add("pcie_link_width_lanes", link.width, *labels)
    upper = above.link if above is not None else link
    speed, width = _both(link.max_speed, upper.max_speed), _both(link.max_width, upper.max_width)
    families.add("pcie_link_speed_max_transfers_per_second", _scaled(speed), *labels)
    families.add("pcie_link_width_max_lanes", width, *labels)


def _both(one: float | None, other: float | None) -> float | None:
    """What both ends can; one end's where the other is not known."""
    return min((value for value in (one, other) if value is not None), default=None)


def _scaled(speed: float | None) -> float | None:
    return None if speed is None else speed * GT


def _declare_devices(families: Families) -> None:
    families.gauge("gpu_info", "Always 1.", (*DEVICE, "model", "uuid", "driver"))
    families.gauge("gpu_throttled", "Whether this holds the clock down.", (*DEVICE, "reason"))
    families.gauge("gpu_clock_hertz", "The clock now.", (*DEVICE, "clock"))
    families.gauge("gpu_clock_max_hertz", "The highest clock.", (*DEVICE, "clock"))
    families.gauge(
        "gpu_pcie_throughput_bytes_per_second", "What the device moves over PCIe now.",
        (*DEVICE, "direction"),
    )  # fmt: skip
    families.counter("gpu_ecc_errors", "ECC errors since the driver was loaded.", (*DEVICE, "kind"))
    families.counter("gpu_pcie_replays", "Packets that PCIe sent again.", DEVICE)
    for name, what in (
        ("gpu_up", "Whether the device answers (0: it has fallen off the bus)."),
        ("gpu_temperature_celsius", "Temperature of the processor."),
        ("gpu_power_watts", "Power drawn now."),
        ("gpu_power_limit_watts", "The limit of power in force."),
        ("gpu_ecc_enabled", "Whether ECC is on."),
        ("gpu_row_remap_pending", "Whether rows of memory wait for a reset to be replaced."),
    ):
        families.gauge(name, what, DEVICE)


def _add_device(families: Families, own: tuple[str, str], device: LiveDevice) -> None:
    of = device.accelerator
    labels = *own, str(device.number), of.pci or ""
    families.add("gpu_up", float(device.up), *labels)
    if not device.up:
        return
    families.add("gpu_info", 1.0, *labels, of.model, of.uuid or "", of.driver or "")
    families.add("gpu_temperature_celsius", of.temperature, *labels)
    families.add("gpu_power_watts", of.power, *labels)
    families.add("gpu_power_limit_watts", of.power_limit, *labels)
    families.add("gpu_ecc_enabled", _number(of.ecc), *labels)
    families.add("gpu_row_remap_pending", _number(of.remap_pending), *labels)
    families.add("gpu_clock_hertz", of.clock, *labels, "sm")
    families.add("gpu_clock_hertz", device.clock_memory, *labels, "memory")
    families.add("gpu_clock_max_hertz", of.max_clock, *labels, "sm")
    families.add("gpu_clock_max_hertz", of.memory_clock, *labels, "memory")
    families.add("gpu_pcie_replays", of.pcie_replays, *labels)
    families.add("gpu_ecc_errors", device.ecc_corrected, *labels, "corrected")
    families.add("gpu_ecc_errors", of.ecc_errors, *labels, "uncorrected")
    families.add("gpu_pcie_throughput_bytes_per_second", device.pcie_sent, *labels, "sent")
    families.add("gpu_pcie_throughput_bytes_per_second", device.pcie_received, *labels, "received")
    if of.clock is not None:
        for reason in dict.fromkeys((*REASONS, *of.throttled)):
            families.add("gpu_throttled", float(reason in of.throttled), *labels, reason)
    _add_links(families, labels, device)


def _number(value: bool | None) -> float | None:
    return None if value is None else float(value)


def _declare_links(families: Families) -> None:
    families.gauge("fabric_link_info", "Where a link leads, always 1.",
                   (*LINK, "remote", "version"))  # fmt: skip
    families.gauge("fabric_link_up", "Whether a link is active.", LINK)
    families.gauge(
        "fabric_link_rate_bytes_per_second", "Signalling rate of one direction of a link.", LINK
    )
    families.counter("fabric_link_errors", "Errors that a link counted.", LINK)
    families.counter("fabric_link_bytes", "Payload that a link carried.", (*LINK, "direction"))


def _add_links(families: Families, device: tuple[str, ...], of: LiveDevice) -> None:
    for link in of.accelerator.links:
        own = *device, link.kind, str(link.index)
        families.add("fabric_link_info", 1.0, *own, link.remote or "", link.version or "")
        families.add("fabric_link_up", _number(link.active), *own)
        families.add("fabric_link_rate_bytes_per_second", _rate(link), *own)
        families.add("fabric_link_errors", link.errors, *own)
    for traffic in of.traffic:
        own = *device, traffic.kind, str(traffic.index)
        families.add("fabric_link_bytes", traffic.sent, *own, "sent")
        families.add("fabric_link_bytes", traffic.received, *own, "received")


def _rate(link: FabricLink) -> float | None:
    return link.rate if link.active else None
