"""Emulates the tools of the vCPU benchmark suite. Setup only prints commands for root."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from ctypes.util import find_library
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import Literal

import msgspec

from linkgauge.benchmarks.collectives import LEAST
from linkgauge.cli.options import filled
from linkgauge.cli.report import ReportOptions, report
from linkgauge.cli.tool import Where, helpful, show
from linkgauge.cli.tool_options import Parser, ToolOption, UsageError
from linkgauge.engine.kept.folder import checked_label
from linkgauge.engine.profiles import PROFILES
from linkgauge.engine.request import RunRequest, Selection
from linkgauge.engine.session import opened, survey
from linkgauge.judge.vendor import AMD, NVIDIA
from linkgauge.machine.packages import Manager, package_manager
from linkgauge.model.documents.result import exit_code
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.operations.collective import CollectiveChoice
from linkgauge.model.settings import Settings
from linkgauge.model.units import parse_size
from linkgauge.report.formats import TERMINAL, formats
from linkgauge.report.keeping import Display
from linkgauge.report.live import LiveReport
from linkgauge.uses.measuring import keeper_of

SETUP = "setup_vcpu_benchmarks"
SETUP_HELP = """\
Usage: setup_vcpu_benchmarks

Shows what run_vcpu_benchmark uses, what is missing, and the commands that install it. Changes
nothing. Exits with 1 if there is a GPU that cannot be measured, else with 0."""
_DRIVER_GUIDE = (
    "# NVIDIA's driver: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"
)
_NAMES = {NVIDIA: "NVIDIA", AMD: "AMD"}
_CLASSES = (0x03, 0x12)


class NeededTool(msgspec.Struct, frozen=True):
    """A tool that a benchmark needs, and what was `found`. Root installs `packages` and runs
    `root`, the user runs `own`. If `state` is `none`, the benchmark does not suit this machine."""

    name: str
    state: Literal["ok", "missing", "optional", "none"]
    found: str
    packages: tuple[str, ...] = ()
    root: tuple[str, ...] = ()
    own: tuple[str, ...] = ()


@helpful(SETUP_HELP)
def run_setup(arguments: Sequence[str], where: Where) -> int:
    Parser().given(arguments)
    if where.simulation is not None:
        print(f"SIMULATED {where.simulation.machine}: nothing to install")
        return 0
    machine = survey(RunRequest(settings=Settings(sizes=())))
    manager = package_manager()
    needs = tuple(needs_of(machine, manager))
    show(lines(needs, manager))
    return 1 if any(need.state == "missing" for need in needs) else 0


def has_nccl() -> bool:
    with suppress(ImportError, ValueError):
        if find_spec("nvidia.nccl") is not None:
            return True
    return find_library("nccl") is not None


def needs_of(machine: Machine, manager: Manager | None) -> Iterator[NeededTool]:
    for name, package, file in (
        ("numactl", "numactl", "numa_topology.txt"),
        ("lscpu", "util-linux", "cpu_topology.txt"),
    ):
        if (place := shutil.which(name)) is not None:
            yield NeededTool(name, "ok", place)
        else:
            why = f"not installed: linkgauge writes {file} itself"
            yield NeededTool(name, "optional", why, (package,))
    yield NeededTool("host", "ok", "primes, STREAM and latency need nothing else")
    yield _gpu(machine, manager)
    yield _all_reduce(machine)


def _all_reduce(machine: Machine) -> NeededTool:
    devices = len(machine.devices.get("cuda", ()))
    if devices < 2:
        return NeededTool("AllReduce", "none", f"needs two NVIDIA GPUs, {devices} can be measured")
    if has_nccl():
        return NeededTool("AllReduce", "ok", f"NCCL, {devices} GPUs")
    own = "pip install '.[nccl]'  # in linkgauge's folder"
    return NeededTool("AllReduce", "optional", "no NCCL: skipped", own=(own,))


def _gpu(machine: Machine, manager: Manager | None) -> NeededTool:
    found = (one for devices in machine.devices.values() for one in devices if not one.is_cpu)
    if models := Counter(one.model for one in found):
        every = (f"{count} × {model}" for model, count in models.items())
        return NeededTool("GPU", "ok", "; ".join(every))
    vendors = sorted({
        function.vendor for function in machine.known.pci
        if function.vendor in _NAMES and (function.class_code or 0) >> 16 in _CLASSES
    })  # fmt: skip
    if not vendors:
        why = "none on the PCI bus: its benchmarks are skipped"
        return NeededTool("GPU", "none", f"{why} (<hostdev> passes one through)")
    backend = "cuda" if NVIDIA in vendors else "opencl"
    names = " and ".join(_NAMES[vendor] for vendor in vendors)
    why = machine.unavailable.get(backend, "the CPU is the only OpenCL device")
    own: tuple[str, ...] = ("make run  # in linkgauge's folder: installs what calls the driver",)
    root: tuple[str, ...] = ()
    if "not installed" not in why and backend == "opencl":
        own, root = (), ("# ROCm with its OpenCL runtime: https://rocm.docs.amd.com/",)
    elif "not installed" not in why:
        known = manager.driver if manager else ()
        root = (*known, "modprobe nvidia  # or reboot") if known else (_DRIVER_GUIDE,)
    return NeededTool("GPU", "missing", f"{names} on the PCI bus, but {why}", root=root, own=own)


def lines(needs: Sequence[NeededTool], manager: Manager | None) -> Iterator[str]:
    yield f"{SETUP}: what run_vcpu_benchmark uses (this changes nothing)"
    room = max(len(need.name) for need in needs)
    yield from (f"{need.state:<8} {need.name:<{room}}  {need.found}" for need in needs)
    packages = [package for need in needs for package in need.packages]
    if packages and manager is None:
        root = [f"# install {' '.join(packages)} as this system does"]
    else:
        root = list(manager.commands(packages)) if manager else []
    root += [command for need in needs for command in need.root]
    own = [command for need in needs for command in need.own]
    for heading, commands in (("as root:", root), ("as yourself:", own)):
        if commands:
            yield from ("", heading, *(f"    {command}" for command in commands))
    yield from ("", "then: linkgauge as run_vcpu_benchmark CONFIG")


# run_vcpu_benchmark of the vCPU benchmark suite: profile `vm` under the name of a configuration.


BENCHMARK = "run_vcpu_benchmark"
BENCHMARK_HELP = """\
Usage: run_vcpu_benchmark CONFIG [--nccl-max-msg SIZE]

Measures this machine under the name of a configuration. Results are kept in
results/<gpu>/CONFIG/<time>/; without a GPU in results/cpu/CONFIG/<time>/.

  --nccl-max-msg SIZE  Largest message of the AllReduce sweep (default: 1G)

Then: linkgauge show results/<gpu>/ compares the configurations."""
RESULTS = Path("results")


@helpful(BENCHMARK_HELP)
def run_benchmark(arguments: Sequence[str], where: Where) -> int:
    parser = Parser((ToolOption("--nccl-max-msg SIZE", read=parse_size, least=LEAST),))
    parser.add_argument("config")
    given = parser.given(arguments)
    configuration = given["config"]
    if not configuration.strip():
        raise UsageError("CONFIG: give the configuration a name")
    settings = msgspec.structs.replace(PROFILES["vm"], simulation=where.simulation)
    request = RunRequest(
        what=Selection(),
        settings=settings,
        backends=() if where.backend is None else ("host", where.backend),
        profile="vm",
        collectives=CollectiveChoice(largest=given.get("nccl_max_msg")),
        wait=where.wait,
        out=str(RESULTS),
        label=checked_label(configuration),
        command=("linkgauge", "as", BENCHMARK, *arguments),
        options={"--profile": "vm", "--label": configuration, "--out": str(RESULTS.absolute())},
    )
    with (
        opened(request) as session,
        LiveReport(keeper_of(Display(formats()[TERMINAL], matrix=True))) as report,
    ):
        measured = session.measure(session.plan(report), report, report.keeper.doubts)
        report.conclude(measured, session.folder)
        if session.folder is not None:
            place = quote(str(session.folder.parent.parent))
            print(f"to compare configurations: linkgauge show {place}")
    return exit_code(measured)


# generate_report of the vCPU benchmark suite: a report of all configurations below a folder.


REPORT_HELP = """\
Usage: generate_report [results_dir] [-o output.html|.pdf]

Writes a report of all configurations below results_dir (default: results), grouped by GPU.

  -o FILE  Write to this file (default: report.html in results_dir)."""


@helpful(REPORT_HELP)
def run_report(arguments: Sequence[str], _where: Where) -> int:
    parser = Parser((ToolOption("-o, --output FILE", read=Path),))
    parser.add_argument("results_dir", nargs="?", default=str(RESULTS))
    given = parser.given(arguments)
    folder, output = Path(given["results_dir"]), given.get("output")
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder of results")
    return report(filled(ReportOptions, {"runs": (folder,), "output": output}))
