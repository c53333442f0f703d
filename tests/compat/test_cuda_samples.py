"""`linkgauge as bandwidthTest` and `p2pBandwidthLatencyTest` print what the CUDA samples print."""

import math
import re

import pytest

from compat_kit import ONE, MadeUp, spoken, two_devices
from fakes import device, machine
from linkgauge.model.result import CellResult
from linkgauge.model.statistics import summarize


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


def test_figures_of_pairs_are_those_of_the_links():
    found = matrices(p2p("--p2p_read").stdout)
    writes = found["Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)"]
    reads = found["Unidirectional P2P=Enabled Bandwidth (P2P Reads) Matrix (GB/s)"]
    staged = found["Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)"]
    both = found["Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)"]
    # One link lies between devices 0 and 1, two ways of two links between 0 and 4.
    assert writes[0][1] == pytest.approx(46.7, rel=0.01)
    assert writes[0][4] == pytest.approx(2 * 46.7, rel=0.01)
    assert reads[0][1] == pytest.approx(47, rel=0.01)
    assert staged[0][1] == pytest.approx(45.0, rel=0.01)
    assert writes[0][1] < both[0][1] < 2 * writes[0][1]
    # Within a device what is read and written counts, and the copy engine does it.
    assert writes[3][3] == pytest.approx(2125, rel=0.03)
    kernels = matrices(p2p("--numElems=25000000 --sm_copy").stdout)
    kernels = kernels["Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)"]
    assert kernels[0][1] == pytest.approx(writes[0][1], rel=0.05)
    assert kernels[0][0] == pytest.approx(writes[0][0], rel=0.02)


def test_the_host_enqueues_one_copy_or_both_legs_of_a_staged_one(tmp_path):
    done = p2p("--numElems=4 --p2p_read", on=two_devices(tmp_path))
    found = matrices(done.stdout)
    direct = found["P2P=Enabled Latency (P2P Writes) Matrix (us)"][0][1]
    staged = found["P2P=Disabled Latency Matrix (us)"][0][1]
    assert staged == pytest.approx(2 * direct, rel=0.02)
    lines = done.stdout.splitlines()
    found = [
        [float(figure) for row in lines[at + 1 : at + 3] for figure in row.split()[1:]]
        for at, line in enumerate(lines)
        if line == "   CPU     0      1 "
    ]
    # A simulated host takes 2 us a call.
    assert found == [[2, 4, 4, 2], [2, 2, 2, 2], [2, 2, 2, 2]]


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

    def measured(cell, settings, sheet):
        engines = settings.engines
        if engines.peer_access is False:
            asked.update(map(str, cell.transfers))
        figure = 16 / 5e-6 if sheet.size == 16 else 40e9
        figures = (5e-6 if cell.operation == "enqueue" else figure,) * 6
        return CellResult(
            cell.row, cell.column, cell.transfers, cell.report, "pass", summary=summarize(figures)
        )

    MadeUp(measured).install(monkeypatch, machine([device(0, "cuda"), device(1, "cuda")]))
    found = matrices(p2p(on=None).stdout)
    assert asked == {"cuda:0 -> cuda:1 by ce", "cuda:1 -> cuda:0 by ce"}
    assert found["Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)"] == [[80, 40], [40, 80]]
    assert found["P2P=Disabled Latency Matrix (us)"] == [[5, 5], [5, 5]]
