"""What product a device is and which fabric it has joined, as NVML reports it."""

from __future__ import annotations

import ctypes
import re
import uuid
from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .nvml import Questions

_STATES = ("not supported", "not started", "in progress", "completed")
_UUID_BYTES = 16
_FORM_FACTORS = (("SXM", re.compile("SXM")), ("PCIe", re.compile(r"PCIE|\bNVL$")))
"""By the model's name: NVIDIA A100-SXM4-80GB, NVIDIA H100 PCIe, NVIDIA H100 NVL."""
_PARTS = (("SXM", re.compile(r"692-2G5")), ("PCIe", re.compile(r"(?:699|900)-2(?:1|G133|G193)")))
"""By the board's part number, where the name does not say: an H200 of an HGX board is
692-2G520-0282-001, an H100 PCIe 900-21010-0000-000."""


def board(asked: Questions, model: str) -> dict[str, str | None]:
    """The board's part number and form factor, by the names of an accelerator's fields."""
    part = asked.ask("board", "nvmlDeviceGetBoardPartNumber") or None
    return {"board": part, "form_factor": form_factor(model, part)}


def form_factor(model: str, part: str | None) -> str | None:
    """SXM or PCIe; None where neither the model nor the board's part number tells."""
    by_name = (name for name, pattern in _FORM_FACTORS if pattern.search(model.upper()))
    by_part = (name for name, pattern in _PARTS if pattern.match(part or ""))
    return next(chain(by_name, by_part), None)


def domain(found: Mapping[str, Any]) -> str | None:
    """The NVLink domain that several machines may have in common, of what `fabric` found; None
    where the fabric does not leave a machine, or where that is unknown."""
    cluster = found.get("fabric_cluster")
    if cluster is None or not uuid.UUID(cluster).int:
        return None
    return f"clique {found['fabric_clique']} of cluster {cluster}"


def fabric(asked: Questions) -> dict[str, Any]:
    """How far the fabric manager has registered the device with the switches, and the domain's
    clique and cluster: by the names of an accelerator's fields, none where NVML does not say."""
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
