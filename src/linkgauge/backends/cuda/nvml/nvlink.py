"""How a GPU's product, fabric, NVLinks and NVLink-C2C (its links to the CPU) are read from NVML."""

from __future__ import annotations

import ctypes
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from linkgauge.model.hardware.inventory import FabricLink

from .questions import Questions

_VERSIONS = {1: "1.0", 2: "2.0", 3: "2.2", 4: "3.0", 5: "3.1", 6: "4.0", 7: "5.0", 8: "6.0"}
"""The versions of NVLink, by NVML's nvmlNvlinkVersion_t."""
_RATES = {
    "1.0": 20e9,
    "2.0": 25e9,
    "2.2": 25e9,
    "3.0": 25e9,
    "3.1": 25e9,
    "4.0": 26.5625e9,
    "5.0": 50e9,
}
"""Bytes/s of a link in one direction, for drivers that do not report it. The values are from
NVIDIA's data sheets (P100 160, V100 300, A100 600, H100 900, B200 1800 GB/s both ways over 4, 6,
12, 18 and 18 links). The rate of NVLink 4 includes protocol overhead, as in NVML; 25 GB/s
remain."""
_ERRORS = (
    "ERROR_DL_REPLAY",
    "ERROR_DL_RECOVERY",
    "ERROR_DL_CRC",
    "COUNT_MALFORMED_PACKET_ERRORS",
    "COUNT_BUFFER_OVERRUN_ERRORS",
    "COUNT_RCV_ERRORS",
    "COUNT_LOCAL_LINK_INTEGRITY_ERRORS",
)
"""Error counters of a link. The first three exist up to NVLink 4, the others from NVLink 5 on.
Errors that forward error correction fixes are normal and do not count."""
_VALUES = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""The members of a field's value, in the order of NVML's value types."""
_TRAFFIC_BYTES = ("NVLINK_COUNT_XMIT_BYTES", "NVLINK_COUNT_RCV_BYTES")
_TRAFFIC_KIB = ("NVLINK_THROUGHPUT_DATA_TX", "NVLINK_THROUGHPUT_DATA_RX")
_KIB = 1024
_MBPS = 1e6
_HOPPER = 9


def read_links(asked: Questions, near: int, peers: Mapping[str, str]) -> tuple[FabricLink, ...]:
    """Reads a device's links. `near` is the NUMA node to which NVLink-C2C leads. `peers` has the
    memories of other devices by PCI address."""
    return (*_nvlinks(asked, peers), *_c2c_links(asked, near))


def _nvlinks(asked: Questions, peers: Mapping[str, str]) -> Iterator[FabricLink]:
    count = _count(asked, "NVLinks", "NVLINK_LINK_COUNT")
    hopper = bool(count) and asked.ask("architecture", "nvmlDeviceGetArchitecture") == _HOPPER
    for link in range(count):
        active = asked.ask("NVLink state", "nvmlDeviceGetNvLinkState", link)
        number = asked.ask("NVLink version", "nvmlDeviceGetNvLinkVersion", link)
        version = _VERSIONS.get(number or 0)
        if hopper and version is not None:
            version = "4.0"  # some drivers report 5.0
        speed, common, *errors = _fields(
            asked,
            "NVLink speed and errors",
            [("NVLINK_GET_SPEED", link), ("NVLINK_SPEED_MBPS_COMMON", 0)]
            + [(f"NVLINK_{name}", link) for name in _ERRORS],
        )
        counted = [error for error in errors if error is not None]
        if not counted:
            asked.miss("NVLink errors", "no counter can be read on this device")
        yield FabricLink(
            link,
            "nvlink",
            active=None if active is None else bool(active),
            version=version,
            rate=(speed or common or 0) * _MBPS or _RATES.get(version or ""),
            remote=_remote(asked, link, peers) if active else None,
            errors=int(sum(counted)) if counted else None,
        )


def _c2c_links(asked: Questions, near: int) -> Iterator[FabricLink]:
    for link in range(_count(asked, "C2C links", "C2C_LINK_COUNT")):
        status, rate = _fields(
            asked, "C2C links", [("C2C_LINK_GET_STATUS", link), ("C2C_LINK_GET_MAX_BW", link)]
        )
        yield FabricLink(
            link,
            "c2c",
            active=None if status is None else bool(status),
            rate=None if not rate else rate * _MBPS,
            remote=f"host:{near}",
        )


def traffic_fields(asked: Questions, link: int) -> tuple[int | None, int | None]:
    """Returns the payload bytes that a link sent and received; None for a number that NVML does not
    report. Before NVLink 5, NVML counts whole KiB."""
    names = [*_TRAFFIC_BYTES, *_TRAFFIC_KIB]
    found = _fields(asked, "NVLink traffic", [(name, link) for name in names])
    sent, received, *kib = (None if value is None else int(value) for value in found)
    older = [None if value is None else value * _KIB for value in kib]
    return (older[0] if sent is None else sent), (older[1] if received is None else received)


def _remote(asked: Questions, link: int, peers: Mapping[str, str]) -> str | None:
    library = asked.library
    kind = asked.ask("NVLink remote", "nvmlDeviceGetNvLinkRemoteDeviceType", link)
    info = asked.ask("NVLink remote", "nvmlDeviceGetNvLinkRemotePciInfo", link)
    address = None if info is None else pci_address(info)
    if address is not None and address in peers:
        return peers[address]
    names = {
        library.NVML_NVLINK_DEVICE_TYPE_GPU: "gpu",
        library.NVML_NVLINK_DEVICE_TYPE_IBMNPU: "cpu",
        library.NVML_NVLINK_DEVICE_TYPE_SWITCH: "nvswitch",
    }
    # Drivers before R470 do not say what it is.
    name = names.get(kind) or (address and "device")
    return f"{name} {address}" if address else name


def pci_address(info: Any) -> str | None:
    """Returns a PCI address as sysfs writes it, or None if NVML reports an empty address."""
    if not (info.domain or info.bus or info.device) or info.domain == 0xFFFFFFFF:
        return None
    return f"{info.domain:04x}:{info.bus:02x}:{info.device:02x}.0"


def text(value: Any) -> str | None:
    """Returns NVML's answer as a string; older versions of nvidia-ml-py give bytes."""
    if value is None:
        return None
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _count(asked: Questions, what: str, field: str) -> int:
    (value,) = _fields(asked, what, [(field, 0)])
    return int(value or 0)


def _fields(
    asked: Questions, what: str, wanted: Sequence[tuple[str, int]]
) -> list[int | float | None]:
    library = asked.library
    known = [getattr(library, f"NVML_FI_DEV_{name}", None) for name, _ in wanted]
    ids = [(number, link) for number, (_, link) in zip(known, wanted, strict=True) if number]
    found = asked.ask(what, "nvmlDeviceGetFieldValues", ids) if ids else None
    values = iter(found or ())
    return [_value(library, next(values)) if number and found else None for number in known]


def _value(library: Any, field: Any) -> int | float | None:
    if field.nvmlReturn != library.NVML_SUCCESS or not 0 <= field.valueType < len(_VALUES):
        return None
    value: int | float = getattr(field.value, _VALUES[field.valueType])
    return value


# What product a device is and which fabric it has joined, as NVML reports it.

_STATES = ("not supported", "not started", "in progress", "completed")
_UUID_BYTES = 16
_FORM_FACTORS = (("SXM", re.compile("SXM")), ("PCIe", re.compile(r"PCIE|\bNVL$")))
"""Form factors with patterns for model names, such as NVIDIA A100-SXM4-80GB, NVIDIA H100 PCIe and
NVIDIA H100 NVL."""
_PARTS = (("SXM", re.compile(r"692-2G5")), ("PCIe", re.compile(r"(?:699|900)-2(?:1|G133|G193)")))
"""Form factors with patterns for the board's part number, if the name does not show one. An H200 of
an HGX board is 692-2G520-0282-001, and an H100 PCIe 900-21010-0000-000."""


def board(asked: Questions, model: str) -> dict[str, str | None]:
    part = asked.ask("board", "nvmlDeviceGetBoardPartNumber") or None
    return {"board": part, "form_factor": form_factor(model, part)}


def form_factor(model: str, part: str | None) -> str | None:
    """Returns SXM or PCIe, or None if neither model nor part number of the board shows it."""
    by_name = (name for name, pattern in _FORM_FACTORS if pattern.search(model.upper()))
    by_part = (name for name, pattern in _PARTS if pattern.match(part or ""))
    return next(chain(by_name, by_part), None)


def domain(found: Mapping[str, Any]) -> str | None:
    """Returns the name of the NVLink domain, or None if NVML reports none."""
    cluster = found.get("fabric_cluster")
    if cluster is None or not uuid.UUID(cluster).int:
        return None
    return f"clique {found['fabric_clique']} of cluster {cluster}"


def fabric(asked: Questions) -> dict[str, Any]:
    kind = getattr(asked.library, "c_nvmlGpuFabricInfoV_t", None)
    if kind is None:
        asked.miss("fabric state", "not in this nvidia-ml-py: install a newer one")
        return {}
    info = kind()
    if asked.ask("fabric state", "nvmlDeviceGetGpuFabricInfoV", ctypes.byref(info)) is None:
        return {}
    state = _STATES[info.state] if info.state < len(_STATES) else str(info.state)
    if state == "completed" and info.status:
        state = f"failed: {asked.library.NVMLError(info.status)}"
    if state == _STATES[0]:
        return {"fabric_state": state}
    # A field of characters would end at its first zero.
    begin = kind.clusterUuid.offset
    cluster = uuid.UUID(bytes=bytes(info)[begin : begin + _UUID_BYTES])
    return {"fabric_state": state, "fabric_clique": info.cliqueId, "fabric_cluster": str(cluster)}
