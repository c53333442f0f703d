"""Finds elements of a domain that libvirt refuses, by rules that no other check covers. Sources:
libvirt's src/conf/numa_conf.c, domain_validate.c, domain_postparse.c, src/qemu/qemu_validate.c, and
its tests in tests/qemuxmlconfdata/*.err."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from xml.etree.ElementTree import Element

from . import xml_values as xml
from .domain import parse_cpu_set

Refusal = tuple[str, str]
_HOSTS = ("host-passthrough", "maximum")
_MOST = (1 << 63) - (1 << 20)
_OWN_NODES = ("ppc64", "ppc64le", "s390x")
"""Architectures on which memory can be added to a guest without cells."""


def refused(root: Element) -> tuple[Refusal, ...]:
    return tuple(found for rule in _RULES for found in rule(root))


def _cpu(root: Element) -> Iterator[Refusal]:
    mode = xml.said(root.find("cpu"), "mode")
    if root.get("type") == "qemu" and mode == "host-passthrough":
        yield "cpu", "mode host-passthrough needs KVM, and the domain's type is qemu"
    cache = root.find("cpu/cache")
    how, level = xml.said(cache, "mode"), xml.said(cache, "level")
    if how == "emulate" and level != "3":
        yield "cache", "mode emulate is possible only with level 3"
    if how == "passthrough" and mode not in _HOSTS:
        yield "cache", f"mode passthrough needs one of the CPU's modes {' and '.join(_HOSTS)}"
    if how in ("passthrough", "disable") and level:
        yield "cache", f"mode {how} takes no level"
    features = {one.get("name", ""): one.get("policy") for one in root.iterfind("cpu/feature")}
    wide = (policy for name, policy in features.items() if name[:3] == "sve" and name != "sve")
    if features.get("sve") == "disable" and "require" in wide:
        yield "cpu", "feature sve is disabled, but lengths of its vectors are required"
    address = root.find("cpu/maxphysaddr")
    if xml.said(address, "mode") == "passthrough" and xml.said(address, "bits"):
        yield "maxphysaddr", "mode passthrough takes no number of bits"


def _threads(root: Element) -> Iterator[Refusal]:
    for tag, key in (("vcpusched", "vcpus"), ("iothreadsched", "iothreads")):
        elements = root.iterfind(f"cputune/{tag}")
        lists = [xml.attribute(one, key, parse_cpu_set) or () for one in elements]
        counts = Counter(one for numbers in lists for one in numbers)
        if twice := [one for one, times in counts.items() if times > 1]:
            yield tag, f"{key} {min(twice)} is in two of these elements"
        there = xml.content(root.find("iothreads"), xml.number) or 0
        if (
            tag == "iothreadsched"
            and root.find("iothreadids") is None
            and max(counts, default=0) > there
        ):
            yield tag, f"it names IO thread {max(counts)}, which the domain does not have"


def _memory(root: Element) -> Iterator[Refusal]:
    cells = root.findall("cpu/numa/cell")
    if root.find("memory") is None and not cells:
        yield "memory", "neither <memory> nor cells give its size"
    arch = xml.said(root.find("os/type"), "arch")
    if root.find("maxMemory") is not None and not cells and arch not in _OWN_NODES:
        yield "maxMemory", "memory can be added only to a domain with cells (<numa>)"
    elif root.find("devices/memory/target/node") is not None and root.find("maxMemory") is None:
        yield "memory device", "memory devices need <maxMemory>"
    for cell in cells:
        if (xml.attribute(cell, "memory", xml.sized_in(cell.get("unit"))) or 0) > _MOST:
            yield "cell", "its memory is beyond 2^63 bytes, once it is rounded up to a MiB"
        if cell.get("memAccess", "shared") not in ("shared", "private", "default"):
            yield "cell", "memAccess is neither shared nor private"
    pages = root.findall("memoryBacking/hugepages/page")
    if sum(not (cells and page.get("nodeset")) for page in pages) > 1:
        twice = "two sizes are for all memory: keep one, or give one of them cells (nodeset)"
        yield "hugepages", twice


def _added(root: Element) -> Iterator[Refusal]:
    targets = root.findall("devices/memory/target")
    starts = [xml.attribute(one.find("address"), "base", xml.register) for one in targets]
    sizes = [xml.size_of(one.find("size")) or 0 for one in targets]
    placed = sorted((at, size) for at, size in zip(starts, sizes, strict=True) if at is not None)
    for (start, size), (after, _) in pairwise(placed):
        if after < start + size:
            yield "memory device", f"two of them overlap at the guest's address {after:#x}"


def _policies(root: Element) -> Iterator[Refusal]:
    memory, cells = root.find("numatune/memory"), root.findall("numatune/memnode")
    placement = xml.said(memory, "placement")
    by_vcpu = xml.said(root.find("vcpu"), "placement") == "auto" and memory is not None
    automatic = placement == "auto" or (by_vcpu and xml.said(memory, "nodeset") is None)
    if placement == "static" and xml.said(memory, "nodeset") is None:
        yield "numatune", "placement is static, but <memory> has no nodeset"
    elif cells and automatic:
        yield "memnode", "cells cannot be bound while numad chooses the nodes (placement auto)"
    modes = [(one.get("mode") or "strict") == "restrictive" for one in cells]
    if memory is not None and {*modes} - {xml.said(memory, "mode") == "restrictive"}:
        yield "memnode", "restrictive must be the mode of <memory> and of each cell, or of none"


def _expanders(root: Element) -> Iterator[Refusal]:
    """Refuses to assign the default host bridge of a pseries domain to a cell."""
    for one in root.iterfind("devices/controller[@model='pci-root']"):
        if one.get("index") == "0" and one.find("target/node") is not None:
            yield "controller", "the PCI controller of index 0 cannot belong to a cell"


def _shared(root: Element) -> Iterator[Refusal]:
    """Refuses passt, a backend of network interfaces, without shared memory."""
    users = root.iterfind("devices/interface[@type='vhostuser']/backend[@type='passt']")
    access = xml.said(root.find("memoryBacking/access"), "mode")
    kinds = {cell.get("memAccess") for cell in root.iterfind("cpu/numa/cell")}
    if next(users, None) is not None and access != "shared" and "shared" not in kinds:
        yield "memoryBacking", "passt needs shared memory: <access mode='shared'/>"


_RULES = (_cpu, _threads, _memory, _added, _policies, _expanders, _shared)
