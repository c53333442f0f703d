"""Reads a command line of QEMU (`tr '\\0' ' ' < /proc/PID/cmdline`, or libvirt's log), which has no
pins. Source: QEMU's qemu-options.hx and hw/core/machine-smp.c."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from linkgauge.model.errors import InputError
from linkgauge.model.grouped import grouped
from linkgauge.rooms.vm.domain import (
    BusAddress,
    Controller,
    CpuTopology,
    Domain,
    GuestNode,
    HugePages,
    MemoryPolicy,
)

from .words import MODES, address, count, host_device, numbers, options, size, vcpus

_PROGRAM = re.compile(r"(?:\S*/)?(?:qemu-system-([a-z0-9_]+)|qemu-kvm|kvm)")
_FIRST = {"-name": "guest", "-machine": "type", "-smp": "cpus", "-m": "size", "-accel": "accel",
          "-cpu": "model", "-object": "qom-type", "-device": "driver", "-numa": "kind"}  # fmt: skip
_SAME = {"-M": "-machine", "-enable-kvm": "-accel"}
_MODELS = {"pxb-pcie": "pcie-expander-bus", "pxb": "pci-expander-bus",
           "pcie-root-port": "pcie-root-port", "ioh3420": "pcie-root-port"}  # fmt: skip
_PLACE = re.compile(r"(?:0x)?([0-9a-f]{1,2})(?:\.(?:0x)?([0-7]))?", re.IGNORECASE | re.ASCII)
_ON = ("on", "true", "True", "yes", "")

Said = dict[str, list[dict[str, str]]]


def knows(text: str) -> bool:
    words = text.split(maxsplit=40)
    return any(_PROGRAM.fullmatch(word) for word in words[:40]) and "-" in text


def parse(text: str) -> Domain:
    try:
        words = shlex.split(text.replace("\\\n", " "))
    except ValueError as error:
        raise InputError(f"its quotes are not closed ({error})") from error
    said = grouped((name, _read(name, value)) for name, value in _pairs(words))
    arch = next((program[1] for word in words if (program := _PROGRAM.fullmatch(word))), None)
    smp = {key: value for one in said.get("-smp", ()) for key, value in one.items()}
    topology, most = _topology(smp)
    backends = {one.get("id", ""): one for one in said.get("-object", ())}
    cells, policies = _cells(said, backends)
    cpu = _last(said, "-cpu")
    machine = _last(said, "-machine")
    kinds = {one.get("accel", "kvm") for one in said.get("-accel", ())} | {machine.get("accel", "")}
    memory = _last(said, "-m").get("size", "128M")
    controllers = _controllers(said)
    return Domain(
        name=_last(said, "-name").get("guest", ""),
        form="QEMU",
        uuid=_last(said, "-uuid").get("value"),
        kind="kvm" if any("kvm" in kind for kind in kinds) or arch is None else "qemu",
        running=True,
        arch=arch or "x86_64",
        machine=machine.get("type"),
        vcpus=most,
        enabled=tuple(range(min(most, vcpus(smp.get("cpus", str(most)), "-smp")))),
        memory=size(memory, "-m"),
        cell_policies=policies,
        topology=topology,
        cpu="host-passthrough" if cpu.get("model") == "host" else cpu.get("model"),
        features=dict(_features(cpu)),
        cells=cells,
        huge_pages=tuple(_pages(said, backends)),
        controllers=tuple(controllers.values()),
        devices=tuple(
            host_device(address(one["host"], "-device"), _place(one, controllers))
            for one in said.get("-device", ())
            if one.get("driver", "").startswith("vfio-pci") and "host" in one
        ),
        mediated=sum("sysfsdev" in one for one in said.get("-device", ())),
    )


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    for word, after in zip(words, (*words[1:], ""), strict=False):
        if word.startswith("-") and len(word) > 1:
            name = word[1:] if word.startswith("--") else word
            yield _SAME.get(name, name), "" if after.startswith("-") else after


def _read(name: str, value: str) -> dict[str, str]:
    if not value.startswith("{"):
        return dict(_several(options(value, _FIRST.get(name, "value"))))
    try:
        read = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is not JSON: {value[:40]!r}") from error
    return {
        str(key): ",".join(map(str, one)) if isinstance(one, list) else str(one)
        for key, one in (read.items() if isinstance(read, dict) else ())
    }


def _several(pairs: Iterator[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in pairs:
        if name:
            found[name] = f"{found[name]},{value}" if name in found else value
    return found


def _last(said: Said, name: str) -> Mapping[str, str]:
    return said.get(name, [{}])[-1]


def _topology(smp: Mapping[str, str]) -> tuple[CpuTopology, int]:
    known = {
        name: vcpus(smp[name], f"-smp {name}")
        for name in CpuTopology.__struct_fields__
        if name in smp
    }
    product = CpuTopology(**known).vcpus
    most = vcpus(smp.get("maxcpus") or smp.get("cpus") or str(product), "-smp")
    # Like QEMU from 6.2 on, derives one missing number.
    missing = next((name for name in ("cores", "sockets", "threads") if name not in known), None)
    if missing and most % product == 0:
        known[missing] = most // product
    return CpuTopology(**known), most


def _cells(
    said: Said, backends: Mapping[str, Mapping[str, str]]
) -> tuple[tuple[GuestNode, ...], dict[int, MemoryPolicy]]:
    nodes = [one for one in said.get("-numa", ()) if one.get("kind", one.get("type")) == "node"]
    far = [one for one in said.get("-numa", ()) if one.get("kind", one.get("type")) == "dist"]
    cells, policies = [], {}
    for place, one in enumerate(nodes):
        index = count(one.get("nodeid", str(place)), "nodeid")
        backend = backends.get(one.get("memdev", ""), {})
        power = 0 if backend else 20  # a memory backend counts in bytes, a node in MiB
        bytes_ = size(backend.get("size", one.get("mem", "0")), "memory of a node", power)
        rows = {
            count(d.get("dst", ""), "dst"): count(d.get("val", ""), "val")
            for d in far
            if d.get("src") == str(index)
        }
        cpus = numbers(one["cpus"], "cpus") if one.get("cpus") else ()
        cells.append(GuestNode(index, cpus, bytes_, rows))
        if backend.get("host-nodes"):
            at = numbers(backend["host-nodes"], "host-nodes")
            policies[index] = MemoryPolicy(MODES.get(backend.get("policy", ""), "preferred"), at)
    if len({cell.index for cell in cells}) < len(cells):
        raise InputError("two nodes (-numa) have the same number: give each its own")
    return tuple(sorted(cells, key=lambda cell: cell.index)), policies


def _features(cpu: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in cpu.items():
        if name[:1] in "+-":
            yield name[1:], "require" if name[0] == "+" else "disable"
        elif name != "model":
            yield name, "require" if value in _ON else "disable"


def _controllers(said: Said) -> dict[str, Controller]:
    found: dict[str, Controller] = {}
    for one in said.get("-device", ()):
        model = _MODELS.get(one.get("driver", ""))
        if model and one.get("id"):
            number, cell = one.get("bus_nr"), one.get("numa_node")
            found[one["id"]] = Controller(
                index=len(found) + 1,
                model=model,
                address=_place(one, found),
                bus_number=count(number, "bus_nr") if number else None,
                cell=count(cell, "numa_node") if cell else None,
            )
    return found


def _place(one: Mapping[str, str], controllers: Mapping[str, Controller]) -> BusAddress | None:
    match = _PLACE.fullmatch(one.get("addr", ""))
    slot, function = (int(match[1], 16), int(match[2] or "0", 16)) if match else (0, 0)
    name = one.get("bus", "")
    if (above := controllers.get(name)) is not None:
        return BusAddress(above.index, slot, function)
    return BusAddress(0, slot, function) if match and name in ("pcie.0", "pci.0") else None


def _pages(said: Said, backends: Mapping[str, Mapping[str, str]]) -> Iterator[HugePages]:
    """Yields the huge pages of the first backend that has some, as if they backed all memory."""
    paths = [one.get("mem-path", "") for one in backends.values()]
    paths += [one.get("value", "") for one in said.get("-mem-path", ())]
    sizes = [one for one in backends.values() if one.get("hugetlb") in _ON]
    if sizes and sizes[0].get("hugetlbsize"):
        yield HugePages(size(sizes[0]["hugetlbsize"], "hugetlbsize", 0))
    elif sizes or any("hugepages" in path for path in paths):
        yield HugePages()
