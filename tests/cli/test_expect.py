"""`linkgauge expect` says what `run` and `scale` hold figures against, and measures nothing."""

import json

import pytest

from command_kit import called


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
