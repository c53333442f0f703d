"""Reads facts about the whole host: names, processors, memory, and limits on this process."""

from __future__ import annotations

import os
import re
import resource

from linkgauge.model.hardware.gaps import Gap
from linkgauge.model.hardware.machine import Host

from .cgroup import UNLIMITED, memory_groups
from .cpu import arm_core, last_level_cache, online_cpus
from .numa import read_nodes
from .tree import ROOT, Root, labelled, least, parse_meminfo

_HUGE_PAGES = "sys/kernel/mm/transparent_hugepage/enabled"


def read_host(root: Root = ROOT) -> Host:
    """Reads the host. On this machine, only CPUs that this process may use count. In a capture, all
    online CPUs count, and the limit of locked memory is None."""
    meminfo = parse_meminfo(root.text("proc/meminfo") or "")
    available = least(meminfo.get("MemAvailable"), cgroup_headroom(root))
    here = root == ROOT
    allowed = os.sched_getaffinity(0) if here else set(online_cpus(root))
    hostname, kernel, architecture = _names(root)
    nodes = read_nodes(root, allowed, available)
    sizes = [node.memory_total for node in nodes if node.memory_total is not None]
    # The sum over NUMA nodes counts, because the kernel's total may include a GPU's memory.
    of_nodes = sum(sizes) if len(sizes) == len(nodes) else None
    return Host(
        hostname=hostname,
        system=_os_name(root),
        kernel=kernel,
        architecture=architecture,
        cpu_model=cpu_model(root),
        cpus=len(allowed),
        nodes=nodes,
        memory_total=meminfo.get("MemTotal") if of_nodes is None else of_nodes,
        memory_available=available,
        memlock_limit=_memlock_limit() if here else None,
        transparent_huge_pages=root.choice(_HUGE_PAGES),
        last_level_cache=last_level_cache(root, allowed),
    )


def unread(host: Host) -> tuple[Gap, ...]:
    """Returns the host's missing facts, with the reasons."""
    unsized = [str(node.index) for node in host.nodes if node.memory_total is None]
    reasons = {
        "processor": (host.cpu_model, "neither /proc/cpuinfo nor a device tree names it"),
        "architecture": (
            host.architecture,
            "/proc/sys/kernel/arch is missing (Linux before 6.1, or not captured)",
        ),
        "kernel": (host.kernel, "/proc/sys/kernel/osrelease and /proc/version are not readable"),
        "system": (host.system, "/etc/os-release is not readable"),
        "memory": (host.memory_total, "/proc/meminfo is not readable"),
        # A single node has the machine's memory.
        f"memory of nodes {', '.join(unsized)}": (
            not unsized or len(host.nodes) == 1,
            "their meminfo is not readable",
        ),
    }
    return tuple(Gap(why, name) for name, (value, why) in reasons.items() if not value)


def cpu_model(root: Root) -> str | None:
    """Returns the name of the processor, else of Arm's cores, else of the board, else None."""
    cpuinfo = root.text("proc/cpuinfo") or ""
    keys = ("model name", "Model Name", "cpu model", "uarch", "cpu")
    named = next(filter(None, (labelled(cpuinfo, key) for key in keys)), None)
    # `Processor` is of Arm before Linux 3.8.
    named = named or arm_core(cpuinfo) or labelled(cpuinfo, "Processor")
    board = root.text("proc/device-tree/model")
    return named or (board.strip("\0 ") if board else None)


def cgroup_headroom(root: Root) -> int | None:
    """Returns the bytes that control groups still leave to this process; None without a limit."""
    return least(*(_room(root, *group) for group in memory_groups(root)))


def _room(root: Root, stem: str, limit_name: str, usage_name: str) -> int | None:
    limit = root.number(stem + limit_name)
    if limit is None or limit >= UNLIMITED:
        return None
    used = root.number(stem + usage_name) or 0
    # File cache counts as used, but can be reclaimed.
    stat = root.text(stem + "stat") or ""
    cache = sum(map(int, _file_cache(stat, "total_") or _file_cache(stat)))
    return max(0, limit - max(0, used - cache))


def _file_cache(stat: str, prefix: str = "") -> list[str]:
    """Returns a memory.stat's bytes of file cache as strings; `total_` adds child groups (v1)."""
    return re.findall(rf"^{prefix}(?:in)?active_file ([0-9]{{1,18}})$", stat, re.MULTILINE)


def _memlock_limit() -> int | None:
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def this_host() -> str:
    return _names(ROOT)[0]


def _names(root: Root) -> tuple[str, str, str]:
    if root == ROOT:
        name = os.uname()
        return name.nodename, name.release, name.machine
    # Linux has `arch` since 6.1.
    hostname, release, arch = (
        root.text(f"proc/sys/kernel/{name}") or "" for name in ("hostname", "osrelease", "arch")
    )
    return hostname, release or _version(root)[1], arch


def _version(root: Root) -> tuple[str, str]:
    match = re.match(r"(\S+) version (\S+)", root.text("proc/version") or "")
    return (match[1], match[2]) if match else ("", "")


def _os_name(root: Root) -> str:
    release = root.text("etc/os-release") or ""
    match = re.search(r'^PRETTY_NAME="?([^"\n]*)"?$', release, re.MULTILINE)
    if match:
        return match[1]
    return root.text("proc/sys/kernel/ostype") or _version(root)[0]
