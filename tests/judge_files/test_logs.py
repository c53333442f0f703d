"""Logs as they are found on public pages, and what is right to read in them
(tests/data/judge/logs)."""

from pathlib import Path

import pytest
import yaml

from linkgauge.rooms.judge_files.readers import read_text
from reported_kit import named

LOGS = Path(__file__).parents[1] / "data/judge/logs"
READINGS = yaml.safe_load((LOGS / "readings.yml").read_text())


@pytest.mark.parametrize("reading", READINGS, ids=[one["file"] for one in READINGS])
def test_read(reading):
    (read,) = read_text(reading["file"], (LOGS / reading["file"]).read_text())
    (log,) = read.logs
    assert (log.tool, len(log.figures)) == (reading["tool"], reading["count"])
    assert {one.ranks for one in log.figures} <= {0, reading.get("ranks", 0)}
    if "version" in reading:
        assert log.version == reading["version"]
    found = dict(named(one, reading.get("ranks", 0)) for one in log.figures)
    for name, figure in reading["figures"].items():
        assert found[name] == pytest.approx(figure, rel=3e-3), (name, found)


def test_all_are_listed():
    assert {one.name for one in LOGS.glob("*.txt")} == {one["file"] for one in READINGS}


@pytest.mark.parametrize(
    ("head", "seconds"),
    [
        ("t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]", [1.62e-6]),
        ("t_avg[usec]    tps average", [1.58e-6]),
        ("t_min[usec]    t_max[usec]  t_typical[us", []),
        pytest.param("t_avg" + "x" * 1_000_000, [], id="a heading without end takes no time"),
    ],
)
def test_heading_of_times(head, seconds):
    """The heading names the columns of perftest's times. One that is cut off tells nothing."""
    row = " 2       1000          1.58           4.11         1.62              1.63"
    text = f"                    RDMA_Write Latency Test\n #bytes #iterations    {head}\n{row}\n"
    read = [one for log in read_text("log", text)[0].logs for one in log.figures]
    assert [one.figure for one in read] == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("kind", "unit", "figures"),
    [
        ("-Pinned", "GB/s", {"host_to_device_memcpy_ce": 12e9, "device_to_host_memcpy_ce": 13e9}),
        ("-Pinned-WriteCombined", "MB/s", {"host_to_device_memcpy_ce": 12e6}),
        ("-Paged", "GB/s", {}),
    ],
)
def test_csv_of_bandwidth_test(kind, unit, figures):
    """bandwidthTest --csv has a line for each way. A copy within the device counts twice there, and
    has no kind of host memory."""
    ways = {f"H2D{kind}": 12.0, f"D2H{kind}": 13.0, "D2D": 640.0}
    lines = [
        f"bandwidthTest-{way}, Bandwidth = {rate} {unit}, Time = 0.00252 s, "
        "Size = 33554432 bytes, NumDevsUsed = 1"
        for way, rate in ways.items()
    ]
    (log,) = read_text("log", "\n".join(lines))[0].logs
    found = {one.benchmark: one.figure for one in log.figures}
    local = 320e9 if unit == "GB/s" else 320e6
    assert found.pop("device_local_copy") == pytest.approx(local)
    assert found.items() >= figures.items()
    assert len(found) == (2 if figures else 0)
    assert {one.size for one in log.figures} == {33554432}
    assert bool(log.remarks) is (not figures)
