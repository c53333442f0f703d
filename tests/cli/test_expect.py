"""`linkgauge expect` says what `run` and `scale` hold figures against, and measures nothing."""

import json

import pytest

from command_kit import called
from linkgauge.cli.common import simulation_of
from linkgauge.judge.expected.healthy import rows
from linkgauge.rooms.expect.expecting import expectations_of, machine_of
from page_kit import files


def expected(what):
    done = called("expect", what, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def of_run(what, folder, *names):
    """The expected figures of a short run, by benchmark."""
    called("run", *names, "--machine", what, "--samples", "3", "--no-report", "--out", folder)
    (path,) = folder.rglob("run.json")
    document = json.loads(called("show", path.parent, "--json").stdout)
    found = {}
    for result in document["results"]:
        for cell in result["cells"]:
            figures = {**(result.get("common") or {}), **cell}["expected"]
            if figures["peers"] is None:  # by arithmetic
                pair = figures["achievable"], figures["theoretical"]
                found.setdefault(result["benchmark"], set()).add(pair)
    return found


@pytest.mark.parametrize("what", ["8 x H100 SXM", "ppu-8"])
def test_it_expects_what_a_run_is_held_against(what, tmp_path):
    names = ("host_to_device_memcpy_ce", "device_to_device_memcpy_read_sm", "device_local_copy")
    mine = {}
    for one in expected(what)["figures"]:
        pair = one["achievable"], one["theoretical"]
        mine.setdefault(one["benchmark"], set()).add(pair)
    run = of_run(what, tmp_path, *names)
    assert set(run) == set(names)
    assert {name: mine[name] for name in names} == run


def test_it_expects_of_a_collective_what_scale_does(tmp_path):
    done = called(
        "scale", "all_reduce", "--machine", "dgx-h200-8", "--gpus", "2,4,8", "--size", "512M",
        "--samples", "3", "--no-report", "--out", tmp_path, "--json",
    )  # fmt: skip
    scaled = {one["gpus"]: one["expected"] for one in json.loads(done.stdout)["counts"]}
    mine = {
        one["devices"]: one["bound"]
        for one in expected("dgx-h200-8")["collectives"]
        if one["collective"] == "all_reduce"
    }
    assert mine == scaled
    assert sorted(mine) == [2, 4, 8]


def test_a_change_is_counted():
    done = called("expect", "8 x H100 SXM", "--change", "pcie=4x16", "--json")
    [one] = [
        one
        for one in json.loads(done.stdout)["figures"]
        if one["benchmark"] == "host_to_device_memcpy_ce"
    ]
    assert "PCIe 16 GT/s x16" in one["because"]


@pytest.mark.parametrize("what", ["8 x Foo 9000", "2 x ZX Quantum 1", "1 x H999"])
def test_what_nobody_published_is_called_unknown(what):
    done = called("expect", what)
    assert done.returncode == 2
    assert f"unknown machine '{what}'" in done.stderr


def test_nothing_is_measured_and_nothing_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = called("expect", "2 x H200")
    assert done.returncode == 0
    assert "nothing was measured" in done.stdout
    assert not list(tmp_path.iterdir())


def of_hosts(what):
    return expectations_of(simulation_of(what)).collectives


def test_what_others_published_stands_beside():
    (own,) = [
        one
        for one in expected("8 x H100 SXM")["collectives"]
        if (one["collective"], one["devices"]) == ("all_reduce", 8)
    ]
    assert own["published"][0]["reached"]["8G"] == 478.87
    assert "Azure" in own["published"][0]["source"]
    assert not any(one["published"] for one in expected("8 x A40")["collectives"])


SEVERAL = [row for row in rows() if 1 < row.hosts <= 4 and row.reached]


@pytest.mark.parametrize("row", SEVERAL, ids=lambda row: f"{machine_of(row)}, {row.operation}")
def test_several_hosts_are_expected_to_reach_what_published_ones_are_held_against(row):
    (own,) = [
        one
        for one in of_hosts(machine_of(row))
        if (one.collective, one.hosts, one.devices) == (row.operation, row.hosts, row.ranks)
    ]
    assert own.bound.achievable == pytest.approx(row.expected * 1e9, rel=0.01)
    assert row.source in [one.source for one in own.published]


def test_devices_of_one_host_come_before_those_of_several():
    counts = {(one.hosts, one.devices) for one in of_hosts("4 x 8 x H100 SXM + 8 x 400G")}
    assert counts == {(1, 2), (1, 4), (1, 8), (2, 16), (4, 32)}


def test_across_hosts_nothing_is_guessed_without_adapters():
    several = [one for one in of_hosts("2 x 8 x H100 SXM") if one.hosts > 1]
    assert several
    assert all(one.bound.figure is None for one in several)
    assert {one.bound.because for one in several} == {
        "unknown: what the adapters of each host carry is unknown"
    }


def test_figures_are_those_of_the_first_host_and_from_it_to_others():
    shown = expected("2 x 8 x H100 SXM + 8 x 400G")["figures"]
    copies = {one["of"] for one in shown if one["benchmark"] == "device_to_device_memcpy_read_ce"}
    assert copies == {8 * 7 + 8 * 8}
    assert {one["of"] for one in shown if one["benchmark"] == "device_local_copy"} == {8}


def test_the_page_holds_the_same_tables_and_files(tmp_path):
    done = called("expect", "2 x RTX 4090", "-o", tmp_path / "expected.html")
    assert (done.returncode, done.stdout) == (0, f"report: {tmp_path / 'expected.html'}\n")
    page = (tmp_path / "expected.html").read_text()
    assert "PCIe 16 GT/s x16 × 128b/130b = 31.51 GB/s" in page
    attached = files(page)
    assert json.loads(attached["expectation.json"]) == expected("2 x RTX 4090")
    assert called("expect", "2 x RTX 4090", "-o", tmp_path / "expected.txt").returncode == 2
