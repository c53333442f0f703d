"""Runs of configurations with fixed figures: a host, and guests of it."""

from __future__ import annotations

from msgspec.structs import replace

from fakes import device, machine
from linkgauge.machine.host import this_host
from linkgauge.model.documents.result import CellResult, Interval, Result, Run
from linkgauge.model.hardware.inventory import HostDetails, Inventory, PciFunction
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.notation import parse_transfer
from linkgauge.model.settings import Settings
from linkgauge.model.stats.summary import summarize
from linkgauge.model.transfer import Report

TRANSFER = (parse_transfer("host:0 -> host:0 by cpu"),)
UNITS = {
    "cpu_primes_single": "1/s",
    "cpu_primes_all": "1/s",
    "memory_stream_triad": "B/s (STREAM)",
    "memory_stream_nodes": "B/s (STREAM)",
    "memory_latency": "s",
    "host_to_device_memcpy_ce": "B/s",
    "device_to_host_memcpy_ce": "B/s",
    "device_local_copy": "B/s",
}
SPREAD = (-0.002, -0.001, 0.0, 0.001, 0.002, 0.0005)
"""Relative deviations of a cell's samples: three repetitions of two each."""


def cell(row, column, figure, spread=SPREAD, status="pass"):
    samples = tuple(figure * (1 + each) for each in spread)
    repetitions = ((1, 1),) * (len(samples) // 2)
    summary = summarize(samples) if status == "pass" else None
    if summary is not None:
        summary = replace(summary, ci95=(summary.median * 0.995, summary.median * 1.005))
    return CellResult(
        row, column, TRANSFER, Report.FIRST, status, samples=samples, repetitions=repetitions,
        summary=summary, interval=Interval("repetitions", 0.95, 6, 3),
    )  # fmt: skip


def result(name, *cells):
    better = "lower" if UNITS[name] == "s" else "higher"
    return Result(
        benchmark=name, title=name, backend="host", size=64, unit=UNITS[name], better=better,
        status="pass", cells=cells,
    )  # fmt: skip


def run_of(label, *results, started="2026-11-21T20:15:00Z", of=None, simulated=False):
    return Run(
        id=started.replace("-", "").replace(":", ""), label=label, simulated=simulated,
        command=("linkgauge",), started=started, finished=started, machine=of or machine(),
        settings=Settings(sizes=(64,), profile="vm"), results=results,
    )  # fmt: skip


def here(run):
    """The run, as if this machine had measured it."""
    host = replace(run.machine.host, hostname=this_host())
    return replace(run, machine=replace(run.machine, host=host))


def measured(scale=1.0, threads=8, nodes=1, devices=2, memory=92e-9):
    """The results of profile `vm`, scaled."""
    columns = [str(n) for n in range(devices)]
    row = "all" if nodes > 1 else "0"
    latencies = [
        cell(f"0 {pages}", size, figure)
        for pages, last in (("base", memory), ("huge", memory * 0.95))
        for size, figure in (("4 KiB", 1.5e-9), ("512 MiB", last))
    ]
    remote = [cell("0 stream", "host:0", 150e9), cell("0 stream", "host:1", 90e9)]
    return (
        result("cpu_primes_single", cell("0", "1", 1580 * scale)),
        result("cpu_primes_all", cell("0", str(threads), 1550 * threads * scale)),
        result("memory_stream_triad", cell(f"{row} stream", str(threads), 300e9 * scale)),
        *([result("memory_stream_nodes", *remote)] if nodes > 1 else []),
        result("memory_latency", *latencies),
        *(
            result(name, *(cell("0", c, figure * (1 - 0.01 * int(c))) for c in columns))
            for name, figure in (
                ("host_to_device_memcpy_ce", 55.4e9 * scale),
                ("device_to_host_memcpy_ce", 55.2e9 * scale),
                ("device_local_copy", 2092e9),
            )
            if devices
        ),
    )  # fmt: skip


def machine_of(name, nodes, cpus, kernel, huge, hypervisor=None, cards=2) -> Machine:
    cards_of = [device(n, "cuda", pci=f"0000:{n + 1:02x}:00.0") for n in range(cards)]
    box = machine(cards_of, nodes=nodes, available=cpus << 32)
    host = replace(box.host, hostname=name, cpus=cpus, kernel=kernel)
    details = HostDetails(
        sockets=nodes, cores=cpus // 2, threads_per_core=2, hypervisor=hypervisor,
        huge_pages={2 << 20: (huge, huge)}, transparent_huge_pages="madvise",
        command_line=f"quiet root=/dev/vda{' isolcpus=2-7' if hypervisor is None else ''}",
    )  # fmt: skip
    functions = (
        PciFunction(address=str(card.pci), numa_node=None if hypervisor else 0) for card in cards_of
    )
    inventory = Inventory(host=details, pci=tuple(functions))
    return replace(box, host=host, inventory=inventory)


HOST = machine_of("hv01", 2, 64, "6.8.0-45-generic", 0)
GUEST = machine_of("vm1", 1, 16, "6.5.0-15-generic", 8192, "KVM")
THREE = (
    run_of("pinned", *measured(0.998, 16, memory=97e-9), started="2026-11-21T20:15:00Z", of=GUEST),
    run_of(
        "unpinned",
        *measured(0.82, 16, memory=131e-9),
        started="2026-11-21T20:20:00Z",
        of=machine_of("vm1", 1, 16, "6.5.0-15-generic", 0, "KVM"),
    ),
    run_of("host", *measured(1.0, 64, nodes=2), started="2026-11-21T21:00:00Z", of=HOST),
)
