"""A run with everything that a report shows, with fixed figures; and the same with hostile text."""

import os
import re
import shutil
from base64 import b64decode
from gzip import decompress

import pytest
from msgspec.structs import replace

from fakes import device, machine
from linkgauge.judge.findings import Finding
from linkgauge.judge.outcome import Outcome
from linkgauge.model.curves import Level
from linkgauge.model.documents.result import CellResult, Expected, Levels, Result, Run
from linkgauge.model.hardware.inventory import (
    Accelerator,
    Adapter,
    HostDetails,
    Inventory,
    PciLink,
    Reading,
)
from linkgauge.model.notation import parse_transfer
from linkgauge.model.notes import Remark
from linkgauge.model.settings import Settings
from linkgauge.model.stats.summary import summarize
from linkgauge.model.transfer import Report
from linkgauge.report.reading import OneRun

MIB = 1 << 20
CHROMIUM = shutil.which("chromium")
REQUIRED = "chromium" in os.environ.get("LINKGAUGE_REQUIRE", "")
REMEDY = ("# First look:", "nvidia-smi nvlink -s", "sudo systemctl restart nvidia-fabricmanager")


def cell(row, column, figure, by="x:0 -> x:1 by ce", report=Report.FIRST, spread=0.001, **more):
    samples = more.pop("samples", tuple(figure * (1 + spread * k) for k in (-2, -1, 0, 1, 2)))
    transfers = tuple(map(parse_transfer, by.split(" & ")))
    return CellResult(
        row, column, transfers, report, more.pop("status", "pass"), bytes=MIB, samples=samples,
        summary=summarize(samples), seconds=0.5, **more,
    )  # fmt: skip


def result(name, title, cells, unit="B/s", **more):
    better = "lower" if unit == "s" else "higher"
    return Result(
        benchmark=name, title=title, backend=more.pop("backend", "x"), size=more.pop("size", MIB),
        unit=unit, better=better, status="pass", cells=tuple(cells), **more,
    )  # fmt: skip


def files(text):
    """The files inside a page, by name."""
    names = re.findall(r'data-file="(f\d)" data-name="([^"]+)"', text)
    packed = dict(re.findall(r'<script type="text/plain" id="(f\d)">([^<]*)</script>', text))
    return {name: decompress(b64decode(packed[at])) for at, name in names}


def reading(at, clock):
    return Reading(memory="x:0", count=2, link_speed=32.0, link_width=16, clock_min=clock,
                   clock_max=clock, power_max=100.0 + at, throttled=("power",))  # fmt: skip


def pairs(devices, slow=0):
    """A matrix of pairs, in which what touches one device is slow."""
    for row in range(devices):
        for column in range(devices):
            if row != column:
                low = slow in (row, column)
                yield cell(
                    str(row), str(column), 200e9 if low else 390e9 + row * 1e8,
                    f"x:{column} -> x:{row} by ce", verdict="low" if low else "ok",
                    expected=Expected(450e9, 400e9, "18 links"),
                    readings=(reading(row, 1.9e9 - column * 1e7),) if row == 0 else (),
                )  # fmt: skip


def results():
    single = tuple(1e-6 * (1 + k % 17 / 100) for k in range(400))
    curve = [
        cell("0 base", str(size), 1e-9 if size < 16 else 9e-9, f"null -> host:0 by cpu x{size}",
             operation="chase") for size in (1, 2, 4, 8, 16, 32, 64, 128)
    ]  # fmt: skip
    many = "memcpy CE host -> this many devices(column) at once, total"
    return (
        result("device_to_device_memcpy_read_ce", "device(row) <- device(column)", pairs(4)),
        result("host_to_device_memcpy_ce", "host(row) -> device(column)", [
            cell("0", "0", 55e9, "host:0 -> x:0 by ce", verdict="ok",
                 expected=Expected(63e9, 54e9, "PCIe"), notes=(Remark("a remark"),))]),
        result("concurrency_host_to_device", many, [
            cell("0", str(n), 50e9 * min(n, 4), " & ".join(["host:0 -> x:0 by ce"] * n),
                 Report.TOTAL) for n in (1, 2, 4, 8)], sweep=True),
        *(result("sized", "device(row) <- device(column)", [cell("0", "1", 9e9 * size)],
                 size=size * MIB) for size in (1, 4, 16)),
        result("latency_flag_pingpong", "path(row)", [
            cell(name, "one way", 1e-6, "x:0 <-> x:1 by sm", samples=single,
                 operation="flag-ping-pong") for name in ("0-1", "0-2")], unit="s", sweep=True),
        result("memory_latency", "latency(row), by size(column)", curve, unit="s", sweep=True,
               size=1024, backend="host",
               levels=(Levels("0 base", (Level(1, 1e-9, 1024, 8192), Level(2, 9e-9, 16384))),)),
        result("absent", "nothing", [], reason="needs two devices"),
    )  # fmt: skip


def whole_run(label="before"):
    accelerator = Accelerator(memory="x:0", model="X 100", driver="580.1", firmware="96.00",
                              link=PciLink(max_speed=32.0, max_width=16))  # fmt: skip
    inventory = Inventory(host=HostDetails(command_line="quiet"), accelerators=(accelerator,),
                          adapters=(Adapter(name="mlx5_0", rate=5e10),))  # fmt: skip
    known = replace(machine(devices=(device(0), device(1))), inventory=inventory, commit="abc1234")
    return Run(
        id="20261121T201500Z", label=label, command=("linkgauge", "run", "--label", label),
        started="2026-11-21T20:15:00Z", finished="2026-11-21T20:16:00Z", machine=known,
        settings=Settings(sizes=(MIB,)), results=tuple(results()),
    )  # fmt: skip


FOUND = (
    Finding("fabric-links", "fail", "x:0", "9 of 18 links are not active", "they cost half", REMEDY,
            cells=("device_to_device_memcpy_read_ce (0, 1)",)),
    Finding("slow", "warn", "x:0", "6 cells reach 50%", explained_by=("fabric-links of x:0",)),
    Finding("governor", "note", "host", "powersave"),
)  # fmt: skip


def whole():
    return OneRun(whole_run(), Outcome(1, FOUND, found=FOUND))


def hostile(text):
    """`whole` with this text wherever a person or another program may have put it."""
    one = whole()
    run = one.run
    named = tuple(
        replace(r, benchmark=f"{r.benchmark}{text}", title=f"{r.title}{text}", reason=text,
                cells=tuple(replace(c, row=f"{c.row}{text}", notes=(Remark(text),), reason=text)
                            for c in r.cells),
                levels=tuple(replace(own, row=f"{own.row}{text}") for own in r.levels))
        for r in run.results
    )  # fmt: skip
    host = replace(run.machine.host, hostname=text, cpu_model=text, kernel=text)
    stated = replace(run.machine.inventory, stated={text: text})
    findings = tuple(
        replace(f, about=text, found=text, why=text, remedy=(text, f"# {text}", *f.remedy),
                cells=(text,), lines=(text,))
        for f in FOUND
    )  # fmt: skip
    changed = replace(
        run, label=text, command=("linkgauge", text), results=named,
        machine=replace(run.machine, host=host, inventory=stated),
    )  # fmt: skip
    return OneRun(changed, Outcome(1, findings, found=findings))


HOSTILE = (
    "<script>document.title='harm'</script>",
    "</script><img src=x onerror=\"document.title='harm'\">",
    "' onmouseover='x' \" autofocus", "two\nlines\r\n", "\u202egnp.exe", "\u05d0\u05d1\u05d2",
    "x" * 10_000, "{{ 7 * 7 }}", "#eval(\"1\") $x$ *a* @b <c>", "\x00\x1b[31m", "\ud7ff\ufffe",
    "javascript:alert(1)", "]]>", "&lt;b&gt;",
)  # fmt: skip


@pytest.fixture(scope="session")
def chromium():
    """The path of Debian's browser."""
    if CHROMIUM is None:
        if REQUIRED:
            pytest.fail("LINKGAUGE_REQUIRE=chromium, and there is none")
        pytest.skip("needs chromium: sudo apt-get install chromium")
    return CHROMIUM
