"""Prints nvbandwidth's text and JSON: the system, then a matrix for each test."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence

import msgspec

from linkgauge.cli.tool import Context
from linkgauge.model.notation import parse_memory

from ..copy_cells import shown
from .outcomes import TestMatrix, TestOutcome


class Located(msgspec.Struct, frozen=True):
    """A device in the device list. `index` is the device's number on its host. `name` includes the
    PCI address. `process` is None if only one process runs."""

    index: int
    name: str
    hostname: str | None
    process: int | None = None


class System(msgspec.Struct, frozen=True):
    """The host and its devices. `cuda` is 1000 × major + 10 × minor, or 0 without CUDA."""

    hostname: str
    cuda: int
    driver: str
    devices: tuple[Located, ...]


def system_of(context: Context) -> System:
    driver, _, _ = context.devices[0].driver.partition("CUDA ")
    inventory = context.machine.inventory
    drivers = [device.driver for device in inventory.accelerators] if inventory is not None else []
    found = re.search(r"CUDA (\d+)\.(\d+)", context.devices[0].driver)
    cuda = 1000 * int(found[1]) + 10 * int(found[2]) if found else 0
    return System(
        context.machine.host.hostname,
        cuda,
        next(filter(None, [driver.strip(), *drivers]), "unknown"),
        tuple(_located(context)),
    )


def _located(context: Context) -> Iterator[Located]:
    fabric = context.fabric
    here = None if fabric.across_ranks else context.machine.host.hostname
    hosts: Sequence[str | None] = fabric.hosts or [here] * len(fabric.devices)
    for device, host in zip(fabric.devices, hosts, strict=True):
        memory = parse_memory(device.memory)
        yield Located(memory.index or 0, _named(device.model, device.pci), host, memory.rank)


def _named(model: str, pci: str | None) -> str:
    """Formats `NVIDIA H200 (00000000:1b:00)`, with a PCI domain of eight digits and no function."""
    if pci is None:
        return f"{model} (no PCI address)"
    domain, bus, device = pci.partition(".")[0].split(":")
    return f"{model} ({int(domain, 16):08x}:{bus}:{device})"


# nvbandwidth's JSON: its keys, and the layout of the library that it uses (jsoncpp).


Value = dict[str, "Value"] | list["Value"] | str | int | float


class JsonPrinter:
    def __init__(self, root: str, version: str, git_version: str, *, verbose: bool) -> None:
        self._root = root
        self._verbose = verbose
        self._content: dict[str, Value] = {"git_version": git_version, "version": version}
        self._tests: list[Value] = []

    def warn(self, text: str) -> None:
        self._content["warning"] = text

    def system(self, system: System) -> None:
        self._content["CUDA Runtime Version"] = system.cuda
        self._content["Driver Version"] = system.driver
        self._content["GPU Device list"] = [_listed(device) for device in system.devices]

    def missing(self, asked: str, problem: str) -> None:
        self._tests.append({"name": asked, "status": "Not Found", "error": problem})

    def show(self, outcome: TestOutcome) -> None:
        test: dict[str, Value] = {"name": outcome.name, "status": outcome.status}
        if outcome.reasons:
            key = "reason" if outcome.status == "Waived" else "error"
            test[key] = "; ".join(outcome.reasons)
        if outcome.matrices:
            test["bandwidth_matrix"] = [row for m in outcome.matrices for row in _rows(m)]
            last = outcome.matrices[-1]  # if there are several, the total
            figures = last.known
            test |= {"bandwidth_description": last.heading, "sum": sum(figures)}
            if self._verbose:
                mean = sum(figures) / len(figures)
                test |= {"min": min(figures), "max": max(figures), "average": mean}
        if outcome.shares is not None:
            test["utilization_ratio_matrix"] = list(_rows(outcome.shares))
        self._tests.append(test)

    def fail(self, message: str) -> None:
        self._content["error"] = message
        if self._tests:
            self._content["testcases"] = self._tests
        self._print()

    def end(self) -> None:
        self._content["testcases"] = self._tests  # a list, even if Ctrl-C leaves it empty
        self._print()

    def _print(self) -> None:
        print(styled({self._root: self._content}), end="\n\n", flush=True)


def _listed(device: Located) -> str:
    number = device.index if device.process is None else device.process
    at = "" if device.hostname is None else f": ({device.hostname})"
    return f"{number}: {device.name}{at}"


def _rows(matrix: TestMatrix) -> list[Value]:
    return [[shown(figure, "g") for figure in row] for row in matrix.ordered]


def styled(value: Value, indent: str = "") -> str:
    """Formats a document like jsoncpp's styled writer: sorted keys, tabs, 17 digits."""
    inner = indent + "\t"
    if isinstance(value, dict) and value:
        members = (
            f"{inner}{json.dumps(key)} : {_member(value[key], inner)}" for key in sorted(value)
        )
        return "{\n" + ",\n".join(members) + f"\n{indent}}}"
    if isinstance(value, list) and value:
        items = (inner + styled(item, inner) for item in value)
        return "[\n" + ",\n".join(items) + f"\n{indent}]"
    if isinstance(value, float):
        digits = f"{value:.17g}"
        return digits if set(digits) & set(".en") else f"{digits}.0"
    return json.dumps(value)


def _member(value: Value, indent: str) -> str:
    text = styled(value, indent)
    return f"\n{indent}{text}" if "\n" in text else text


# nvbandwidth's plain text.


NOTE = """\
NOTE: The reported results may not reflect the full capabilities of the platform.
Performance can vary with software drivers, hardware clocks, and system topology.
"""
_UNITS = {"higher": "+GB/s", "lower": "-ns"}
"""The units in performance lines; the sign shows which direction is better."""


class TextPrinter:
    def __init__(self, *, verbose: bool, perf: bool, brief: bool) -> None:
        self._verbose = verbose
        self._perf = perf
        self._brief = brief

    def warn(self, text: str) -> None:
        _say(text)

    def system(self, system: System) -> None:
        cuda, api = str(system.cuda), ""
        if self._brief:
            cuda = f"{system.cuda // 1000}.{system.cuda % 1000 // 10} ({cuda})"
            api = " (API)"
        _say(
            f"CUDA Runtime Version: {cuda}",
            f"CUDA Driver Version{api}: {cuda}",
            f"Driver Version: {system.driver}",
            "",
        )
        if system.devices[0].process is not None:
            _say(*_processes(system), "")
        elif not self._brief:
            _say(*_devices(system), "")

    def missing(self, asked: str, problem: str) -> None:
        _say(f"ERROR: {problem}", "")

    def show(self, outcome: TestOutcome) -> None:
        if outcome.status == "Waived":
            _say(f"Waived: {outcome.name}: {'; '.join(outcome.reasons)}")
            return
        _say(f"Running {outcome.name}.")
        _say(*outcome.samples)
        for matrix in outcome.matrices:
            _say(matrix.heading, *_lines(matrix), "")
            self._sum_up(matrix, outcome.better)
        if outcome.shares is not None:
            _say(outcome.shares.heading, *_lines(outcome.shares), "")
        # Below the matrix: parsers take the line below `Running` for its heading.
        _say(*(f"{outcome.status}: {reason}" for reason in outcome.reasons))
        if outcome.reasons and outcome.matrices:
            _say("")
        sys.stdout.flush()

    def _sum_up(self, matrix: TestMatrix, better: str) -> None:
        figures = matrix.known
        total = sum(figures)
        if self._perf:
            _say(f"&&&& PERF {matrix.name} {total:.2f} {_UNITS[better]}")
        else:
            _say(f"SUM {matrix.name} {total:.2f}")
        if matrix.variation is not None:
            _say(f"COEFFICIENT_OF_VARIATION {matrix.name} {matrix.variation:.2f}")
        if self._verbose and figures:
            _say(
                f"MIN {matrix.name} {min(figures):.2f}",
                f"MAX {matrix.name} {max(figures):.2f}",
                f"AVG {matrix.name} {total / len(figures):.2f}",
            )
        _say("")

    def fail(self, message: str) -> None:
        sys.stdout.flush()
        print(message, file=sys.stderr)

    def end(self) -> None:
        _say(NOTE)


def _devices(system: System) -> Iterator[str]:
    yield system.hostname
    for device in system.devices:
        yield f"Device {device.index}: {device.name}"


def _processes(system: System) -> Iterator[str]:
    width = len(str(len(system.devices) - 1))
    for device in system.devices:
        at = "" if device.hostname is None else f" ({device.hostname})"
        yield f"Process {device.process:>{width}}{at}: device {device.index}: {device.name}"


def _lines(matrix: TestMatrix) -> list[str]:
    label = max(2, *map(len, matrix.labels))
    lines = [" " * label + "".join(f"{column:>10}" for column in matrix.columns)]
    for name, row in zip(matrix.labels, matrix.ordered, strict=True):
        lines.append(f"{name:>{label}}" + "".join(f"{shown(one, '.2f'):>10}" for one in row))
    return lines


def _say(*lines: str) -> None:
    for line in lines:
        print(line)
