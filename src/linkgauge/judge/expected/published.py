"""Published figures of processors' memory. They show what is usual, and decide no verdict."""

from __future__ import annotations

from typing import Literal

import msgspec

from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.cpu_families import Source, family_of

Kind = Literal["latency", "cores", "read", "copy"]
"""The latency of memory; the latency between two cores; the reads of all cores of a socket; a copy
by one thread, as STREAM counts."""


class Published(msgspec.Struct, frozen=True):
    """A published range in seconds or bytes/s. `where` says between which cores a latency was
    measured. `like` names a similar family that was measured in place of `family`."""

    family: str
    kind: Kind
    low: float
    high: float
    source: Source
    where: str = ""
    like: str = ""


_NS, _GB = 1e-9, 1e9
_MLC = Source(
    "Code optimization, info/*_mlc.txt: Intel Memory Latency Checker on four Xeons (gjbex)",
    "https://github.com/gjbex/Code-optimization",
)
_CORES = Source(
    "Measuring CPU core-to-core latency (nviennot)",
    "https://github.com/nviennot/core-to-core-latency",
)
_CORES_GENOA = Source(
    "Measuring CPU core-to-core latency, result of an EPYC 9274F",
    "https://github.com/nviennot/core-to-core-latency/issues/132",
)
_MLC_4110 = Source(
    "Intel Memory Latency Checker v3.5 test, Xeon Silver 4110 (Intel Community)",
    "https://community.intel.com/t5/Software-Tuning-Performance/"
    "Intel-Memory-Latency-Checker-v3-5-test/m-p/1126268/highlight/true",
)
_ROME = Source(
    "AMD Rome Second Generation EPYC Review, Memory Subsystem: Latency (AnandTech)",
    "https://www.anandtech.com/Show/Index/14694?cPage=4&all=False&sort=0&page=7"
    "&slug=amd-rome-epyc-2nd-gen",
)
_ALTRA = Source(
    "HPL on Ampere Altra, tinymembench's memcpy on two machines",
    "https://github.com/AmpereComputing/HPL-on-Ampere-Altra/issues/10",
)
_GROUPS = "within and between groups of cores that share a cache"
_BEFORE = "Sapphire Rapids, the predecessor of Intel Emerald Rapids on the same platform"

TABLE: tuple[Published, ...] = (
    Published("Intel Broadwell-EP", "cores", 44 * _NS, 44 * _NS, _CORES),
    Published("Intel Skylake-SP or Cascade Lake-SP", "latency", 80.8 * _NS, 81.5 * _NS, _MLC),
    Published("Intel Skylake-SP or Cascade Lake-SP", "latency", 82.0 * _NS, 82.0 * _NS, _MLC_4110),
    Published("Intel Skylake-SP or Cascade Lake-SP", "cores", 47 * _NS, 48 * _NS, _CORES),
    Published("Intel Skylake-SP or Cascade Lake-SP", "read", 112.8 * _GB, 113.1 * _GB, _MLC),
    Published("Intel Ice Lake-SP", "latency", 89.0 * _NS, 89.2 * _NS, _MLC),
    Published("Intel Ice Lake-SP", "cores", 51 * _NS, 51 * _NS, _CORES),
    Published("Intel Ice Lake-SP", "read", 175.7 * _GB, 175.9 * _GB, _MLC),
    Published("Intel Sapphire Rapids", "latency", 95.4 * _NS, 96.9 * _NS, _MLC),
    Published("Intel Sapphire Rapids", "read", 246.0 * _GB, 246.0 * _GB, _MLC),
    Published("Intel Emerald Rapids", "latency", 95.4 * _NS, 96.9 * _NS, _MLC, like=_BEFORE),
    Published("Intel Emerald Rapids", "read", 246.0 * _GB, 246.0 * _GB, _MLC, like=_BEFORE),
    Published("Intel Granite Rapids", "latency", 95.1 * _NS, 115.2 * _NS, _MLC),
    Published("Intel Granite Rapids", "cores", 81.0 * _NS, 81.0 * _NS, _MLC),
    Published("Intel Granite Rapids", "read", 583.2 * _GB, 583.2 * _GB, _MLC),
    Published("AMD EPYC Rome (Zen 2)", "latency", 122 * _NS, 134 * _NS, _ROME),
    Published("AMD EPYC Rome (Zen 2)", "cores", 24 * _NS, 94 * _NS, _CORES, _GROUPS),
    Published("AMD EPYC Milan (Zen 3)", "cores", 23 * _NS, 107 * _NS, _CORES, _GROUPS),
    Published("AMD EPYC Genoa (Zen 4)", "cores", 22 * _NS, 104 * _NS, _CORES_GENOA, _GROUPS),
    Published("Arm Neoverse-N1", "copy", 19.8 * _GB, 27.0 * _GB, _ALTRA),
    Published("Arm Neoverse-N1", "cores", 47 * _NS, 47 * _NS, _CORES),
    Published("Arm Neoverse-V1", "cores", 46 * _NS, 46 * _NS, _CORES),
)


def published_of(code: str | None) -> dict[Kind, list[Published]]:
    """Returns published figures by kind; none for a processor that is not listed."""
    family = family_of(code)
    return grouped((one.kind, one) for one in TABLE if family and one.family == family.name)
