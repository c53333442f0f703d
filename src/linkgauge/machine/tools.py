"""Runs tools such as nvidia-smi, and makes a run's files that describe the machine's topology."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator

import msgspec

from linkgauge.model.hardware.machine import Machine
from linkgauge.model.shareable import FreeText, ToolCommand, ToolFile
from linkgauge.model.units import approximate_size

from .tree import ROOT, Root, ranges

FOLDER = "linkgauge/tools"
QDISCS = ("tc", "-s", "qdisc", "show")
COMMANDS = (
    ("nvidia-smi", "-q"),
    ("nvidia-smi", "topo", "-m"),
    ("nvidia-smi", "nvlink", "-s"),
    ("rocm-smi",),
    ("rocm-smi", "--showtopo"),
    ("rbln-stat",),
    ("xpu-smi", "discovery"),
    ("xpu-smi", "topology", "-m"),
    ("lspci", "-vvv"),
    ("lscpu",),
    ("numactl", "--hardware"),
    ("ibstat",),
    ("uname", "-a"),
    ("dkms", "status"),
    ("ethtool", "--version"),
    QDISCS,
)
_OF_INTERFACES = ("", "-i", "-l", "-g", "-c", "-a", "-k", "-S", "--show-fec")
"""The options of ethtool for each interface: link, driver and firmware, channels, rings,
coalescing, pause frames, offloads, counters and forward error correction."""
_MOST_INTERFACES = 32
_SECONDS = 20.0


class ToolOutput(msgspec.Struct, frozen=True):
    """A command, its exit code or else the `problem`, and the paths of its stdout and stderr."""

    command: ToolCommand
    exit: int | None = None
    problem: FreeText | None = None
    file: ToolFile | None = None
    errors: ToolFile | None = None


def commands_for(interfaces: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Returns COMMANDS and, if ethtool is installed, its commands for up to 32 interfaces."""
    asked = interfaces[:_MOST_INTERFACES] if shutil.which("ethtool") else ()
    about = (
        ("ethtool", *filter(None, (option,)), name) for name in asked for option in _OF_INTERFACES
    )
    return (*COMMANDS, *about)


def ask(
    commands: tuple[tuple[str, ...], ...] = COMMANDS, seconds: float = _SECONDS
) -> tuple[tuple[ToolOutput, ...], dict[str, bytes]]:
    """Runs each command for at most `seconds`. Returns how each one ended, and the outputs as files
    (path: content). A missing tool is no error, because most machines lack most tools."""
    files: dict[str, bytes] = {}
    return tuple(_ask(command, seconds, files) for command in commands), files


def _ask(command: tuple[str, ...], seconds: float, files: dict[str, bytes]) -> ToolOutput:
    out = err = b""
    code, problem = None, None
    try:
        done = subprocess.run(  # noqa: S603 (commands of this file)
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False,
            env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
        out, err, code = done.stdout, done.stderr, done.returncode
    except FileNotFoundError:
        problem = "not installed"
    except OSError as error:
        problem = f"cannot be run: {error.strerror}"
    except subprocess.TimeoutExpired as late:
        out, err = late.stdout or b"", late.stderr or b""
        problem = f"still running after {seconds:g} s"
    stem = f"{FOLDER}/{'_'.join(command).replace('/', '_')}"
    names = {f"{stem}.txt": out, f"{stem}.err.txt": err}
    files |= {name: text for name, text in names.items() if text}
    kept = [name if text else None for name, text in names.items()]
    return ToolOutput(" ".join(command), code, problem, *kept)


# The topology as files of a run: what `numactl --hardware`, `lscpu` and /proc/meminfo's huge pages
# say, in the form that people and their scripts know.
#
# The tools themselves are asked where they are installed. Where one is not, or the machine is
# simulated, its file has the same facts in the same form from our own readers, and says so first.

_MEGABYTE = 1 << 20
"""The number of bytes in a megabyte, as numactl counts."""
_CACHES = {"data": "d", "instruction": "i"}
_TOPOLOGY_SECONDS = 10.0


def topology_files(machine: Machine, root: Root = ROOT) -> dict[str, str]:
    return {
        "numa_topology.txt": _said(machine, ("numactl", "--hardware"), numa_lines),
        "cpu_topology.txt": _said(machine, ("lscpu",), cpu_lines),
        "hugepages.txt": _huge_pages(machine, root),
    }


def _said(
    machine: Machine, command: tuple[str, ...], own: Callable[[Machine], Iterator[str]]
) -> str:
    name = " ".join(command)
    if machine.simulated is not None:
        why = f"SIMULATED {machine.simulated}"
    else:
        (done,), files = ask((command,), _TOPOLOGY_SECONDS)
        text = files.get(done.file or "", b"").decode(errors="replace")
        if done.exit == 0 and text:
            return text
        why = f"{name}: {done.problem or f'exit code {done.exit}'}"
    return _text(f"# {why}; the facts below are as linkgauge reads them", own(machine))


def _text(*parts: str | Iterator[str]) -> str:
    lines = (line for part in parts for line in ((part,) if isinstance(part, str) else part))
    return "".join(f"{line}\n" for line in lines)


def numa_lines(machine: Machine) -> Iterator[str]:
    """Yields the NUMA nodes in the format of `numactl --hardware`."""
    nodes = {node.index: node for node in machine.host.nodes}
    details = machine.known.host
    cpus = {**{index: node.cpus for index, node in nodes.items()}, **details.node_cpus}
    yield f"available: {len(cpus)} nodes ({ranges(sorted(cpus))})"
    for index in sorted(cpus):
        yield f"node {index} cpus: {' '.join(map(str, cpus[index]))}".rstrip()
        node = nodes.get(index)
        for what, size in (
            ("size", node.memory_total if node else 0),
            ("free", node.memory_available if node else 0),
        ):
            shown = "unknown" if size is None else f"{size // _MEGABYTE} MB"
            yield f"node {index} {what}: {shown}"
    if details.distances:
        yield "node distances:"
        yield f"node {' '.join(f'{index:>3}' for index in details.distances)}"
        for index, row in details.distances.items():
            yield f"{index:>4}:{''.join(f'{distance:>4}' for distance in row)}"
    else:
        yield "No distance information available."


def cpu_lines(machine: Machine) -> Iterator[str]:
    """Yields the known facts of the CPUs in the format of `lscpu`."""
    host, details = machine.host, machine.known.host
    facts: dict[str, object] = {
        "Architecture": host.architecture,
        "CPU(s)": sum(map(len, details.node_cpus.values())) or host.cpus,
        "Vendor ID": details.cpu_vendor,
        "Model name": host.cpu_model,
        "Thread(s) per core": details.threads_per_core,
        "Core(s) per socket": details.cores // details.sockets
        if details.cores and details.sockets
        else None,
        "Socket(s)": details.sockets,
        "Hypervisor vendor": details.hypervisor,
        **{
            f"L{one.level}{_CACHES.get(one.kind, '')} cache": f"{approximate_size(one.size)} "
            f"(shared by {one.shared_by})"
            for one in details.caches
        },
        "NUMA node(s)": len(details.node_cpus) or len(host.nodes),
        **{f"NUMA node{index} CPU(s)": ranges(cpus) for index, cpus in details.node_cpus.items()},
    }
    for name, value in facts.items():
        if value:
            yield f"{name + ':':<40} {value}"


def _huge_pages(machine: Machine, root: Root) -> str:
    details = machine.known.host
    choice = details.transparent_huge_pages or machine.host.transparent_huge_pages
    head = [f"# transparent huge pages: {choice or 'the kernel shows no choice'}"]
    head += [
        f"# pool of {approximate_size(size)} pages: {total}, {free} free"
        for size, (total, free) in details.huge_pages.items()
    ]
    if machine.simulated is not None:
        return _text(f"# SIMULATED {machine.simulated}", iter(head))
    lines = (root.text("proc/meminfo") or "").splitlines()
    return _text(iter(head), (line for line in lines if "huge" in line.lower()))
