"""Each run has a folder of its own, whatever its label says."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes import device, machine
from linkgauge.benchmarks.catalog import select
from linkgauge.engine.kept.folder import accelerator_name, check_writable, create_run_folder, slug
from linkgauge.engine.plan import fabrics, lay_out, make_plan
from linkgauge.model.errors import InputError

STARTED = "2026-11-21T20:15:00.123Z"


@given(st.text(max_size=200))
def test_a_slug_is_always_a_safe_name(text):
    name = slug(text, "default")
    assert 0 < len(name) <= 64
    assert name.strip(".") == name
    assert len(name.encode()) <= 192
    assert not set(name) & {"/", "\0", " ", "\n"}
    assert slug(name.upper(), "default")


def test_slugs_stay_readable():
    assert slug("NVIDIA H200 (NVL)", "x") == "nvidia-h200-nvl"
    assert slug("../../etc", "x") == "etc"
    assert slug("Übung 1", "x") == "ubung-1"
    assert slug("日本 1", "x") == "日本-1"
    assert slug("/", "x") == "x"


def test_where_file_names_have_no_such_letters_a_label_has_the_common_folder(monkeypatch):
    monkeypatch.setattr("os.fsencode", lambda name: name.encode("ascii"))
    assert slug("日本", "default") == "default"


def test_the_run_id_is_the_start_and_a_taken_one_takes_the_next(tmp_path):
    folders = [create_run_folder(tmp_path, "cpu", "My Label", STARTED) for _ in range(3)]
    names = ["20261121T201500Z", "20261121T201500Z-2", "20261121T201500Z-3"]
    assert folders == [tmp_path / "cpu" / "my-label" / name for name in names]


def test_the_accelerator_is_the_first_device_that_is_measured():
    here = machine([device(0, "x"), msgspec.structs.replace(device(1, "x"), model="Second Card")])

    def named(*names):
        plan = make_plan(lay_out(select(names, ()), fabrics(here, ()), here.host.nodes), here, [64])
        return accelerator_name(here, plan)

    assert named("device_local_copy") == "fake-card-x1"
    assert named("host_to_host_memcpy_copy_cpu") == "cpu"

    cpu = machine([msgspec.structs.replace(device(0, "x"), is_cpu=True)])
    rows = select(["device_local_copy"], ())
    plan = make_plan(lay_out(rows, fabrics(cpu, ()), cpu.host.nodes), cpu, [64])
    assert accelerator_name(cpu, plan) == "cpu"

    second = fabrics(here, ["x:1"])
    rows = select(["host_to_device_memcpy_ce"], ())
    plan = make_plan(lay_out(rows, second, here.host.nodes), here, [64])
    assert accelerator_name(here, plan) == "second-card"


def test_a_file_system_that_refuses_folders_is_noticed_before_measuring():
    """Also by root, who may write in all other folders."""
    with pytest.raises(InputError, match=r"cannot write results to /proc/x: .* \(/proc\)"):
        check_writable(Path("/proc/x"))


def test_a_look_whether_results_can_be_written_leaves_nothing_behind(tmp_path):
    check_writable(tmp_path / "results" / "of" / "today")
    assert not any(tmp_path.iterdir())
