"""Reads facts about processors: sockets, cores, instruction set, frequency governor and caches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import takewhile

import msgspec

from linkgauge.model.hardware.host_details import CpuCache

from .tree import Root, labelled

CPUS = "sys/devices/system/cpu"

# The levels of the x86-64 psABI (gitlab.com/x86-psABIs, low-level-sys-info), as /proc/cpuinfo
# names their features; each level includes those before it.
_X86_LEVELS = (
    ("v2", "cx16 lahf_lm pni popcnt sse4_1 sse4_2 ssse3"),
    ("v3", "abm avx avx2 bmi1 bmi2 f16c fma movbe xsave"),
    ("v4", "avx512bw avx512cd avx512dq avx512f avx512vl"),
)

# Implementer and part in MIDR_EL1, for cores of servers and of boards with accelerators
# (linux/arch/arm64/include/asm/cputype.h).
_ARM_CORES = {
    (0x41, 0xD03): "Cortex-A53",
    (0x41, 0xD05): "Cortex-A55",
    (0x41, 0xD07): "Cortex-A57",
    (0x41, 0xD08): "Cortex-A72",
    (0x41, 0xD0B): "Cortex-A76",
    (0x41, 0xD41): "Cortex-A78",
    (0x41, 0xD42): "Cortex-A78AE",
    (0x41, 0xD85): "Cortex-X925",
    (0x41, 0xD87): "Cortex-A725",
    (0x41, 0xD0C): "Neoverse-N1",
    (0x41, 0xD40): "Neoverse-V1",
    (0x41, 0xD49): "Neoverse-N2",
    (0x41, 0xD4F): "Neoverse-V2",
    (0x41, 0xD83): "Neoverse-V3AE",
    (0x41, 0xD84): "Neoverse-V3",
    (0x41, 0xD8E): "Neoverse-N3",
    (0x43, 0x0AF): "ThunderX2",
    (0x46, 0x001): "A64FX",
    (0x48, 0xD01): "TaiShan v110",
    (0x4E, 0x004): "Carmel",
    (0xC0, 0xAC3): "Ampere-1",
    (0xC0, 0xAC4): "Ampere-1A",
}


def online_cpus(root: Root) -> tuple[int, ...]:
    return root.cpu_list(f"{CPUS}/online") or tuple(
        cpu for cpu in root.numbered(CPUS, "cpu") if root.text(f"{CPUS}/cpu{cpu}/online") != "0"
    )


def shown_cpus(root: Root) -> tuple[int, ...]:
    return tuple(sorted(set(online_cpus(root)).intersection(root.numbered(CPUS, "cpu"))))


def microcode(cpuinfo: str) -> str | None:
    found = dict.fromkeys(re.findall(r"^microcode\s*:\s*(\S+)", cpuinfo, re.MULTILINE))
    return ", ".join(found) or None


def topology(root: Root, cpus: Iterable[int]) -> tuple[int | None, int | None, int | None]:
    """Returns the numbers of sockets, of cores, and of threads per core, each None if unknown."""
    packages: set[tuple[int | None, tuple[int, ...]]] = set()
    cores: Counter[object] = Counter()
    for cpu in cpus:
        folder = f"{CPUS}/cpu{cpu}/topology"
        package = root.number(f"{folder}/physical_package_id")
        core = _sharing(root, cpu, *_CORE) or root.number(f"{folder}/core_id")
        if core is not None:
            # Sockets of several nodes of an Itanium have the same number.
            packages.add((package, _sharing(root, cpu, "package_cpus", "core_siblings")))
            cores[core if isinstance(core, tuple) else (package, core)] += 1
    if not cores:
        return _counted_in_cpuinfo(root.text("proc/cpuinfo") or "")
    # A board whose firmware does not describe its packages has -1.
    known = all(package is not None and package >= 0 for package, _ in packages)
    return len(packages) if known else None, len(cores), max(cores.values())


def one_a_core(root: Root, cpus: Iterable[int]) -> tuple[int, ...]:
    """Returns the first CPU of each core, or all CPUs if sysfs does not show the cores."""
    first: dict[object, int] = {}
    for cpu in sorted(cpus):
        first.setdefault(threads_of(root, cpu), cpu)
    return tuple(first.values())


_CORE = ("core_cpus", "thread_siblings")


def threads_of(root: Root, cpu: int) -> tuple[int, ...]:
    """Returns the CPUs on the same core, or only `cpu` if the kernel does not report it."""
    return _sharing(root, cpu, *_CORE) or (cpu,)


def _sharing(root: Root, cpu: int, *names: str) -> tuple[int, ...]:
    folder = f"{CPUS}/cpu{cpu}/topology"
    found = (root.cpus(f"{folder}/{name}_list", f"{folder}/{name}") for name in names)
    return next(filter(None, found), ())


def _counted_in_cpuinfo(cpuinfo: str) -> tuple[int | None, int | None, int | None]:
    cores: Counter[tuple[str, str]] = Counter()
    for paragraph in cpuinfo.split("\n\n"):
        ids = dict(re.findall(r"^(physical id|core id)\s*:\s*([0-9]+)$", paragraph, re.MULTILINE))
        if len(ids) == 2:
            cores[ids["physical id"], ids["core id"]] += 1
    if not cores:
        return None, None, None
    return len({package for package, _ in cores}), len(cores), max(cores.values())


def isa(cpuinfo: str) -> str | None:
    """Returns the x86-64 level, Arm's version and vector extension, or RISC-V's extensions."""
    keys = r"^(isa|flags|Features|CPU architecture)\s*:\s*(.*)$"
    lines = re.findall(keys, cpuinfo, re.MULTILINE)
    fields = dict(lines)
    if "isa" in fields:  # one per hart, and they may differ
        harts = dict.fromkeys(value.strip() for key, value in lines if key == "isa")
        return " + ".join(filter(None, harts)) or None
    features = set(str(fields.get("flags") or fields.get("Features") or "").split())
    if "lm" in features:
        return "x86-64" + _x86_level(features)
    architecture = str(fields.get("CPU architecture", "")).strip()
    if not architecture:
        return None
    vectors = [name for name in ("sve2", "sve") if name in features][:1]
    return "+".join([f"armv{architecture}-a", *vectors])


def _x86_level(features: set[str]) -> str:
    held = takewhile(lambda level: features.issuperset(level[1].split()), _X86_LEVELS)
    return "".join([f"-{name}" for name, _ in held][-1:])


def cpu_vendor(cpuinfo: str) -> str | None:
    return labelled(cpuinfo, "vendor_id") or None


_CODES = (("vendor_id", "cpu family", "model"), ("CPU implementer", "CPU part"))


def cpu_code(cpuinfo: str) -> str | None:
    """Returns a code such as `GenuineIntel 6 143` or, on Arm, `0x41 0xd40`; None if unknown."""
    for fields in _CODES:
        found = [labelled(cpuinfo, field) for field in fields]
        if all(found):
            return " ".join(filter(None, found))
    return None


def arm_core(cpuinfo: str) -> str | None:
    """Returns the models of Arm's cores, joined by ` + `; None if one of them is unknown."""
    makers, parts = (
        re.findall(rf"^CPU {field}\s*:\s*0x([0-9a-fA-F]{{1,4}})$", cpuinfo, re.MULTILINE)
        for field in ("implementer", "part")
    )
    names = [
        _ARM_CORES.get((int(maker, 16), int(part, 16)))
        for maker, part in dict.fromkeys(zip(makers, parts, strict=False))
    ]
    known = [name for name in names if name]
    return " + ".join(known) if known and known == names else None


def governor(root: Root, cpus: Iterable[int]) -> str | None:
    return _of_cpus(root, cpus, "scaling_governor")


def frequency_driver(root: Root, cpus: Iterable[int]) -> str | None:
    return _of_cpus(root, cpus, "scaling_driver")


def _of_cpus(root: Root, cpus: Iterable[int], name: str) -> str | None:
    found = {root.text(f"{CPUS}/cpu{cpu}/cpufreq/{name}") for cpu in cpus}
    return ", ".join(sorted(text for text in found if text)) or None


_REVISION = (
    *("cpu family", "model", "stepping", "microcode"),  # x86
    *("CPU implementer", "CPU part", "CPU variant", "CPU revision"),  # Arm
    *("mvendorid", "marchid", "mimpid"),  # RISC-V
)


def revision(cpuinfo: str) -> str:
    """Returns the numbers in /proc/cpuinfo that identify the first CPU's model and microcode."""
    known = ((field, labelled(cpuinfo, field)) for field in _REVISION)
    return ", ".join(f"{field} {value.split()[0]}" for field, value in known if value)


# The caches of CPUs.

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def last_level_cache(root: Root, cpus: Iterable[int]) -> int | None:
    """Returns the total bytes of these CPUs' last-level caches. A shared cache counts once."""
    total = 0
    counted: set[int] = set()
    for cpu in cpus:
        if cpu in counted:
            continue
        outermost = max(_caches(root, cpu), key=lambda one: (one[0].level, one[1]), default=None)
        if outermost is not None:
            counted.update(outermost[1])
            total += outermost[0].size
    return total or None


def cache_levels(root: Root, cpus: Iterable[int]) -> tuple[CpuCache, ...]:
    """Returns the kinds of caches of `cpus`, innermost first. `shared_by` counts only `cpus`."""
    shown = set(cpus)
    found = {
        msgspec.structs.replace(cache, shared_by=len(shown.intersection(behind)))
        for cpu in shown
        for cache, behind in _caches(root, cpu)
    }
    return tuple(sorted(found, key=msgspec.structs.astuple))


def _caches(root: Root, cpu: int) -> Iterator[tuple[CpuCache, tuple[int, ...]]]:
    folder = f"sys/devices/system/cpu/cpu{cpu}/cache"
    for name in root.names(folder):
        cache = f"{folder}/{name}"
        level = root.number(f"{cache}/level")
        size = re.fullmatch(r"([0-9]{1,12})([KMG]?)", root.text(f"{cache}/size") or "")
        if level is not None and size:
            # Linux before 2.6.32 has only the mask.
            shared = root.cpus(f"{cache}/shared_cpu_list", f"{cache}/shared_cpu_map")
            kind = (root.text(f"{cache}/type") or "").lower()
            behind = shared or threads_of(root, cpu)
            yield CpuCache(level, kind, int(size[1]) * _UNITS[size[2]], len(behind)), behind
