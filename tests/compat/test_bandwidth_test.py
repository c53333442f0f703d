"""`linkgauge as bandwidth_test` writes a row for each iteration on each path."""

import csv
import io

import pytest

from compat_kit import ONE_DEVICE, speak, where
from linkgauge.compat.base import Where
from linkgauge.model.errors import InputError


@pytest.fixture
def bandwidth_test(capfd):
    def run(*arguments, on=None):
        return speak(capfd, "bandwidth_test", *map(str, arguments), on=on or where(ONE_DEVICE))

    return run


def test_the_pages_command_on_the_pages_kind_of_host(bandwidth_test, tmp_path):
    """Of the end-to-end script: bandwidth_test --size 256M --iter 10 --out …/bandwidth.csv."""
    table = tmp_path / "bandwidth.csv"
    done = bandwidth_test("--size", "256M", "--iter", 10, "--out", table, on=where("riscv-2gpu"))
    assert done.code == 0
    assert f"wrote {table}" in done.out
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    assert list(rows[0]) == [
        "direction", "source", "destination", "bytes", "iteration", "seconds", "gb_per_s",
    ]  # fmt: skip
    assert [row["direction"] for row in rows[::10]] == ["H2D", "H2D", "D2H", "D2H", "D2D", "D2D"]
    for place, row in enumerate(rows):
        assert int(row["bytes"]) == 256 << 20
        assert int(row["iteration"]) == place % 10
        rate = int(row["bytes"]) / float(row["seconds"]) / 1e9
        assert float(row["gb_per_s"]) == pytest.approx(rate, rel=1e-3)
    assert rows[-1]["source"] == "sim:1"
    assert rows[-1]["destination"] == "sim:0"


def test_without_a_file_the_table_goes_to_stdout(bandwidth_test):
    done = bandwidth_test("--size", "1M", "--iter", 2)
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [row["direction"] for row in rows] == ["H2D", "H2D", "D2H", "D2H"]
    # 20 GB/s, and 3 us to start the copy.
    assert float(rows[0]["gb_per_s"]) == pytest.approx(18.9, rel=0.01)


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(
    bandwidth_test, tmp_path
):
    with pytest.raises(InputError, match=r"cannot write .*No such file or directory"):
        bandwidth_test("--out", tmp_path / "missing" / "bandwidth.csv")


def test_what_measures_nothing_leaves_files_as_they_are(bandwidth_test, tmp_path):
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_text("precious\n")
    for file in (old, new):
        with pytest.raises(InputError, match="does not fit"):
            bandwidth_test("--size", "1T", "--out", file)
    assert old.read_text() == "precious\n"
    assert not new.exists()
    bandwidth_test("--size", "1M", "--iter", 1, "--out", old)
    assert old.read_text().startswith("direction,")


def test_a_dash_is_stdout(bandwidth_test, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert bandwidth_test("--size", "1M", "--iter", 1, "--out", "-").out.startswith("direction,")
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_byte_is_no_success(bandwidth_test, tmp_path):
    struck = where(ONE_DEVICE, "flip sim:0")
    done = bandwidth_test("--size", "1M", "--out", tmp_path / "b.csv", on=struck)
    assert done.code == 1
    assert "is wrong at byte 0" in done.err


@pytest.mark.parametrize(
    "tool",
    ["bandwidth_test", "bandwidthTest", "p2pBandwidthLatencyTest", "rblnBandwidthLatencyTest"],
)
def test_a_backend_without_devices_is_refused_by_each_tool_that_needs_them(capfd, tool):
    with pytest.raises(InputError, match="backend host has no devices"):
        speak(capfd, tool, on=Where(backend="host"))


def test_help(bandwidth_test):
    done = bandwidth_test("--help")
    assert done.code == 0
    assert "--iter COUNT" in done.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--foo"], "unrecognized arguments: --foo"),
        (["--size"], "argument --size: expected one argument"),
        (["--size", "0"], "--size: size 0 moves nothing"),
        (["--iter", "0"], "--iter: give 1 to 1000000"),
        (["--iter", "9999999999999999999999"], "--iter: give 1 to 1000000"),
        (["--iter", "1_0"], "argument --iter: invalid whole value: '1_0'"),
        (["--iter", "many"], "argument --iter: invalid whole value: 'many'"),
        (["--out", ""], "--out: give the name of a file"),
    ],
)
def test_what_is_wrong_is_said_and_fails(bandwidth_test, arguments, says):
    done = bandwidth_test(*arguments)
    assert done.code == 1
    assert done.out == ""
    assert f"bandwidth_test: {says}" in done.err
