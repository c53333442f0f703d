"""Families of server processors, and a core's share of the last-level cache, as published."""

from __future__ import annotations

import msgspec

_MI = 1 << 20
_XEON, _ZEN_2, _ZEN_3 = "GenuineIntel 6", "AuthenticAMD 23", "AuthenticAMD 25"
# As CPUs report their maker and family; Zen 4 has the family of Zen 3.


class Source(msgspec.Struct, frozen=True):
    title: str
    address: str


class CpuFamily(msgspec.Struct, frozen=True):
    """A family of server processors. `codes` are its values of `HostDetails.cpu_code`."""

    name: str
    codes: tuple[str, ...]
    cache_per_core: int | None = None
    source: Source | None = None


def _codes(family: str, *models: int) -> tuple[str, ...]:
    return tuple(f"{family} {model}" for model in models)


_ROME = Source(
    "AMD Rome Second Generation EPYC Review, Memory Subsystem: Latency (AnandTech)",
    "https://www.anandtech.com/Show/Index/14694?cPage=4&all=False&sort=0&page=7"
    "&slug=amd-rome-epyc-2nd-gen",
)
_INTEL = Source(
    "Article 000027820, cache hierarchies of Intel Xeon Scalable processors (Intel)",
    "https://www.intel.com/content/www/us/en/support/articles/000027820/processors/"
    "intel-xeon-processors.html",
)
_EMERALD = Source(
    "Intel Xeon Granite Rapids CPUs get major cache upgrade (TweakTown), Emerald Rapids 64 Core",
    "https://www.tweaktown.com/news/95712/intel-xeon-granite-rapids-cpus-get-major-cache-upgrade-"
    "top-sku-now-has-480mb-of-l3/index.html",
)
_GRANITE = Source(
    "Intel's comeback: Granite Rapids mit 96 Kernen im Test (Hardwareluxx), Xeon 6980P",
    "https://www.hardwareluxx.de/index.php/artikel/hardware/prozessoren/"
    "64561-intels-comeback-granite-rapids-mit-96-kernen-im-test.html",
)
_GENOA = Source(
    "AMD EPYC 9004 Series (HPC Tech), EPYC 9654",
    "https://www.hpctech.co.jp/product/amd-epyc-9004-series/",
)

FAMILIES: tuple[CpuFamily, ...] = (
    CpuFamily("Intel Broadwell-EP", _codes(_XEON, 79)),
    # Xeon Platinum 8280: 38.5 MiB, 28 cores. Skylake and Cascade Lake share the model number.
    CpuFamily("Intel Skylake-SP or Cascade Lake-SP", _codes(_XEON, 85), 77 * _MI // 56, _INTEL),
    CpuFamily("Intel Ice Lake-SP", _codes(_XEON, 106, 108), 60 * _MI // 40, _INTEL),
    CpuFamily("Intel Sapphire Rapids", _codes(_XEON, 143), 105 * _MI // 56, _INTEL),
    CpuFamily("Intel Emerald Rapids", _codes(_XEON, 207), 320 * _MI // 64, _EMERALD),
    CpuFamily("Intel Granite Rapids", _codes(_XEON, 173, 174), 504 * _MI // 128, _GRANITE),
    CpuFamily("AMD EPYC Rome (Zen 2)", _codes(_ZEN_2, *range(48, 64)), 16 * _MI // 4, _ROME),
    CpuFamily("AMD EPYC Milan (Zen 3)", _codes(_ZEN_3, *range(16))),
    CpuFamily("AMD EPYC Genoa (Zen 4)", _codes(_ZEN_3, *range(16, 32)), 384 * _MI // 96, _GENOA),
    CpuFamily("Arm Neoverse-N1", ("0x41 0xd0c",)),
    CpuFamily("Arm Neoverse-V1", ("0x41 0xd40",)),
)


def family_of(code: str | None) -> CpuFamily | None:
    return next((one for one in FAMILIES if code in one.codes), None)
