"""Reads the limits of this process or, in a capture, of the process that made the capture."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from .tree import Root, labelled, parse_cpu_list

GROUPS = "sys/fs/cgroup"
"""The folder in which systemd mounts control groups."""
UNLIMITED = 1 << 60
"""A limit of this many bytes or more means no limit. Version 1 shows a huge number then."""


def memory_groups(root: Root) -> Iterator[tuple[str, str, str]]:
    """Yields `(stem, limit, usage)` for each memory control group of this process, innermost first.
    The file named stem + limit holds the group's limit in bytes, stem + usage the bytes in use."""
    membership = root.text("proc/self/cgroup") or ""
    versions = (
        (r"^0::(/.*)$", _mounted(root, "cgroup2"), "max", "current"),
        (r"^[0-9]+:(?:[^:\n]*,)?memory(?:,[^:\n]*)?:(/.*)$", _mounted(root, "memory"),
         "limit_in_bytes", "usage_in_bytes"),
    )  # fmt: skip
    for pattern, mounted, limit, usage in versions:
        match = re.search(pattern, membership, re.MULTILINE)
        for folder in _chain(match[1] if match else "/"):
            yield f"{mounted}{folder}/memory.", limit, usage


def _mounted(root: Root, what: str) -> str:
    mounts = root.text("proc/self/mounts") or root.text("proc/mounts") or ""
    for line in mounts.splitlines():
        # Device, place, type, options.
        _, place, kind, options, *_ = [*line.split(), "", "", "", ""]
        if options and (kind == what or (kind == "cgroup" and what in options.split(","))):
            return place.strip("/")
    return GROUPS if what == "cgroup2" else f"{GROUPS}/{what}"


def _chain(group: str) -> tuple[str, ...]:
    # A group outside this process's namespace is written with `..` and is not visible.
    names = [name for name in PurePosixPath(group).parts[1:] if name != ".."]
    return tuple("".join(f"/{name}" for name in names[:end]) for end in range(len(names), -1, -1))


def memory_limit(root: Root) -> tuple[int | None, bool]:
    """Returns the smallest memory limit in bytes (None: no limit), and whether it could be read."""
    read = (root.number(stem + limit) for stem, limit, _ in memory_groups(root))
    limit = min((one for one in read if one is not None and one < UNLIMITED), default=None)
    # If there are groups but none has a limit (it reads `max`), memory is unlimited.
    return limit, limit is not None or root.text("proc/self/cgroup") is not None


def allowed(root: Root, resource: str) -> tuple[int, ...] | None:
    """Returns the CPUs (`Cpus`) or NUMA nodes (`Mems`) allowed to this process; None if unknown."""
    status = root.text("proc/self/status") or ""
    if found := labelled(status, f"{resource}_allowed_list"):
        return parse_cpu_list(found) or None
    name = resource.lower()
    group = _chain(root.text("proc/self/cpuset") or "/")[0]
    sets = _mounted(root, "cpuset")
    places = (
        f"{_mounted(root, 'cgroup2')}{group}/cpuset.{name}.effective",
        f"{sets}{group}/cpuset.{name}",
        f"{sets}{group}/{name}",
        f"dev/cpuset{group}/{name}",
    )
    return root.cpu_list(*places) or None


def memlock_limit(root: Root) -> tuple[int | None, bool]:
    """Returns the bytes that this process may lock (None: no limit), and whether this is known."""
    limits = root.text("proc/self/limits") or ""
    match = re.search(r"^Max locked memory\s+(unlimited|[0-9]{1,19})\s", limits, re.MULTILINE)
    if not match:
        return None, False
    return (None if match[1] == "unlimited" else int(match[1])), True
