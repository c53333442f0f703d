"""Evidence made by hand: a machine with one card, of which all is well, and what differs."""

from __future__ import annotations

from msgspec.structs import replace

import fakes
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import Evidence
from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.hardware.inventory import (
    Accelerator,
    HostDetails,
    Inventory,
    PciFunction,
    PciLink,
    Reading,
)
from linkgauge.model.hardware.machine import Device
from linkgauge.model.notation import parse_transfers
from linkgauge.model.settings import Settings
from linkgauge.model.stats.summary import summarize
from linkgauge.model.transfer import Report
from remedy_kit import assert_pasteable

GPU, PORT, ROOT = "0000:02:00.0", "0000:01:00.0", "0000:00:01.0"
FULL = PciLink(speed=32.0, width=16, max_speed=32.0, max_width=16, target=32.0)
GOOD = HostDetails(
    iommu="passthrough",
    governor="performance",
    transparent_huge_pages="madvise",
    huge_pages={2 << 20: (1024, 1024)},
    memlock_limit=1 << 40,
    node_cpus={0: (0, 1), 1: (2, 3)},
    allowed_cpus=(0, 1, 2, 3),
    allowed_nodes=(0, 1),
    steal=0.0,
)


def gpu(**changes):
    fields = {
        "address": GPU, "class_code": 0x030200, "numa_node": 0, "port": "endpoint",
        "parent": ROOT, "link": FULL, "max_payload": 256, "max_read_request": 4096,
        "errors": {"correctable": 0, "fatal": 0},
    }  # fmt: skip
    return PciFunction(**fields | changes)


def root(**changes):
    fields = {
        "address": ROOT, "class_code": 0x060400, "port": "root port", "link": FULL,
        "max_payload": 256, "numa_node": 0,
    }  # fmt: skip
    return PciFunction(**fields | changes)


def card(**changes):
    return Accelerator(**{"memory": "cuda:0", "model": "X", "pci": GPU} | changes)


def inventory(*, host=GOOD, pci=None, cards=None, adapters=()):
    return Inventory(
        host=host,
        pci=(root(), gpu()) if pci is None else pci,
        accelerators=(card(),) if cards is None else cards,
        adapters=adapters,
    )


def machine(what, unavailable=None):
    known = what.accelerators or (card(),)
    devices = {"cuda": tuple(Device(a.memory, "X", 1 << 34, 1 << 34, pci=a.pci) for a in known)}
    of = fakes.machine(nodes=2, unavailable=unavailable or {})
    return replace(of, devices=devices, inventory=what)


def measured(*readings, status="pass", reason=None, locked=None, verified=True, verdict="ok",
             kind=None, operation="copy", engine="ce"):  # fmt: skip
    samples = (50e9,) * 6 if status == "pass" else ()
    cells = tuple(
        CellResult(
            "0", "0", parse_transfers(f"host:0 -> {memory} by {engine}"), Report.FIRST, status,
            reason, samples=samples,
            summary=summarize(samples), readings=taken, locked=locked, verified=verified,
            verdict=verdict, kind=kind, operation=operation,
        )
        for memory, taken in [(r.memory, (r,)) for r in readings] or [("cuda:0", ())]
    )  # fmt: skip
    return Result(
        benchmark="host_to_device_memcpy_ce", title="t", backend="cuda", size=1 << 28, unit="B/s",
        better="higher", status=status, cells=cells,
    )  # fmt: skip


def reading(memory="cuda:0", **what):
    return Reading(memory=memory, count=10, **what)


def found(before=None, after=None, *results, unavailable=None):
    of, settings = machine(before or inventory(), unavailable), Settings((1,), precision=0.05)
    findings = diagnose(Evidence(of, after, results, settings=settings))
    assert_pasteable(findings)
    return findings


def told(findings):
    return [(finding.check, finding.severity) for finding in findings]


def the(check, findings, *, reasons=True):
    """The one finding of this check: with a reason, and lines that fix it if it is grave."""
    (finding,) = (each for each in findings if each.check == check)
    assert finding.why or finding.severity == "unknown" or not reasons
    assert finding.remedy or finding.severity in ("note", "unknown")
    return finding
