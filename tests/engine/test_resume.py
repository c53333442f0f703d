"""A run goes on only on its own machine and as it was asked for."""

import msgspec
import pytest

from fakes import device, machine
from linkgauge.engine.controller import Observer
from linkgauge.engine.journal import JOURNAL_FILE, Journal, Opened
from linkgauge.engine.resume import (
    check_same_machine,
    go_on,
)
from linkgauge.model.errors import InputError
from linkgauge.model.inventory import Interface
from linkgauge.model.notation import parse_transfers
from linkgauge.model.ranks import Rank
from linkgauge.model.result import PlannedCell, PlannedSheet
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report

GPU = device(0, pci="0000:1b:00.0", uuid="GPU-1", driver="570.1")
HERE = machine([GPU], nodes=2)
LO = Interface(name="lo", up=True, kind="loopback", addresses=("127.0.0.1",))
ETH = Interface(name="eth0", up=True, driver="mlx5_core", addresses=("10.0.0.1",))
OTHER = Interface(name="eth1", up=True, addresses=("10.0.1.1",))


def changed(host=None, **fields):
    there = msgspec.structs.replace(HERE.host, **(host or {}))
    gpu = msgspec.structs.replace(GPU, **fields)
    return msgspec.structs.replace(HERE, host=there, devices={"fake": (gpu,)})


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


def ranks(*nics, host="node1", device=GPU):
    """Two ranks, the second with these interfaces beside its loopback."""
    known = (Rank(0, "node0", 100, "fake:0@0", nics=(LO, ETH, OTHER)),
             Rank(1, host, 101, "fake:0@1", nics=(LO, *nics)))  # fmt: skip
    devices = tuple(
        msgspec.structs.replace(one, memory=rank.memory)
        for rank, one in zip(known, (GPU, device), strict=True)
    )
    return msgspec.structs.replace(HERE, devices={"fake": devices}, ranks=known)


OVER_ETH = (
    PlannedSheet(
        benchmark="nic_tcp", title="t", backend="net", size=64, unit="B/s", better="higher",
        cells=(PlannedCell("0", "1", parse_transfers("host:0@0 -> host:0@1 by nic:1.tcp"),
                           Report.FIRST),),
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    "now",
    [
        ranks(ETH, OTHER),
        ranks(msgspec.structs.replace(ETH, addresses=("10.0.0.9",), speed=1e9), OTHER),
        ranks(ETH),
    ],
)
def test_ranks_are_the_same_by_the_interfaces_that_are_used_whatever_their_addresses(now):
    check_same_machine(ranks(ETH, OTHER), now, OVER_ETH)


@pytest.mark.parametrize(
    ("now", "says"),
    [
        (ranks(ETH, host="node7"), "host of rank 1 was node1, is now node7"),
        (
            ranks(ETH, device=msgspec.structs.replace(GPU, uuid="GPU-2")),
            "UUID of fake:0@1 of rank 1 was GPU-1, is now",
        ),
        (ranks(), "nic:1 of rank 1 was eth0, mlx5_core, is now absent"),
        (ranks(OTHER), "nic:1 of rank 1 was eth0, mlx5_core, is now eth1"),
        (ranks(msgspec.structs.replace(ETH, up=False)), "nic:1 (eth0) of rank 1 (node1) is down"),
    ],
)
def test_a_rank_that_is_another_is_refused_by_its_number(now, says):
    with pytest.raises(InputError) as refused:
        check_same_machine(ranks(ETH), now, OVER_ETH)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("opened", "size", "says"),
    [
        (HERE, 2, "is a run of one process, and 2 ranks were started: resume it without"),
        (ranks(ETH), 3, "is a run of 2 ranks, and 3 ranks were started: start 2 ranks"),
        (ranks(ETH), 1, "is a run of 2 ranks: start each as before"),
        (None, 2, "ended before it had a plan: start a new run"),
    ],
)
def test_as_many_processes_take_part_as_before(tmp_path, opened, size, says):
    Journal.begin(
        tmp_path / JOURNAL_FILE,
        Opened(id="1", label="l", command=(), started="s", machine=opened or HERE,
               settings=Settings((64,)), plan=OVER_ETH if opened else ()),
    ).close()  # fmt: skip
    with pytest.raises(InputError, match=says):
        go_on(tmp_path, {}, Observer(), size=size)
