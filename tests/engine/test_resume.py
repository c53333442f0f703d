"""A run goes on only on its own machine and as it was asked for."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes import device, machine
from linkgauge.engine.resume import (
    _seconds,
    check_same_machine,
    check_same_options,
    fingerprint,
)
from linkgauge.model.errors import InputError

GPU = device(0, pci="0000:1b:00.0", uuid="GPU-1", driver="570.1")
HERE = machine([GPU], nodes=2)


def changed(host=None, **fields):
    there = msgspec.structs.replace(HERE.host, **(host or {}))
    gpu = msgspec.structs.replace(GPU, **fields)
    return msgspec.structs.replace(HERE, host=there, devices={"fake": (gpu,)})


def test_readings_do_not_matter():
    nodes = machine(nodes=2, available=77).host.nodes
    readings = {"memory_available": 1, "memlock_limit": 5, "kernel": "6.2", "nodes": nodes}
    check_same_machine(HERE, changed(readings, notes=("warm",), largest_buffer=1))


@pytest.mark.parametrize(
    ("now", "says"),
    [
        (changed(driver="580.2"), "driver of fake:0 was 570.1, is now 580.2"),
        (changed(model="Other Card"), "fake:0 was Fake Card X1, is now Other Card"),
        (
            changed(pci="0000:2b:00.0"),
            "PCI address of fake:0 was 0000:1b:00.0, is now 0000:2b:00.0",
        ),
        (changed(uuid=None), "UUID of fake:0 was GPU-1, is now absent"),
        (changed({"cpu_model": "Old CPU"}), "CPU was Test CPU, is now Old CPU"),
        (changed({"architecture": "riscv64"}), "architecture was x86_64, is now riscv64"),
        (changed({"hostname": "crate"}), "host name was box, is now crate"),
        (changed({"nodes": machine().host.nodes}), "NUMA nodes was 0, 1, is now 0"),
        (machine([], nodes=2), "fake:0 was Fake Card X1, is now absent"),
        (machine([GPU, device(1)], nodes=2), "fake:1 was absent, is now Fake Card X1"),
    ],
)
def test_another_machine_is_refused_with_what_differs(now, says):
    with pytest.raises(InputError) as refused:
        check_same_machine(HERE, now)
    assert says in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_the_fingerprint_has_every_device():
    assert fingerprint(HERE).keys() >= {"fake:0", "driver of fake:0", "UUID of fake:0"}


OPTIONS = st.dictionaries(st.sampled_from(["--size", "--label", "--no-verify", "names"]), st.text())


@given(OPTIONS)
def test_options_that_are_the_runs_own_may_be_given_again(options):
    check_same_options(options, options)


@pytest.mark.parametrize(
    ("given_now", "says"),
    [
        ({"--size": "1M"}, "--size 1M disagrees with the run's own (--size 512M)"),
        ({"--no-verify": ""}, "--no-verify disagrees with the run's own (no --no-verify)"),
        ({"--label": "a", "--size": "2M"}, "--size 2M disagrees"),
    ],
)
def test_an_option_that_is_not_the_runs_own_is_refused(given_now, says):
    with pytest.raises(InputError) as refused:
        check_same_options({"--size": "512M", "--label": "a"}, given_now)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("now", "seconds"),
    [
        ("2026-11-21T20:16:01.500Z", 61.5),
        ("2026-11-21T20:14:00.000Z", 0.0),
        ("2026-11-21T20:16:01", 0.0),
        ("noon", 0.0),
    ],
)
def test_the_kernels_lines_of_a_later_part_count_from_the_runs_start(now, seconds):
    assert _seconds("2026-11-21T20:15:00.000Z", now) == seconds
