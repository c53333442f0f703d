"""A run of every kind of result, with fixed figures."""

from fakes import device, machine
from linkgauge.model.documents.result import CellResult, Placement, Result, Run, TransferFigure
from linkgauge.model.notation import parse_transfer
from linkgauge.model.notes import Remark
from linkgauge.model.settings import Settings
from linkgauge.model.stats.summary import summarize
from linkgauge.model.transfer import Report

SIZE = 64 << 20


def cell(row, column, transfers, gigabytes, report=Report.FIRST, parts=(), **more):
    samples = tuple(gigabytes * 1e9 * (1 + k / 1000) for k in range(-3, 4))
    parts = tuple(
        TransferFigure(
            number, SIZE, tuple(part * 1e9 for _ in range(7)), summarize([part * 1e9] * 7)
        )
        for number, part in enumerate(parts)
    )
    return CellResult(
        row, column, tuple(map(parse_transfer, transfers)), report, more.pop("status", "pass"),
        bytes=SIZE, loops=4, stopped="precision", verified=True, samples=samples,
        summary=summarize(samples), parts=parts, **more,
    )  # fmt: skip


def unmeasured(row, column, transfers, status, reason, kind):
    transfers = tuple(map(parse_transfer, transfers))
    return CellResult(row, column, transfers, Report.FIRST, status, reason, kind=kind)


def result(name, title, status, cells, **more):
    return Result(
        benchmark=name, title=title, backend=more.pop("backend", "x"), size=SIZE, unit="B/s",
        better="higher", status=status, cells=tuple(cells), **more,
    )  # fmt: skip


RESULTS = (
    result(
        "host_to_device_memcpy_ce", "memcpy CE host(row) -> device(column)", "pass",
        [
            cell("0", str(n), [f"host:0 -> x:{n} by ce"], 55.25 + n, locked=False,
                 placement=(Placement("host:0", SIZE, 0, False, SIZE),),
                 notes=(Remark("host:0 is not locked in memory (mlock: Cannot allocate memory)"),))
            for n in range(2)
        ],
    ),
    result(
        "device_to_device_bidirectional_memcpy_read_ce",
        "memcpy CE device(row) <-> device(column)", "pass",
        [
            cell(str(r), str(c), [f"x:{c} -> x:{r} by x:{r}.ce", f"x:{r} -> x:{c} by x:{c}.ce"],
                 778.5, Report.SUM, (389.25, 389.25))
            for r, c in ((0, 1), (1, 0))
        ],
        parts=("read1", "read2"),
    ),
    result(
        "host_to_device_memcpy_sm", "memcpy SM host(row) -> device(column)", "error",
        [
            cell("0", "0", ["host:0 -> x:0 by sm"], 0.0123, status="fail",
                 kind="wrong-bytes",
                 reason="host:0 -> x:0 by sm: x:0 is wrong at byte 77 of 67108864"),
            unmeasured("0", "1", ["host:0 -> x:1 by sm"], "error", "while measuring: lost", "call"),
            unmeasured("0", "2", ["host:0 -> x:2 by sm"], "skip", "[red]not shared[/red]",
                       "unsupported"),
        ],
    ),
    result("all_to_one_read_ce", "memcpy CE device(column) -> all other devices", "skip", [],
           reason="needs four devices, x has 3 selected"),
    result(
        "host_kinds_memcpy_copy_cpu", "memcpy CPU within node(row) by kind of memory(column)",
        "pass",
        [
            cell("0", kind, [f"host:0{path} -> host:0{path} by cpu"], 20.5)
            for kind, path in (("pinned", ""), ("pageable", "/pageable"), ("huge", "/huge"))
        ],
        backend="host", sweep=True,
    ),
)  # fmt: skip

RUN = Run(
    id="20261121T201500Z", label="golden", command=("linkgauge", "run"),
    started="2026-11-21T20:15:00.000Z", finished="2026-11-21T20:15:30.000Z",
    machine=machine([device(0, "x"), device(1, "x")]), settings=Settings((SIZE,)),
    results=RESULTS,
)  # fmt: skip
