"""`linkgauge as bandwidthTest` and `p2pBandwidthLatencyTest` print what the CUDA samples print."""

import math
import re

import pytest

from compat_kit import ONE, MadeUp, spoken, two_devices
from fakes import device, machine
from linkgauge.model.documents.result import CellResult
from linkgauge.model.stats.summary import summarize


def bandwidth(words="", on=ONE, **more):
    return spoken("bandwidthTest", words, on=on, **more)


def p2p(words="", on="ppu-8", **more):
    return spoken("p2pBandwidthLatencyTest", words, on=on, **more)


def matrices(text):
    """{title: rows} of the peer-to-peer test: below a title that ends in its unit, a row of the
    columns' indices, then a row for each device that begins with its index."""
    found = {}
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if re.search(r"Matrix \((GB/s|us)\)$", line):
            corner, *columns = lines[at + 1].split()
            assert corner in ("D\\D", "GPU")
            rows = [row.split() for row in lines[at + 2 : at + 2 + len(columns)]]
            assert [row[0] for row in rows] == columns
            found[line] = [[float(figure) for figure in row[1:]] for row in rows]
    return found


@pytest.mark.parametrize(
    ("words", "fault", "code", "ends"),
    [
        ("--memory=pageable", "crash sim:0 cells=0", 3, "FAIL"),
        ("--htod", "flip sim:0", 1, "FAIL"),
        ("--htod --noverify", "flip sim:0", 0, "PASS"),
    ],
)
def test_what_cannot_be_measured_is_no_success(words, fault, code, ends):
    done = bandwidth(words, faults=[fault])
    assert done.returncode == code
    assert f"Result = {ends}" in done.stdout


def test_pairs_that_do_not_reach_each_other(tmp_path):
    file = two_devices(tmp_path)
    islands = file.read_text().replace("{count: 1, cpus", "{count: 2, cpus")
    file.write_text(islands.replace("to: host:0", "to: host:0..1"))
    done = p2p("--numElems=1000", on=file)
    assert "Device=0 CANNOT Access Peer Device=1" in done.stdout
    for (here, there), _ in matrices(done.stdout).values():
        assert here > 0
        assert math.isnan(there)
    # Nor is there a way through the host.
    assert done.returncode == 4
    assert "no link leads from" in done.stderr


def test_an_error_costs_its_figure_only(tmp_path):
    done = p2p("--numElems=1000", on=two_devices(tmp_path), faults=["crash sim:1 cells=0"])
    assert done.returncode == 3
    writes = list(matrices(done.stdout).values())[1]
    # The first cell of each benchmark is the one of devices 0 and 1.
    assert [math.isnan(figure) for row in writes for figure in row] == [False, True, False, False]


def test_without_peer_access_a_copy_is_one_call_of_cudas_driver(monkeypatch):
    """In a process of its own, that never opens peer access."""
    asked = set()

    def measured(cell, settings, table):
        engines = settings.engines
        if engines.peer_access is False:
            asked.update(map(str, cell.transfers))
        figure = 16 / 5e-6 if table.size == 16 else 40e9
        figures = (5e-6 if cell.operation == "enqueue" else figure,) * 6
        return CellResult(
            cell.row, cell.column, cell.transfers, cell.report, "pass", summary=summarize(figures)
        )

    MadeUp(measured).install(monkeypatch, machine([device(0, "cuda"), device(1, "cuda")]))
    found = matrices(p2p(on=None).stdout)
    assert asked == {"cuda:0 -> cuda:1 by ce", "cuda:1 -> cuda:0 by ce"}
    assert found["Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)"] == [[80, 40], [40, 80]]
    assert found["P2P=Disabled Latency Matrix (us)"] == [[5, 5], [5, 5]]
